//! The command `workload`: its commands.
//! Not here: descriptions and distances (crate `workload`), processes and calls (`bench`).

mod distance;
mod figures;
mod from;
mod run;
mod source;

use clap::{Args, Subcommand};

use super::CommandResult;

/// Describe the load of a trace as text, carry it out anywhere, and judge how near that is
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    From(from::FromArgs),
    Run(Box<run::RunArgs>),
    Figures(figures::FiguresArgs),
    Distance(distance::DistanceArgs),
}

/// Runs it.
pub(crate) fn run(args: &WorkloadArgs) -> CommandResult {
    match &args.command {
        Command::From(args) => from::run(args),
        Command::Run(args) => run::run(args),
        Command::Figures(args) => figures::run(args),
        Command::Distance(args) => distance::run(args),
    }
}
