//! What commands that measure have in common: options are checked, outputs opened before anything runs, progress is
//! shown, the record is written, and the verdict becomes an exit status.
//! Not here: Google Benchmark's dialect, which differs in all of that (`gbench`).

use std::path::Path;

use bench::run::{Observer, RunError};
use record::{LimitedMemory, Run};

use console::output::Sink;
use console::progress::StatusLine;
use console::{CommandResult, OrExit, complain, exit, note};

/// Executes a measurement, prints its result and writes its record; the verdict is the exit status.
///
/// # Errors
/// The options are wrong, or it could not be measured.
pub fn measure<O>(
    options: Result<O, String>,
    record: Option<&Path>,
    execute: impl FnOnce(&O, &mut dyn Observer) -> Result<Run, RunError>,
    print: impl FnOnce(&Run) -> String,
    verdict: impl FnOnce(&Run) -> u8,
) -> CommandResult {
    let options = options.or_exit(exit::USAGE)?;
    let mut outputs = Outputs::open(None, record);
    outputs.have_failed();
    let mut progress = ProgressReporter(StatusLine::default());
    let result = execute(&options, &mut progress);
    progress.0.show("");
    let run = result?;
    let text = print(&run);
    outputs.stdout.put(&text);
    let memory = run.constraints.as_ref().and_then(|held| held.memory.as_ref()).map(LimitedMemory::line);
    if let Some(line) = memory.filter(|line| !text.contains(line)) {
        note(line + "\n");
    }
    Ok(outputs.finish(&run, verdict))
}

/// Where the result of a measurement goes.
pub(crate) struct Outputs {
    pub(crate) stdout: Sink,
    /// A file for what the standard output has, in another form.
    pub(crate) out: Option<Sink>,
    record: Option<Sink>,
}

impl Outputs {
    /// Opens the files, if there are to be any. A bad path is to be reported now, and once more at the end: the run is worth
    /// its result on the standard output.
    pub(crate) fn open(out: Option<&Path>, record: Option<&Path>) -> Self {
        Self { stdout: Sink::stdout(), out: out.map(Sink::in_parts), record: record.map(Sink::file) }
    }

    /// Whether anything still reads or keeps the result.
    pub(crate) fn are_wanted(&self) -> bool {
        self.record.is_some() || self.out.is_some() || !self.stdout.is_closed()
    }

    /// Reports outputs that failed; returns whether any did.
    pub(crate) fn have_failed(&self) -> bool {
        let all = std::iter::once(&self.stdout).chain(&self.out).chain(&self.record);
        let failed: Vec<String> = all.filter_map(Sink::trouble).collect();
        failed.iter().for_each(complain);
        !failed.is_empty()
    }

    /// Puts the files in their places.
    pub(crate) fn keep(&mut self, run: &Run) {
        if let Some(out) = &mut self.out {
            out.keep(run.complete);
        }
        if let Some(record) = &mut self.record {
            record.keep_record(run);
        }
    }

    /// Writes the record and reports outputs that failed; returns the exit status.
    pub(crate) fn finish(mut self, run: &Run, verdict: impl FnOnce(&Run) -> u8) -> u8 {
        self.keep(run);
        let status = verdict(run);
        if self.have_failed() { exit::INTERNAL } else { status }
    }
}

/// One line about the driver of a run and why it was chosen.
pub fn chosen(run: &Run) -> Option<String> {
    let driver = run.driver.as_ref()?;
    Some(format!("Driver: {} ({}): {}.\n", driver.kind.name(), driver.details(), driver.reason))
}

/// Reports why a run ended early, if it did; returns the exit status.
pub fn completeness(run: &Run) -> u8 {
    let Some(reason) = &run.incomplete_reason else { return exit::FINE };
    complain(format_args!("{reason}; what was measured until then is kept"));
    exit::FAILED
}

/// Shows the chosen driver, then the progress, on a terminal's last line.
struct ProgressReporter(StatusLine);

impl Observer for ProgressReporter {
    fn begins(&mut self, run: &Run) {
        note(chosen(run).unwrap_or_default());
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        if let Some(case) = run.cases.get(case) {
            // A sweep's points are all pairs of one case.
            self.0.step(done, all, case.name.split("/pair:").next().unwrap_or(&case.name));
        }
    }

    fn advanced(&mut self, made: u64, all: u64) {
        self.0.show(&format!("{made} of {all} calls"));
    }
}
