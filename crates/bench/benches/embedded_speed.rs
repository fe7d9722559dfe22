//! Measures the embedded driver against its limits and the floor of this machine, row by row.
//! Not here: the rows and their limits (`bench::speed`).
//!
//! `cargo bench -p bench --bench embedded_speed -- --only sleeping --rounds 3`

use std::process::ExitCode;

use bench::speed;
use clap::Parser;

/// Hold the embedded driver to its limits, beside the floor of this machine
#[derive(Debug, Parser)]
struct Args {
    /// Exit with 1 when a limit is missed, or a row could not be measured
    #[arg(long)]
    strict: bool,

    /// Rounds of every row
    #[arg(long, value_name = "N", default_value_t = 9,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Only rows, or groups of rows, whose title contains TEXT: sleeping, pair, nodes, ...
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,

    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if let Some(code) = bench::start_worker(&[speed::ROLE]) {
        return code;
    }
    let args = Args::parse();
    match run(&args) {
        Ok(is_met) if is_met || !args.strict => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(why) => {
            eprintln!("embedded_speed: {why}");
            ExitCode::from(2)
        }
    }
}

/// Measures and prints every row; returns true if all are within their limits.
fn run(args: &Args) -> Result<bool, String> {
    speed::check(&args.only)?;
    print!("{}", speed::head());
    speed::measure(args.rounds as usize, &args.only, |row| match row {
        Ok(row) => println!("{row}"),
        Err((title, why)) => println!("{title:<36} not measured: {why}"),
    })
}
