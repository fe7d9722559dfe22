//! Room: `latency accuracy`: whether known delays are found by the latency test.
//! Not here: injecting and finding them (`lab::latency::accuracy`).

use clap::Args;
use lab::latency::accuracy::{self, HEAD};

use super::super::{cannot_run, complain, exit, say};

/// Put known delays into the service, on the embedded driver, and see whether the latency test finds them: within 2 % + 20 us
#[derive(Debug, Args)]
pub(super) struct AccuracyArgs {
    /// Delays in us
    #[arg(long, value_name = "US,...", value_delimiter = ',', default_values_t = [100, 1000, 5000],
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    delays: Vec<u64>,

    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Exit with 1 when one is not found within its limit
    #[arg(long)]
    strict: bool,
}

/// Measures and prints a row for each delay, way and class.
pub(super) fn run(args: &AccuracyArgs) -> u8 {
    match accuracy::measure(&args.delays, args.rounds) {
        Ok(found) => {
            let rows: String = found.iter().map(|row| format!("{row}\n")).collect();
            let all = accuracy::rows(args.delays.len());
            if found.len() < all {
                complain(format_args!(
                    "{} of {all} rows could not be measured: real-time threads may not be allowed",
                    all - found.len()
                ));
            }
            let wrong = args.strict && (found.len() < all || found.iter().any(|row| !row.is_right()));
            say(&format!("{HEAD}{rows}")).max(if wrong { exit::FAILED } else { exit::FINE })
        }
        Err(error) => cannot_run(&error),
    }
}
