//! The command `workload`: its commands.
//! Not here: descriptions and distances (crate `workload`), carrying a description out (`bench`).

mod distance;
mod figures;
mod from;
mod source;

use clap::{Args, Subcommand};

use super::CommandResult;

/// Describe the load of a trace as text, and judge how near a replay of it is
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    From(from::FromArgs),
    Figures(figures::FiguresArgs),
    Distance(distance::DistanceArgs),
}

/// Runs it.
pub(crate) fn run(args: &WorkloadArgs) -> CommandResult {
    match &args.command {
        Command::From(args) => from::run(args),
        Command::Figures(args) => figures::run(args),
        Command::Distance(args) => distance::run(args),
    }
}
