//! The command `workload from`: makes a description of the load in a trace.
//! Not here: how (`workload::from_trace`).

use std::path::PathBuf;

use clap::Args;
use workload::from_trace::{Options, describe};
use workload::print;

use super::source::{PartArgs, of_trace, recording};
use crate::cli::output::Sink;
use crate::cli::{CommandResult, exit};

/// Describe the load of a trace: who calls whom, when, with which sizes, and what each call does; without any name
///
/// The description is text that can be read, changed and compared. It has processes `p1`, `p2` and so on, those with
/// most calls first, and no name, number or argument of the trace. `docs/workload.md` has its form and the rules by
/// which it is made.
#[derive(Clone, Debug, Args)]
pub(crate) struct FromArgs {
    /// A trace of any form that `trace analyze` reads
    trace: PathBuf,

    /// Write to FILE instead of the standard output
    #[arg(short, long = "out", value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    part: PartArgs,

    /// Take the first N calls, at most
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=262_143))]
    calls: u32,

    /// Only calls between the N processes with most calls
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    processes: u32,

    /// Seed of the sizes that the trace lacks; the same one gives the same description
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Describes it.
pub(super) fn run(args: &FromArgs) -> CommandResult {
    let sink = args.out.as_deref().map_or_else(Sink::stdout, Sink::file);
    let mut selection = args.part.selection();
    (selection.calls, selection.processes) = (args.calls as usize, args.processes as usize);
    let options = Options { selection, seed: args.seed };
    let workload = of_trace(&args.trace, describe(&recording(&args.trace)?, &options))?;
    sink.deliver(&print(&workload))?;
    Ok(exit::FINE)
}
