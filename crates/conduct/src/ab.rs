//! Two sides that are measured in turns: progress, and how their comparison ends.
//! Not here: measuring them (`bench::ab`), comparing (`record::compare`).

use std::time::Duration;

use bench::ab::{AbOptions, Ended, Observer, Outcome, RunFailure, execute, is_record_of};
use console::output::Sink;
use console::progress::StatusLine;
use console::{CommandResult, Failure, complain, exit, note, tell};
use record::compare::Comparison;
use store::lock::FolderLock;

/// Measures and compares; `verdict` makes a text and an exit status of what was found.
///
/// # Errors
/// A side has no run, or an output cannot be written.
pub fn run(
    options: &AbOptions,
    sink: impl FnOnce() -> Sink,
    verdict: impl FnOnce(Comparison) -> (String, u8),
) -> CommandResult {
    let _lock = FolderLock::take_without(&options.folder, |name| is_record_of(name, &["a", "b"]), tell)?;
    let sink = sink();
    if let Some(trouble) = sink.trouble() {
        return Err(Failure::new(exit::INTERNAL, trouble));
    }
    let mut progress = ProgressReporter { line: StatusLine::default(), budget: options.budget };
    let outcome = execute(options, &mut progress);
    progress.line.show("");
    present(options, outcome?, sink, verdict)
}

fn present(
    options: &AbOptions,
    outcome: Outcome,
    sink: Sink,
    verdict: impl FnOnce(Comparison) -> (String, u8),
) -> CommandResult {
    let [a, b] = &outcome.groups;
    note(format_args!(
        "{} and {} runs, {}. Records: {}\n",
        a.members.len(),
        b.members.len(),
        outcome.ended,
        options.folder.display()
    ));
    let broken = matches!(outcome.ended, Ended::Broken(_));
    let stopped = matches!(outcome.ended, Ended::Stopped(_));
    let found = match outcome.compared {
        Ok(found) => found,
        Err(_) if broken || a.members.is_empty() || b.members.is_empty() => {
            let status = match outcome.ended {
                Ended::Broken('B') if options.options.limit.is_some() => exit::FAILED,
                _ => exit::UNABLE,
            };
            return Err(Failure::new(status, "nothing to compare: one side has no run"));
        }
        Err(error) => return Err(Failure::new(exit::USAGE, error)),
    };
    let (text, status) = verdict(found);
    sink.deliver(&text)?;
    Ok(match status {
        exit::FINE if broken => exit::UNABLE,
        exit::FINE if stopped => exit::FAILED,
        status => status,
    })
}

/// Shows progress on the terminal.
struct ProgressReporter {
    line: StatusLine,
    budget: Duration,
}

impl Observer for ProgressReporter {
    fn starts(&mut self, pair: usize, side: char, elapsed: Duration, half_width: Option<f64>) {
        let width = half_width.map(|half| format!(", intervals +-{:.1} %", half * 100.0)).unwrap_or_default();
        let (elapsed, budget) = (elapsed.as_secs(), self.budget.as_secs());
        self.line.show(&format!("pair {} {side}, {elapsed} of at most {budget} s{width}", pair + 1));
    }

    fn failed(&mut self, side: char, why: &RunFailure) {
        self.line.show("");
        complain(format_args!("side {side}: {why}"));
    }
}
