//! Room: `binderperf trace`: which of its commands, and the exit status of what can go wrong with tracing.
//! Not here: tracefs (`lab::trace`), Android's own recorder (`atrace`).

mod accuracy;
mod analyze;
mod ask;
mod draw;
mod info;
mod overhead;
mod perfetto;
mod record;

pub(super) use ask::answer;
pub(super) use draw::scenes;

use clap::{Args, Subcommand};
use lab::trace::atrace::Session;
use lab::trace::tracefs::Trouble;

use super::{complain, exit, say};

/// Record the kernel's trace events and those of the embedded driver, and say what they tell
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Record(record::RecordArgs),
    Info(info::InfoArgs),
    Analyze(analyze::AnalyzeArgs),
    Accuracy(accuracy::AccuracyArgs),
    Overhead(overhead::OverheadArgs),
    /// Put back what `atrace` changed in the buffer that all share, also after a crash
    Restore,
}

/// Runs it; the result is the exit status.
pub(crate) fn run(args: TraceArgs) -> u8 {
    match args.command {
        Command::Record(args) => record::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Overhead(args) => overhead::run(&args),
        Command::Restore => restore(),
    }
}

fn restore() -> u8 {
    match Session::new().and_then(|session| session.restore()) {
        Ok(true) => say("put back\n"),
        Ok(false) => say("nothing to put back\n"),
        Err(trouble) => {
            complain(&trouble);
            status(&trouble)
        }
    }
}

/// The exit status that tells of such trouble.
pub(super) fn status(trouble: &Trouble) -> u8 {
    match trouble {
        Trouble::Usage(_) => exit::USAGE,
        Trouble::Output { .. } => exit::INTERNAL,
        Trouble::Missing { .. }
        | Trouble::Denied { .. }
        | Trouble::InUse { .. }
        | Trouble::Refused { .. } => exit::UNABLE,
    }
}
