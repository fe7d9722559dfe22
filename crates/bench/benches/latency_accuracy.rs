//! Checks that the latency test finds known delays injected into a service on the embedded driver.
//! Not here: injecting and finding them (`bench::latency::accuracy`).

use std::process::ExitCode;

use bench::latency::accuracy::{self, HEAD};
use clap::Parser;

/// Put known delays into the service and check that the latency test finds each within 2 % + 20 us
#[derive(Debug, Parser)]
struct Args {
    /// Delays in us
    #[arg(long, value_name = "US,...", value_delimiter = ',', default_values_t = [100, 1000, 5000],
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    delays: Vec<u64>,

    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Exit with 1 when a delay is not found within its limit
    #[arg(long)]
    strict: bool,

    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if let Some(code) = bench::start_worker(&[]) {
        return code;
    }
    let args = Args::parse();
    let found = match accuracy::measure(&args.delays, args.rounds) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("latency_accuracy: {error}");
            return ExitCode::from(3);
        }
    };
    print!("{HEAD}");
    found.iter().for_each(|row| println!("{row}"));
    let missing = accuracy::rows(args.delays.len()) - found.len();
    if missing > 0 {
        eprintln!(
            "latency_accuracy: {missing} rows could not be measured: real-time threads may not be allowed"
        );
    }
    let wrong = missing > 0 || found.iter().any(|row| !row.is_right());
    ExitCode::from(u8::from(args.strict && wrong))
}
