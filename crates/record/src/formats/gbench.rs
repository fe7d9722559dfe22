//! Output in the formats of Google Benchmark 1.9.5, so that its tools can read it: row by row during a run, or all at
//! once from a record.
//! Not here: the content of a row (`line`), the formats (`console`, `json`, `csv`).
//! Facts: formats observed from google-benchmark 1.9.5 with its own switches.

mod console;
mod context;
mod csv;
mod json;
mod line;

pub use context::context;

use crate::ratio::Controls;
use crate::schema::{Case, ClockUnit, Outcome, Repetition, Run};
use line::{Line, Statistic};

/// The version of Google Benchmark whose output is reproduced.
pub const FOLLOWED_VERSION: &str = "1.9.5";

/// Options of the output.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--benchmark_format` or `--benchmark_out_format`.
    pub format: Format,
    /// ANSI colours; the console format only.
    pub color: bool,
    /// Counters in separate columns; the console format only.
    pub counters_tabular: bool,
    /// Omit single repetitions if there are aggregates.
    pub aggregates_only: bool,
    /// Unit of times; nanoseconds by default. Ignored if the run's clock counts instructions.
    pub time_unit: Option<TimeUnit>,
}

/// An output format of Google Benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A table.
    #[default]
    Console,
    /// One JSON document.
    Json,
    /// Comma-separated values.
    Csv,
}

/// A unit of time in the output.
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

/// Conversion from clock units to the unit of the output.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// The unit's name in a JSON or CSV row.
    unit: &'static str,
    /// The unit's name in a table.
    short_unit: &'static str,
    /// Clock units per output unit.
    divisor: f64,
    /// False if the clock does not measure time.
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

/// An output format: text for each step of a run.
trait Printer {
    fn header(&mut self, _run: &Run) -> String {
        String::new()
    }
    fn line(&mut self, line: &Line<'_>) -> String;
    fn finish(&mut self) -> String {
        String::new()
    }
}

/// Prints a run step by step. Every step returns the text to write.
pub struct GbenchReporter {
    printer: Box<dyn Printer>,
    scale: Scale,
    controls: Controls,
    repetitions: u32,
    aggregates_only: bool,
}

impl GbenchReporter {
    /// A reporter for this run, whose cases must be all planned ones, measured or not: they determine the width of
    /// the name column and the columns of a CSV.
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

    /// The text before the first row; uses the facts of the host only.
    pub fn header(&mut self, run: &Run) -> String {
        self.printer.header(run)
    }

    /// Stores a control's numbers, so that later rows can state their ratio to it. Controls passed to `row` or
    /// `aggregates` are stored as well.
    pub fn know(&mut self, case: &Case) {
        self.controls.know(case);
    }

    /// The row of one repetition; empty if only aggregates are wanted and there may be some.
    pub fn row(&mut self, case: &Case, repetition: &Repetition) -> String {
        self.know(case);
        if self.aggregates_only && self.repetitions > 1 {
            return String::new();
        }
        self.line_of(case, repetition)
    }

    /// Mean, median, stddev and cv of a case, after its last repetition; empty with fewer than two measured.
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

    /// The text after the last row.
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

/// A whole stored run. [`context`] is the separate block that Google Benchmark writes to stderr for the console and
/// CSV formats.
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
