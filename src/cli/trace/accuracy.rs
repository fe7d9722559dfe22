//! `binderperf trace accuracy`: words into causes, what was found into a table and an exit status.
//! Not here: putting causes in and looking for them (`bench::tracing::accuracy`).

use std::path::PathBuf;

use bench::plan::Driver;
use bench::tracing::accuracy::{self, AccuracyOptions, AccuracySummary, Cause, HEAD};
use clap::Args;
use store::lock::FolderLock;

use crate::cli::choice;
use crate::cli::driver::DRIVERS;
use crate::cli::{CommandResult, Failure, exit, note, say, status_of, tell};

/// Put known causes into calls, and see whether the analysis of a trace names them
///
/// Each cause is put into a latency test, which is recorded, as is the same test without it. Which calls it befell is
/// told by the caller's own clock. At least 95 % of them must be named, and the cause for at most 2 % of the calls that
/// were not befallen.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccuracyArgs {
    /// Which of them
    #[arg(long, value_name = "CAUSE,...", value_delimiter = ',', default_values_t = Cause::ALL, value_parser = choice::of(Cause::ALL))]
    causes: Vec<Cause>,

    /// Calls of the real-time caller with each cause, and as many without
    #[arg(short = 'i', long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations: u32,

    /// The kernel's driver, the embedded one in user space, or the kernel's if it can be used
    #[arg(long, value_name = "DRIVER", default_value_t = Driver::Auto, value_parser = choice::of(DRIVERS))]
    driver: Driver,

    /// Keep recordings and records in this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    keep: Option<PathBuf>,

    /// Write the tests' marks into the shared buffer, too, for another recorder at the same time (Linux 6.16 or later)
    #[arg(long)]
    shared_marks: bool,
}

/// Measures and prints a row for each cause, with some verdicts that were wrong.
pub(super) fn run(args: &AccuracyArgs) -> CommandResult {
    let keep = args.keep.as_deref();
    let _lock = keep.map(|folder| FolderLock::take_without(folder, accuracy::is_kept, tell)).transpose()?;
    let options = AccuracyOptions {
        causes: args.causes.clone(),
        driver: args.driver,
        iterations: args.iterations,
        keep: args.keep.clone(),
        shared_marks: args.shared_marks,
    };
    let mut status = status_of(say(HEAD));
    let AccuracySummary { left_out, stopped_by } = accuracy::measure(&options, &mut |found| {
        let right = match found.is_right() {
            true => exit::FINE,
            false if !found.is_enough() && found.stolen > 0 => exit::UNABLE,
            false => exit::FAILED,
        };
        status = status.max(right).max(status_of(say(&found.to_string())));
    })?;
    left_out.iter().for_each(|(cause, why)| note(format_args!("{cause}: left out: {why}\n")));
    let Some(signal) = stopped_by else { return Ok(status) };
    Err(Failure::new(exit::FAILED, format_args!("stopped by {signal}; what was found until then is told")))
}
