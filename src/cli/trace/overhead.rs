//! `binderperf trace overhead`: words into a plan, figures into a table.
//! Not here: measuring (`bench::tracing::overhead`).

use bench::plan::Driver;
use bench::tracing::overhead::{self, HEAD, OverheadOptions, OverheadResult};
use clap::Args;

use crate::cli::choice;
use crate::cli::driver::DRIVERS;
use crate::cli::{CommandResult, Failure, exit, say};

/// Say what recording costs a 4 B round trip: with nothing recorded, with top, binder's events and the usual categories in turns
#[derive(Clone, Debug, Args)]
pub(crate) struct OverheadArgs {
    /// Round trips of each in each round
    #[arg(short = 'i', long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    iterations: u32,

    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The kernel's driver, the embedded one in user space, or the kernel's if it can be used
    #[arg(long, value_name = "DRIVER", default_value_t = Driver::Auto, value_parser = choice::of(DRIVERS))]
    driver: Driver,
}

/// Measures and prints a row for each way.
pub(super) fn run(args: &OverheadArgs) -> CommandResult {
    let options = OverheadOptions { driver: args.driver, iterations: args.iterations, rounds: args.rounds };
    let OverheadResult { found, rounds, stopped_by } = overhead::measure(&options)?;
    if !found.is_empty() {
        let rows: String = found.iter().map(ToString::to_string).collect();
        say(&format!("{HEAD}{rows}"))?;
    }
    let Some(signal) = stopped_by else { return Ok(exit::FINE) };
    let why = format!("stopped by {signal}; this is of {rounds} of {} rounds", args.rounds);
    Err(Failure::new(exit::FAILED, why))
}
