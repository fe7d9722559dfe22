//! Room: `binderperf trace overhead`: words into a plan, figures into a table.
//! Not here: measuring (`lab::trace::overhead`).

use clap::Args;
use lab::plan::Driver;
use lab::trace::accuracy::Trouble;
use lab::trace::overhead::{self, Ask, Found, Measured};

use crate::cli::choice;
use crate::cli::driver::DRIVERS;
use crate::cli::{complain, exit, say};

/// Say what recording costs a 4 B round trip: nothing, binder's events and the usual categories recorded in turns
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

const HEAD: &str = "recorded                4 B round trip   ratio\n";

/// Measures and prints a row for each way.
pub(super) fn run(args: &OverheadArgs) -> u8 {
    let ask = Ask { driver: args.driver, iterations: args.iterations, rounds: args.rounds };
    match overhead::measure(&ask) {
        Ok(Measured { found, rounds, stopped_by }) => {
            let rows: String = found.iter().map(row).collect();
            let said = if found.is_empty() { exit::FINE } else { say(&format!("{HEAD}{rows}")) };
            let Some(signal) = stopped_by else { return said };
            complain(format_args!("stopped by {signal}; this is of {rounds} of {} rounds", args.rounds));
            exit::FAILED
        }
        Err(Trouble::Tracing(trouble)) => {
            complain(&trouble);
            super::status(&trouble)
        }
        Err(trouble) => {
            complain(&trouble);
            exit::UNABLE
        }
    }
}

fn row(found: &Found) -> String {
    format!("{:<22} {:>12.2} us  {:>6.2}\n", found.way.name(), found.median / 1000.0, found.ratio)
}
