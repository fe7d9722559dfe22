//! Room: `throughput embedded-speed`: the embedded driver beside this machine's floor, row by row.
//! Not here: what a row measures and is held to (`lab::speed`).

use lab::speed;

use super::super::{complain, exit, say};

/// Repetitions of each case, and how long each lasts at least.
const REPETITIONS: u32 = 3;
const SECONDS: f64 = 0.3;

/// Measures and prints every row; the exit status says whether all targets are met.
pub(super) fn run() -> u8 {
    let mut end = say(&speed::head());
    for goal in speed::GOALS {
        match speed::measure(goal, REPETITIONS, SECONDS) {
            Ok(row) => {
                end = end.max(say(&format!("{row}\n")));
                if !row.is_met() {
                    end = end.max(exit::FAILED);
                }
            }
            Err(why) => {
                complain(format_args!("{}: {why}", goal.title));
                end = end.max(exit::UNABLE);
            }
        }
    }
    end
}
