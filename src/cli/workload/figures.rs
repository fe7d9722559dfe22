//! The command `workload figures`: the figures of the load in a trace.
//! Not here: their values (`workload::figures`).

use std::path::PathBuf;

use clap::Args;

use super::source::{PartArgs, of_trace, recording};
use crate::cli::output::Sink;
use crate::cli::{CommandResult, OrExit, exit};

/// Show the figures of the load in a trace: calls, latency, calls at once, switches and wake-ups, by pair of processes
#[derive(Clone, Debug, Args)]
pub(crate) struct FiguresArgs {
    /// A trace of any form that `trace analyze` reads
    trace: PathBuf,

    #[command(flatten)]
    part: PartArgs,

    /// JSON, with every pair
    #[arg(long)]
    json: bool,
}

/// Shows them.
pub(super) fn run(args: &FiguresArgs) -> CommandResult {
    let recording = recording(&args.trace)?;
    let figures = of_trace(&args.trace, recording.select(&args.part.selection()))?.figures();
    let text = match args.json {
        true => figures.to_json().or_exit(exit::INTERNAL)?,
        false => figures.to_string(),
    };
    Sink::stdout().deliver(&text)?;
    Ok(exit::FINE)
}
