//! Room: `binderperf chaos`: typed words to `lab::chaos`.
//! Not here: the test (`lab::chaos`).

use std::time::{Duration, SystemTime};

use clap::Args;
use lab::chaos::{self, Fault, Options, Trouble};

use super::driver::DriverArgs;
use super::{A_YEAR_S, complain, exit, say};

/// Test the driver with random traffic among processes that are killed and paused at random
#[derive(Clone, Debug, Args)]
pub(crate) struct ChaosArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// How many processes there are at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    processes: u8,

    /// For how many seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    seconds: u64,

    /// Seed of what is random [default: from the clock]
    #[arg(long, value_name = "X")]
    seed: Option<u64>,

    /// Kill no process
    #[arg(long)]
    no_kill: bool,

    /// After how many seconds a call counts as hanging
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Have the first process do something wrong, to see the test fail
    #[arg(long, value_name = "FAULT", hide = true)]
    inject: Option<Fault>,
}

/// Runs the test; the result is the exit status.
pub(crate) fn run(args: &ChaosArgs) -> u8 {
    let wanted = match args.driver.wanted() {
        Ok(wanted) => wanted,
        Err(why) => {
            complain(why);
            return exit::USAGE;
        }
    };
    let located = match lab::conformance::find(&wanted) {
        Ok(located) => located,
        Err(error) => {
            complain(error);
            return exit::UNABLE;
        }
    };
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
        Err(Trouble::Unable(why)) => {
            complain(why);
            exit::UNABLE
        }
        Err(Trouble::Stopped(signal, tally)) => {
            let until = format!("nothing had failed until then: {tally}");
            // As above: that it was cut short is what counts.
            let _ = say(&format!("chaos: stopped by {signal}, seed {}; {until}\n", options.seed));
            exit::FAILED
        }
        Err(Trouble::Failed(complaints)) => {
            // The verdict is what counts, also when nobody reads it.
            let _ = say(&format!("chaos: FAILED, seed {}:\n  {}\n", options.seed, complaints.join("\n  ")));
            exit::FAILED
        }
    }
}

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Whole ms are short enough to be typed again.
    now.as_millis() as u64
}
