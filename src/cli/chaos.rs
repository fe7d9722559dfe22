//! The command `chaos`: its options and exit status.
//! Not here: the test (crate `chaos`).

use std::time::{Duration, SystemTime};

use chaos::{self, ChaosError, Fault, Options};
use clap::Args;

use super::driver::DriverArgs;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, say};

/// Test the driver with random traffic among processes that are killed and paused at random
#[derive(Clone, Debug, Args)]
pub(crate) struct ChaosArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Number of processes at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    processes: u8,

    /// Duration in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    seconds: u64,

    /// Random seed [default: the time]
    #[arg(long, value_name = "X")]
    seed: Option<u64>,

    /// Do not kill processes
    #[arg(long)]
    no_kill: bool,

    /// Seconds (more on a busy machine) after which a call counts as hanging
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Inject a fault into the first process, to see the test fail
    #[arg(long, value_name = "FAULT", hide = true)]
    inject: Option<Fault>,
}

/// Runs the test.
pub(crate) fn run(args: &ChaosArgs) -> CommandResult {
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    let located = conformance::find(&wanted).or_exit(exit::UNABLE)?;
    let options = Options {
        processes: args.processes.into(),
        length: Duration::from_secs(args.seconds),
        seed: args.seed.unwrap_or_else(seed),
        kill: !args.no_kill,
        patience: Duration::from_secs(args.patience),
        fault: args.inject,
    };
    match chaos::run(&located.context, &options) {
        Ok(summary) => say(&format!("chaos: passed, seed {}: {summary}\n", options.seed)),
        Err(ChaosError::Unable(why)) => Err(Failure::new(exit::UNABLE, why)),
        Err(ChaosError::Stopped(signal, tally)) => {
            let until = format!("nothing had failed until then: {tally}");
            // As above: that it was cut short is what counts.
            let _ = say(&format!("chaos: stopped by {signal}, seed {}; {until}\n", options.seed));
            Ok(exit::FAILED)
        }
        Err(ChaosError::Failed(complaints)) => {
            // The verdict is what counts, also when nobody reads it.
            let _ = say(&format!("chaos: FAILED, seed {}:\n  {}\n", options.seed, complaints.join("\n  ")));
            Ok(exit::FAILED)
        }
    }
}

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Whole ms are short enough to be typed again.
    now.as_millis() as u64
}
