//! The command `compare`: shows the differences between two groups of records.
//! Not here: comparing (`record::compare`), reading the records (`super::records`).

use clap::Args;
use record::compare::compare;

use super::records::CompareFlags;
use super::{CommandResult, OrExit, exit};

/// Compare records, or groups of them: differences of the environments, how much slower or faster each case is
///
/// A and B are each a record, a folder of records, or several separated by commas. Several runs of each side (12 find 5 %
/// on a noisy machine) say far more than one. `binderperf gate` fails on a regression.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The reference that B is compared with
    a: String,

    /// The records to compare with A
    b: String,

    #[command(flatten)]
    flags: CompareFlags,
}

/// Compares them.
pub(crate) fn run(args: &CompareArgs) -> CommandResult {
    let (options, a, b) = args.flags.read(&args.a, &args.b)?;
    let found = compare(&a, &b, &options).or_exit(exit::USAGE)?;
    args.flags.sink().deliver(&args.flags.format.of(&found))?;
    Ok(exit::FINE)
}
