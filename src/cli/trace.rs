//! The command `trace`: its commands.
//! Not here: tracefs (`ftrace`), Android's own recorder (`atrace`).

mod accuracy;
mod analyze;
mod ask;
mod compare;
mod config;
mod draw;
mod info;
mod overhead;
mod record;

use clap::{Args, Subcommand};
use ftrace::restore::{Restored, restore};

use super::{CommandResult, exit, say};

/// Record the kernel's trace events and those of the embedded driver, and analyse them
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Record(record::RecordArgs),
    Config(config::ConfigArgs),
    Info(info::InfoArgs),
    Analyze(analyze::AnalyzeArgs),
    Compare(compare::CompareArgs),
    Accuracy(accuracy::AccuracyArgs),
    Overhead(overhead::OverheadArgs),
    /// Restore what this program changed in the kernel's tracing, also after a crash
    ///
    /// Restores the settings of the shared trace buffer that `atrace` changed, and removes the trace instances of recorders
    /// that were killed (every other command does that, too). Names the instances of others and changes none of them.
    Restore,
}

/// Runs it.
pub(crate) fn run(args: TraceArgs) -> CommandResult {
    match args.command {
        Command::Record(args) => record::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Overhead(args) => overhead::run(&args),
        Command::Restore => restored(),
    }
}

fn restored() -> CommandResult {
    let Restored { lines, is_partial } = restore()?;
    say(&(lines.join("\n") + "\n"))?;
    Ok(if is_partial { exit::UNABLE } else { exit::FINE })
}
