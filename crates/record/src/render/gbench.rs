//! Room: a `Run` as Google Benchmark 1.9.5 prints one, so that its users' eyes and tools fit ours:
//! rows one by one while they are measured, or all at once from a stored run.
//! Not here: what a row holds (`line`), how each format writes it (`console`, `json`, `csv`).
//! Facts: formats observed from google-benchmark 1.9.5 with its own switches.

mod console;
mod context;
mod csv;
mod json;
mod line;
mod number;

pub use context::context;
pub(crate) use number::human;

use crate::render::ratio::Controls;
use crate::schema::{Case, ClockUnit, Outcome, Repetition, Run};
use line::{Line, Statistic};

/// The version of Google Benchmark whose output is followed.
pub const FOLLOWED_VERSION: &str = "1.9.5";

/// How to print.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--benchmark_format` or `--benchmark_out_format`.
    pub format: Format,
    /// ANSI colours; the console format only.
    pub color: bool,
    /// Counters in columns of their own; the console format only.
    pub counters_tabular: bool,
    /// Leave out single repetitions where there are aggregates.
    pub aggregates_only: bool,
    /// Unit of times; nanoseconds unless set. Ignored when the run's clock counts instructions.
    pub time_unit: Option<TimeUnit>,
}

/// An output format of Google Benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    #[default]
    Console,
    /// One JSON document.
    Json,
    /// Comma separated values.
    Csv,
}

/// A unit of time to print in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// From clock units to what is printed.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// The word in a JSON or CSV row.
    unit: &'static str,
    /// The word in a table.
    short_unit: &'static str,
    /// Clock units in one of these.
    divisor: f64,
    /// False when the clock does not tell time.
    is_time: bool,
}

impl Scale {
    fn new(clock: ClockUnit, wanted: Option<TimeUnit>) -> Scale {
        let (unit, short_unit, divisor) = match (clock, wanted.unwrap_or(TimeUnit::Ns)) {
            (ClockUnit::Instructions, _) => ("instructions", "insns", 1.0),
            (ClockUnit::Ns, TimeUnit::Ns) => ("ns", "ns", 1.0),
            (ClockUnit::Ns, TimeUnit::Us) => ("us", "us", 1e3),
            (ClockUnit::Ns, TimeUnit::Ms) => ("ms", "ms", 1e6),
            (ClockUnit::Ns, TimeUnit::S) => ("s", "s", 1e9),
        };
        Scale { unit, short_unit, divisor, is_time: clock == ClockUnit::Ns }
    }
}

/// One output format: text for each step of a run.
trait Printer {
    fn header(&mut self, run: &Run) -> String;
    fn line(&mut self, line: &Line<'_>) -> String;
    fn finish(&mut self) -> String;
}

/// Prints a run step by step. Every step returns the text to put out.
pub struct GbenchReporter {
    printer: Box<dyn Printer>,
    scale: Scale,
    controls: Controls,
    repetitions: u32,
    aggregates_only: bool,
}

impl GbenchReporter {
    /// A reporter for this run. Its cases must be all that are planned, measured or not: the
    /// width of the name column and the columns of a CSV follow from them.
    pub fn new(run: &Run, options: &Options) -> GbenchReporter {
        let scale = Scale::new(run.clock.unit, options.time_unit);
        let printer: Box<dyn Printer> = match options.format {
            Format::Console => Box::new(console::Console::new(run, options, scale)),
            Format::Json => Box::new(json::Json::default()),
            Format::Csv => Box::new(csv::Csv::new(run, scale)),
        };
        GbenchReporter {
            printer,
            scale,
            controls: Controls::default(),
            repetitions: run.plan.repetitions.max(1),
            aggregates_only: options.aggregates_only,
        }
    }

    /// What stands before the first row; needs the host's facts, not the cases.
    pub fn header(&mut self, run: &Run) -> String {
        self.printer.header(run)
    }

    /// Makes a control's numbers known, so that rows to come state their ratio to it. A control
    /// that is itself given to `row` or `aggregates` is known from then on.
    pub fn know(&mut self, case: &Case) {
        self.controls.know(case);
    }

    /// One repetition. Nothing when only aggregates are wanted and there may yet be some.
    pub fn row(&mut self, case: &Case, repetition: &Repetition) -> String {
        self.know(case);
        if self.aggregates_only && self.repetitions > 1 {
            return String::new();
        }
        self.line_of(case, repetition)
    }

    /// Mean, median, stddev and cv over a case's repetitions, once all are done; nothing when
    /// fewer than two were measured.
    pub fn aggregates(&mut self, case: &Case) -> String {
        self.know(case);
        let measured: Vec<Line<'_>> = (case.repetitions.iter())
            .filter(|repetition| matches!(repetition.outcome, Outcome::Measured(_)))
            .map(|repetition| self.make_line(case, repetition))
            .collect();
        if measured.len() < 2 {
            let hidden = self.aggregates_only && self.repetitions > 1;
            let rows = if hidden { case.repetitions.as_slice() } else { &[] };
            return rows.iter().map(|repetition| self.line_of(case, repetition)).collect();
        }
        Statistic::ALL
            .into_iter()
            .map(|statistic| self.printer.line(&Line::aggregate(case, &measured, statistic)))
            .collect()
    }

    /// What stands after the last row.
    pub fn finish(&mut self) -> String {
        self.printer.finish()
    }

    fn line_of(&mut self, case: &Case, repetition: &Repetition) -> String {
        let line = self.make_line(case, repetition);
        self.printer.line(&line)
    }

    fn make_line<'a>(&self, case: &'a Case, repetition: &'a Repetition) -> Line<'a> {
        Line::repetition(case, repetition, self.repetitions, self.scale, &self.controls)
    }
}

/// A stored run, all at once. The context block of the console and CSV formats, which Google
/// Benchmark puts on stderr, is [`context`].
pub fn replay(run: &Run, options: &Options) -> String {
    let mut reporter = GbenchReporter::new(run, options);
    run.cases.iter().for_each(|case| reporter.know(case));
    let mut text = reporter.header(run);
    for case in &run.cases {
        for repetition in &case.repetitions {
            text += &reporter.row(case, repetition);
        }
        text += &reporter.aggregates(case);
    }
    text + &reporter.finish()
}

#[cfg(test)]
mod tests;
