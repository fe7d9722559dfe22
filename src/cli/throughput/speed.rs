//! Room: `throughput embedded-speed`: the embedded driver beside this machine's floor, row by row.
//! Not here: what a row measures and is held to (`lab::speed`).

use std::path::PathBuf;

use clap::Args;
use lab::speed::{self, Effort};

use super::super::output::Sink;
use super::super::{complain, exit, say};

/// Hold the embedded driver to its targets, beside the floor of this machine
#[derive(Debug, Args)]
pub(super) struct SpeedArgs {
    /// Exit with 1 when a target is missed, or a row could not be measured
    #[arg(long)]
    strict: bool,

    /// Rounds of every row
    #[arg(long, value_name = "N", default_value_t = Effort::default().rounds as u64,
        value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Only rows, or groups of rows, in whose title TEXT stands: sleeping, pair, nodes, ...
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,

    /// Write the table to FILE, too, as JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Measures and prints every row.
pub(super) fn run(args: SpeedArgs) -> u8 {
    let effort = Effort { rounds: args.rounds as usize, only: args.only };
    if let Err(why) = effort.check() {
        complain(why);
        return exit::USAGE;
    }
    let mut record = args.record.as_deref().map(Sink::file);
    let mut end = say(&speed::head());
    let tell = |row: Result<&speed::Row, (&str, &str)>| {
        let text = match row {
            Ok(row) => format!("{row}\n"),
            Err((title, why)) => format!("{title:<36} not measured: {why}\n"),
        };
        end = end.max(say(&text));
    };
    let table = match speed::measure(effort, tell) {
        Ok(table) => table,
        Err(why) => {
            complain(why);
            return exit::FAILED;
        }
    };
    if let Some(record) = &mut record {
        match table.to_json() {
            Ok(text) => record.put(&text),
            Err(why) => complain(why),
        }
        if let Some(trouble) = record.trouble() {
            complain(trouble);
            end = end.max(exit::INTERNAL);
        }
    }
    // A shared machine may miss any target, and a script asks for that when it wants to know.
    if args.strict && !table.is_met() { end.max(exit::FAILED) } else { end }
}
