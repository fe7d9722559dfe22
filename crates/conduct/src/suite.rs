//! All tests after one another: each result is kept at once, then a report and a summary.
//! Not here: the list of tests (`bench::suite`), the report's contents (`record::render::report`), guests (`fleet`).

use std::time::Duration;

use bench::suite::{self, Experiment, SuiteEnd, SuiteObserver, SuiteOptions, SuitePart};
use console::progress::{self, StatusLine};
use console::{Failure, OrExit, complain, exit, note, say, status_of};
use host::klog;
use record::checkup::Checkup;
use record::render::report::{RunProblem, verdicts};
use record::verdict::Grade;
use record::{DriverKind, Finding, Run};
use store::run::Folder;

use crate::measure::chosen;

/// Hint on how to measure a kernel's driver.
const IN_A_VM: &str =
    "binderperf run --vm measures the driver of a real kernel, in a VM (--vm=X: that kernel).\n";

/// Runs on this machine: on its own driver or the embedded one. `klog_check`: the kernel's complaints are kept, too;
/// `for_a_copy`: progress is reported for another copy of this program.
///
/// # Errors
/// There is no driver, or the kernel's log cannot be read.
pub fn run(
    options: &SuiteOptions,
    klog_check: bool,
    for_a_copy: bool,
    folder: &mut Folder,
) -> Result<(), Failure> {
    let watch = klog_check.then(klog::Watch::begin).transpose().or_exit(exit::UNABLE)?;
    let mut line = StatusLine::default();
    line.show("looking at the machine");
    let checkup = Some(doctor::examine_here());
    let mut progress = ProgressReporter { line, for_a_copy, folder, checkup };
    let ended = suite::execute(options, &mut progress);
    progress.line.show("");
    if !matches!(ended, SuiteEnd::NoDriver(_)) {
        watch.into_iter().for_each(|watch| folder.keep_complaints(watch.end()));
    }
    match ended {
        SuiteEnd::Whole => Ok(()),
        SuiteEnd::Interrupted => {
            note("Stopped by a signal: what was measured until then is kept.\n");
            Ok(())
        }
        SuiteEnd::NoDriver(error) => {
            complain(error);
            note(IN_A_VM);
            Err(Failure { status: exit::UNABLE, message: None })
        }
    }
}

/// Shows progress, and stores each result at once.
struct ProgressReporter<'f> {
    line: StatusLine,
    for_a_copy: bool,
    folder: &'f mut Folder,
    /// The doctor's findings before the first test; stored once a test begins.
    checkup: Option<Checkup>,
}

impl SuiteObserver for ProgressReporter<'_> {
    fn begins(&mut self, run: &Run) {
        if let Some(checkup) = self.checkup.take() {
            self.folder.keep_checkup(checkup);
        }
        self.line.show("");
        note(chosen(run).unwrap_or_default());
        let by_itself = run.driver.as_ref().filter(|driver| driver.choice == "auto");
        if by_itself.is_some_and(|driver| driver.kind == DriverKind::Embedded) {
            note(IN_A_VM);
        }
    }

    fn advanced(&mut self, part: SuitePart, done: u64, all: u64, left: Duration) {
        let (name, seconds) = (part.name(), left.as_secs());
        if self.for_a_copy {
            note(progress::line(done as usize, all as usize, name) + "\n");
        } else {
            self.line.show(&format!("{name} {done}/{all}, about {seconds} s left"));
        }
    }

    fn repeats(&mut self, part: SuitePart, why: &Finding) {
        self.line.show("");
        note(format_args!("{} was disturbed and is measured once more: {}\n", part.name(), why.text));
    }

    fn kept_first(&mut self, part: SuitePart, run: Run) {
        self.folder.keep_first(part.name(), &run);
    }

    fn kept(&mut self, part: SuitePart, run: Run) {
        self.folder.keep(part.name(), run);
    }

    fn missing(&mut self, part: SuitePart, why: String) {
        // These need rights that the tests do without.
        let problem = match part {
            SuitePart::Experiment(Experiment::Inversion | Experiment::Background) => {
                RunProblem::not_here(part.name(), why)
            }
            _ => RunProblem::not_run(part.name(), why),
        };
        self.folder.bundle.troubles.push(problem);
    }
}

/// Writes the report and the summary; returns the exit status.
pub fn present(folder: &mut Folder) -> u8 {
    folder.explain();
    let report = folder.report();
    let printed = status_of(say(&folder.summary(report.as_deref())));
    let troubles = folder.troubles();
    troubles.iter().for_each(complain);
    let tests = verdicts(&folder.bundle);
    let bad = tests.iter().flat_map(|test| &test.verdicts).any(|verdict| verdict.grade == Grade::Bad);
    if !troubles.is_empty() || printed != exit::FINE {
        exit::INTERNAL
    } else if folder.bundle.runs.is_empty() {
        exit::UNABLE
    } else if bad {
        exit::FAILED
    } else {
        exit::FINE
    }
}
