//! The same tests on many kernels: their builds, progress, and the tables.
//! Not here: measuring them (`bench::matrix`), the tables (`record::matrix`).

use bench::ab::RunFailure;
use bench::matrix::kernels::{self, Kernels, Source};
use bench::matrix::{MatrixOptions, Watcher, execute};
use console::building::{built, built_module};
use console::output::Sink;
use console::progress::StatusLine;
use console::{CommandResult, Failure, complain, exit, note, tell};
use record::compare::{Metric, Options};
use record::matrix::{Matrix, matrix};
use store::lock::FolderLock;
use vm::build::{BuildError, Built, BuiltModule, Wanted, WantedModule};

/// The kernels, built where they must be.
///
/// # Errors
/// None of them can be used.
pub fn prepared(kernels: Vec<(String, Source)>) -> Result<Kernels, String> {
    Kernels::prepare(kernels, &mut Builder, &mut |name, error| complain(format_args!("{name}: {error}")))
}

/// Measures and compares; the exit status is 3 if a part is missing.
///
/// # Errors
/// The tests are wrong, or an output cannot be written.
pub fn run(
    options: &MatrixOptions,
    kernels: &Kernels,
    metric: Metric,
    sink: impl FnOnce() -> Sink,
    form: impl FnOnce(&Matrix) -> Result<String, Failure>,
) -> CommandResult {
    let _lock = FolderLock::take(&options.folder, tell)?;
    let sink = sink();
    if let Some(trouble) = sink.trouble() {
        return Err(Failure::new(exit::INTERNAL, trouble));
    }
    let mut progress = ProgressReporter { line: StatusLine::default(), found: 0 };
    let measured = execute(options, &mut progress);
    progress.line.show("");
    let measured = measured?;
    if progress.found > 0 {
        let runs = if progress.found == 1 {
            "1 run was".to_owned()
        } else {
            format!("{} runs were", progress.found)
        };
        note(format_args!("{runs} there from an earlier call, in {}\n", options.folder.display()));
    }
    let compare = Options { metric, ..Options::default() };
    let kernels = kernels.judged(measured.kernels, measured.tests.len());
    let found = matrix(&measured.tests, &kernels, &compare);
    sink.deliver(&form(&found)?)?;
    if let Some(signal) = measured.stopped {
        note(format_args!("stopped by {signal}; the same command goes on\n"));
        return Ok(exit::FAILED);
    }
    Ok(if found.is_whole() { exit::FINE } else { exit::UNABLE })
}

/// Builds, and says on standard error what it does.
struct Builder;

impl kernels::Builder for Builder {
    fn kernel(&mut self, wanted: &Wanted) -> Result<Built, BuildError> {
        built(wanted)
    }

    fn module(&mut self, wanted: &WantedModule) -> Result<BuiltModule, BuildError> {
        built_module(wanted)
    }
}

/// Shows progress on the terminal.
struct ProgressReporter {
    line: StatusLine,
    found: usize,
}

impl Watcher for ProgressReporter {
    fn starts(&mut self, at: usize, of: usize, kernel: &str, test: &str) {
        self.line.show(&format!("run {at} of {of}: {kernel}, {test}"));
    }

    fn found(&mut self, _: &str, _: &str) {
        self.found += 1;
    }

    fn failed(&mut self, kernel: &str, why: &RunFailure) {
        self.line.show("");
        complain(format_args!("{kernel}: {why}"));
    }
}
