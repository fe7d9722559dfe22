//! The common part of all tests with many workers: shared options, output and exit status.
//! Not here: their own flags (`workers`, `scaling`), measuring (`bench::workers`).

use std::path::PathBuf;

use bench::plan::Flavour;
use bench::plan::{Fault, Release, fresh_seed};
use bench::run::Observer;
use bench::workers::{Group, WorkersOptions};
use clap::Args;
use record::{Case, Measurement, Outcome, Run};

use super::super::driver::{DriverArgs, chosen};
use super::super::exact::ExactArgs;
use super::super::measure::{Outputs, completeness};
use super::super::progress::StatusLine;
use super::super::show::Form;
use super::super::{A_YEAR_S, CommandResult, Failure, OrExit, command_line, exit, note};
use bench::plan::MinTime;
use record::render::crowd::{exact_rate_line, exact_time_lines, rate_line, time_lines, training_line};

/// Flags of every test with many workers.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    driver: DriverArgs,

    /// Android release of the service manager's protocol: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Rounds of every case
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seed of the choice of callees [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Inject a fault: KIND=WORKER with kill-server or hang-server, and worker3 or service0
    #[arg(long, hide = true, value_name = "KIND=WORKER")]
    fault: Vec<Fault>,

    /// Seconds (more on a busy machine) without a call after which a worker counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl Common {
    /// A plan with these settings.
    pub(super) fn options(
        &self,
        test: &str,
        flavour: Flavour,
        groups: Vec<Group>,
        length: MinTime,
    ) -> Result<WorkersOptions, String> {
        Ok(WorkersOptions {
            test: test.to_owned(),
            flavour,
            groups,
            length,
            rounds: self.rounds,
            training: false,
            as_android: false,
            expected_max_ns: None,
            seed: self.seed.unwrap_or_else(fresh_seed),
            wanted: self.driver.wanted()?,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: command_line(),
        })
    }
}

/// Longest time of a round in seconds.
const LONGEST_S: f64 = 3600.0;

/// Parses a time in seconds: `2`, `0.5`, `0.5s`.
pub(in crate::cli) fn seconds(text: &str) -> Result<f64, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_S => Ok(seconds),
        _ => Err(format!("it is no time in seconds above 0 and up to {LONGEST_S}")),
    }
}

/// Whether the output is to be that of Android's tool.
pub(super) fn as_android(flag: ExactArgs, applet: bool, format: Option<Form>) -> Result<bool, Failure> {
    flag.is_wanted(applet, format.map(|_| "--format")).or_exit(exit::USAGE)
}

/// A line for each number below `count`.
fn numbered(words: &str, count: u32) -> String {
    (0..count).map(|number| format!("{words}{number}\n")).collect()
}

/// Runs a test and prints it in this format.
pub(super) fn run(options: Result<WorkersOptions, String>, common: &Common, form: Form) -> CommandResult {
    let options = options.and_then(|options| options.check().map(|()| options)).or_exit(exit::USAGE)?;
    let mut outputs = Outputs::open(common.record.as_deref());
    let line = StatusLine::default();
    let mut reporter = LinesReporter { options: &options, form, outputs: &mut outputs, line };
    let result = bench::workers::execute(&options, &mut reporter);
    reporter.line.show("");
    let run = result?;
    reporter.finish(&run);
    Ok(outputs.finish(&run, completeness))
}

/// Prints progress, in the lines of Android's tools where those are asked for.
struct LinesReporter<'t> {
    options: &'t WorkersOptions,
    form: Form,
    outputs: &'t mut Outputs,
    line: StatusLine,
}

impl LinesReporter<'_> {
    fn put(&mut self, line: &str) {
        if self.form == Form::Lines {
            self.outputs.stdout.put(line);
        }
    }

    /// The words about the processes that are started, of Android's tools.
    fn started(&mut self) {
        let mut text = String::new();
        for group in self.options.groups.iter().filter(|_| self.options.as_android) {
            text += &match self.options.flavour {
                Flavour::Binder => numbered("Created BinderWorker", group.workers),
                Flavour::Hwbinder => numbered("creating service: hwbinderService", group.services()),
                Flavour::Passthrough => String::new(),
            };
        }
        self.put(&text);
    }

    fn finish(&mut self, run: &Run) {
        if self.form != Form::Lines {
            self.outputs.stdout.put(&self.form.of(run));
            return;
        }
        let all = run.cases.iter().flat_map(|case| case.repetitions.iter().map(move |one| (case, one)));
        for (case, repetition) in all {
            let (Outcome::Measured(numbers) | Outcome::Failed { partial: Some(numbers), .. }) =
                &repetition.outcome
            else {
                continue;
            };
            let (rate, times) = if self.options.as_android {
                let binder = self.options.flavour == Flavour::Binder;
                (exact_rate_line(case, numbers), exact_time_lines(run, numbers, binder))
            } else {
                (rate_line(numbers), time_lines(run, numbers))
            };
            // The order differs between Android's two tools.
            let text = match self.options.flavour {
                Flavour::Binder => format!("{rate}collecting results\nkilling workers\n{times}"),
                Flavour::Hwbinder => {
                    format!("{rate}collecting results\n{times}killing services\nkilling workers\n")
                }
                Flavour::Passthrough => format!("{rate}collecting results\n{times}killing workers\n"),
            };
            self.outputs.stdout.put(&text);
        }
    }
}

const WAITING: &str = "waiting for workers to complete\n";

impl Observer for LinesReporter<'_> {
    fn is_wanted(&self) -> bool {
        self.outputs.are_wanted()
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
        if self.options.training {
            self.put("Start training round\n");
        }
        self.started();
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        self.put(WAITING);
        if self.form != Form::Lines {
            self.line.step(done, all, &run.cases[case].name);
        }
    }

    fn trained(&mut self, case: &Case, round: &Measurement) {
        let worst = round.samples.max;
        let text = if self.options.as_android {
            let (rate, line) = (exact_rate_line(case, round), training_line(worst));
            format!("{rate}collecting results\nkilling workers\n{line}")
        } else {
            format!("Max latency during training: {}ms\n", worst as f64 / 1e6)
        };
        self.put(&format!("{text}Completed training round\n\n"));
        self.started();
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
