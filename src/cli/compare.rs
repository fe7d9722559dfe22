//! The command `compare`: shows the differences between two groups of records, or among many devices.
//! Not here: comparing (`record::compare`, `record::across`), reading the records (crate `store`).

use std::path::PathBuf;

use clap::Args;
use record::across::By;
use record::compare::compare;
use store::across::read;

use super::choice;
use super::grouping::GROUPINGS;
use super::records::CompareFlags;
use super::{CommandResult, OrExit, exit, tell};

/// Compare records, or groups of them: differences of the environments, how much slower or faster each case is
///
/// A and B are each a record, a folder of records, or several separated by commas. Several runs of each side (12 find 5 %
/// on a noisy machine) say far more than one. `binderperf gate` fails on a regression. A record may also be the output of another
/// program: Google Benchmark's JSON, or what Android's Binder tests print.
///
/// With --across any number of records and folders, and the folders in them, are grouped by device, kernel or build;
/// those that stand out come first. `binderperf report --across` draws them.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A, the reference, and B, which is compared with it; with --across all records and folders
    #[arg(required = true, value_name = "RECORDS")]
    records: Vec<PathBuf>,

    /// Put all records beside one another, by device, kernel or build
    #[arg(help_heading = "Comparing", long, value_parser = choice::table(&GROUPINGS), value_name = "GROUPS", num_args = 0..=1, require_equals = true, default_missing_value = "device")]
    across: Option<By>,

    #[command(flatten)]
    flags: CompareFlags,
}

/// Compares them.
pub(crate) fn run(args: &CompareArgs) -> CommandResult {
    if let Some(grouping) = args.across {
        let found = read(&args.records, grouping, args.flags.metric(), tell)?;
        args.flags.sink().deliver(&args.flags.format.of_across(&found))?;
        return Ok(exit::FINE);
    }
    let [a, b] = args.records.as_slice() else {
        return Err(
            "two sides are compared: A and B; commas join the records of a side, --across takes any number",
        )
        .or_exit(exit::USAGE);
    };
    let (options, a, b) = args.flags.read(&a.to_string_lossy(), &b.to_string_lossy())?;
    let found = compare(&a, &b, &options).or_exit(exit::USAGE)?;
    args.flags.sink().deliver(&args.flags.format.of(&found))?;
    Ok(exit::FINE)
}
