//! Room: `throughput serialisation`: what a call costs in serialisation alone.
//! Not here: the steps and their limit (`lab::serialisation`).

use clap::Args;
use lab::serialisation::{self, Flavour};

use super::super::choice;
use super::super::{complain, exit, say};

/// Measure what writing and reading a call's arguments costs, both ways, without any driver
#[derive(Debug, Args)]
pub(super) struct SerialisationArgs {
    /// Bytes of the vector; the limit is for 4
    #[arg(long, value_name = "BYTES", default_value_t = serialisation::LIMIT_PAYLOAD as u64,
        value_parser = clap::value_parser!(u64).range(0..=serialisation::LARGEST_PAYLOAD as u64))]
    payload: u64,

    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 101,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: u64,

    /// Only this flavour
    #[arg(long, value_name = "NAME", value_parser = choice::of(Flavour::ALL))]
    flavour: Option<Flavour>,

    /// Make just so many calls, and print nothing: for a counter of instructions
    #[arg(long, value_name = "N", conflicts_with_all = ["rounds", "strict"])]
    calls: Option<u64>,

    /// Exit with 1 when the limit is missed
    #[arg(long)]
    strict: bool,
}

/// Measures and prints a row per flavour.
pub(super) fn run(args: SerialisationArgs) -> u8 {
    // Checked against a limit that fits.
    let payload = args.payload as usize;
    let flavours =
        Flavour::ALL.into_iter().filter(|flavour| args.flavour.is_none_or(|only| only == *flavour));
    let mut end = exit::FINE;
    if args.calls.is_none() {
        end = say(serialisation::HEAD);
    }
    for flavour in flavours {
        end = end.max(match args.calls {
            Some(calls) => told(serialisation::repeat(flavour, payload, calls)),
            None => match serialisation::measure(flavour, payload, args.rounds as usize) {
                Ok(cost) if args.strict && cost.is_kept() == Some(false) => {
                    say(&format!("{cost}\n")).max(exit::FAILED)
                }
                Ok(cost) => say(&format!("{cost}\n")),
                Err(why) => told(Err(why)),
            },
        });
    }
    end
}

fn told(result: Result<(), String>) -> u8 {
    match result {
        Ok(()) => exit::FINE,
        Err(why) => {
            complain(why);
            exit::INTERNAL
        }
    }
}
