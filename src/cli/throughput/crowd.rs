//! Room: what all tests with many workers share on the command line: their common flags, a run into its
//! outputs and an exit status.
//! Not here: their own flags (`workers`, `scaling`), measuring (`lab::workers`).

use std::path::PathBuf;

use clap::Args;
use lab::plan::{Fault, Release, fresh_seed};
use lab::run::Observer;
use lab::workers::{Ask, Flavour, Group};
use record::{Outcome, Run};

use super::super::driver::{DriverArgs, chosen};
use super::super::output::Sink;
use super::super::progress::StatusLine;
use super::super::show::Form;
use super::super::{A_YEAR_S, cannot_run, complain, exit, note};
use lab::plan::MinTime;
use record::render::crowd::{rate_line, time_lines};

/// Flags of every test with many workers.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    driver: DriverArgs,

    /// Android release whose service manager is spoken to: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Rounds of every case
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seed of the choice whom to call next [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Break something on purpose: KIND=WORKER with kill-server or hang-server, and worker3 or service0
    #[arg(long, hide = true, value_name = "KIND=WORKER")]
    fault: Vec<Fault>,

    /// Seconds without a call after which a worker is given up
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl Common {
    /// A plan with these settings.
    pub(super) fn ask(
        &self,
        test: &str,
        flavour: Flavour,
        groups: Vec<Group>,
        length: MinTime,
    ) -> Result<Ask, String> {
        Ok(Ask {
            test: test.to_owned(),
            flavour,
            groups,
            length,
            rounds: self.rounds,
            training: false,
            expected_max_ns: None,
            seed: self.seed.unwrap_or_else(fresh_seed),
            wanted: self.driver.wanted()?,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        })
    }
}

/// Longest time of a round in seconds.
const LONGEST_S: f64 = 3600.0;

/// A time in seconds as it is typed: `2`, `0.5`, `0.5s`.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_S => Ok(seconds),
        _ => Err(format!("it is no time in seconds above 0 and up to {LONGEST_S}")),
    }
}

/// Carries a plan out and prints it in this form; returns the exit status.
pub(super) fn run(ask: Result<Ask, String>, common: &Common, form: Form) -> u8 {
    let ask = match ask.and_then(|ask| ask.check().map(|()| ask)) {
        Ok(ask) => ask,
        Err(why) => {
            complain(why);
            return exit::USAGE;
        }
    };
    let mut stdout = Sink::stdout();
    let mut record = common.record.as_deref().map(Sink::file);
    if let Some(trouble) = record.as_ref().and_then(Sink::trouble) {
        complain(trouble);
    }
    let mut teller =
        Teller { ask: &ask, form, stdout: &mut stdout, wanted: record.is_some(), line: StatusLine::new() };
    let run = match lab::workers::execute(&ask, &mut teller) {
        Ok(run) => run,
        Err(error) => {
            teller.line.show("");
            return cannot_run(&error);
        }
    };
    teller.finish(&run);
    if let Some(record) = &mut record {
        record.put(&run.to_json());
    }
    let mut end = exit::FINE;
    if let Some(reason) = &run.incomplete_reason {
        complain(format_args!("{reason}; what was measured until then is kept"));
        end = exit::FAILED;
    }
    for trouble in [Some(&stdout), record.as_ref()].into_iter().flatten().filter_map(Sink::trouble) {
        complain(trouble);
        end = exit::INTERNAL;
    }
    end
}

/// Says what goes on, in the Android tools' words where their lines are printed.
struct Teller<'t> {
    ask: &'t Ask,
    form: Form,
    stdout: &'t mut Sink,
    /// Whether anybody wants the record, if nobody reads the output.
    wanted: bool,
    line: StatusLine,
}

impl Teller<'_> {
    fn put(&mut self, line: &str) {
        if self.form == Form::Lines {
            self.stdout.put(line);
        }
    }

    fn finish(&mut self, run: &Run) {
        self.line.show("");
        if self.form != Form::Lines {
            self.stdout.put(&self.form.of(run));
            return;
        }
        for repetition in run.cases.iter().flat_map(|case| &case.repetitions) {
            let (Outcome::Measured(numbers) | Outcome::Failed { partial: Some(numbers), .. }) =
                &repetition.outcome
            else {
                continue;
            };
            let (rate, times) = (rate_line(numbers), time_lines(run, numbers));
            // Android's two tools differ in this order.
            let text = match self.ask.flavour {
                Flavour::Binder => format!("{rate}collecting results\nkilling workers\n{times}"),
                Flavour::Hwbinder => {
                    format!("{rate}collecting results\n{times}killing services\nkilling workers\n")
                }
                Flavour::Passthrough => format!("{rate}collecting results\n{times}killing workers\n"),
            };
            self.stdout.put(&text);
        }
    }
}

const WAITING: &str = "waiting for workers to complete\n";

impl Observer for Teller<'_> {
    fn is_wanted(&self) -> bool {
        self.wanted || !self.stdout.is_closed()
    }

    fn begins(&mut self, run: &Run) {
        if let Some(chosen) = chosen(run) {
            note(chosen);
        }
        let most = run.cases.iter().filter(|case| case.crowd.as_ref().is_some_and(|crowd| crowd.overloaded));
        if let Some(case) = most.max_by_key(|case| case.threads) {
            let (clients, cpus) = (case.threads, run.host.cpu.count);
            let cpus = if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
            note(format_args!(
                "WARNING: {clients} clients at once on {cpus} overload the machine: latencies then tell of the queue\n"
            ));
        }
        if self.ask.training {
            self.put("Start training round\n");
        }
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        self.put(WAITING);
        if self.form != Form::Lines {
            self.line.step(done, all, &run.cases[case].name);
        }
    }

    fn trained(&mut self, worst: u64) {
        let text =
            format!("Max latency during training: {}ms\nCompleted training round\n\n", worst as f64 / 1e6);
        self.put(&text);
        self.put(WAITING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, want) in [("2", 2.0), ("0.5", 0.5), ("1.5s", 1.5), ("3600", 3600.0)] {
            assert_eq!(seconds(text), Ok(want));
        }
        for bad in ["", "0", "-1", "x", "inf", "nan", "3601", "5ms"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
