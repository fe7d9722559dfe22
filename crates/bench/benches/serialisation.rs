//! Measures the cost of writing and reading a call's arguments, in both directions, without a driver.
//! Not here: the steps and their limit (`bench::serialisation`), instruction counts (`steps`).

use std::process::ExitCode;

use bench::serialisation::{self, Flavour};
use clap::Parser;

/// Measure what writing and reading a call's arguments costs, both ways, without any driver
#[derive(Debug, Parser)]
struct Args {
    /// Bytes of the vector; the limit is for 4
    #[arg(long, value_name = "BYTES", default_value_t = serialisation::LIMIT_PAYLOAD as u64,
        value_parser = clap::value_parser!(u64).range(0..=serialisation::LARGEST_PAYLOAD as u64))]
    payload: u64,

    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 101,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: u64,

    /// Exit with 1 when the limit is missed
    #[arg(long)]
    strict: bool,

    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut failed = false;
    print!("{}", serialisation::HEAD);
    for flavour in Flavour::ALL {
        match serialisation::measure(flavour, args.payload as usize, args.rounds as usize) {
            Ok(cost) => {
                println!("{cost}");
                failed |= args.strict && cost.is_kept() == Some(false);
            }
            Err(why) => {
                eprintln!("serialisation: {why}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
