//! Room: `compare`: two groups of records into a table.
//! Not here: comparing (`record::compare`), reading the records (`super::records`).

use clap::Args;
use record::compare::compare;

use super::exit;
use super::records::{CompareFlags, cannot_compare, deliver};

/// Compare records, or groups of them: what differed around them, how much slower or faster each case is
///
/// A and B are each a record, a folder of records, or several with commas between. Several runs of each side (12 find 5 %
/// on a noisy machine) say far more than one. `binderperf gate` fails on a regression.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What B is held against
    a: String,

    /// What is slower or faster
    b: String,

    #[command(flatten)]
    flags: CompareFlags,
}

/// Compares them.
pub(crate) fn run(args: &CompareArgs) -> u8 {
    let (options, a, b) = match args.flags.read(&args.a, &args.b) {
        Ok(read) => read,
        Err(status) => return status,
    };
    match compare(&a, &b, &options) {
        Ok(found) => deliver(args.flags.sink(), &args.flags.format.of(&found), exit::FINE),
        Err(error) => cannot_compare(&error),
    }
}
