//! Tests with many workers: their progress and results, also in the lines of Android's tools.
//! Not here: measuring (`bench::workers`), the lines (`record::render::crowd`).

use std::path::Path;

use bench::plan::Flavour;
use bench::run::Observer;
use bench::workers::WorkersOptions;
use console::progress::StatusLine;
use console::{CommandResult, OrExit, exit, note};
use record::render::crowd::{exact_rate_line, exact_time_lines, rate_line, time_lines, training_line};
use record::{Case, Measurement, Outcome, Run};

use crate::measure::{Outputs, chosen, completeness};

/// A line for each number below `count`.
fn numbered(words: &str, count: u32) -> String {
    (0..count).map(|number| format!("{words}{number}\n")).collect()
}

/// Runs a test and prints it: as a whole, else in the lines of Android's tools.
///
/// # Errors
/// The options are wrong, or it could not be measured.
pub fn run(
    options: Result<WorkersOptions, String>,
    record: Option<&Path>,
    whole: Option<&dyn Fn(&Run) -> String>,
) -> CommandResult {
    let options = options.and_then(|options| options.check().map(|()| options)).or_exit(exit::USAGE)?;
    let mut outputs = Outputs::open(None, record);
    outputs.have_failed();
    let line = StatusLine::default();
    let mut reporter = LinesReporter { options: &options, whole, outputs: &mut outputs, line };
    let result = bench::workers::execute(&options, &mut reporter);
    reporter.line.show("");
    let run = result?;
    reporter.finish(&run);
    Ok(outputs.finish(&run, completeness))
}

/// Prints progress, in the lines of Android's tools where those are asked for.
struct LinesReporter<'t> {
    options: &'t WorkersOptions,
    whole: Option<&'t dyn Fn(&Run) -> String>,
    outputs: &'t mut Outputs,
    line: StatusLine,
}

impl LinesReporter<'_> {
    fn put(&mut self, line: &str) {
        if self.whole.is_none() {
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
        if let Some(whole) = self.whole {
            self.outputs.stdout.put(&whole(run));
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
        if self.whole.is_some() {
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
