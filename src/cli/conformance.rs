//! `binderperf conformance` and the suite's own helper processes: their options.
//! Not here: the tests (`conformance`), running them (`conduct::conformance`).

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use conduct::conformance::{Job, listed};
use conformance::{self, Fault, Item, Options, Totals};

use super::driver::DriverArgs;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, say};

/// Test the driver against every promise of the contract; results as KTAP
#[derive(Clone, Debug, Args)]
pub(crate) struct ConformanceArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Only items whose number starts with this or whose title contains it, as TX- or WR-03; commas separate several
    #[arg(long, value_name = "WORDS", default_value = "")]
    filter: String,

    /// List the items instead of testing them
    #[arg(long)]
    list: bool,

    /// Seconds (more on a busy machine) after which an item counts as hanging
    #[arg(long, value_name = "S", default_value_t = 60, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    limit: u64,

    /// Test the items in a random order, the same for each SEED; each must end as it does alone
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,

    /// End behind the first item that fails
    #[arg(long)]
    stop_at_failure: bool,

    /// Behave as kselftest does: each item of the plan has a line however the run ends, and the exit status is 4 where
    /// nothing could be tested
    #[arg(long)]
    for_ci: bool,

    /// Clear this file of the driver's before each item, and show its text after it
    #[arg(long, value_name = "FILE", hide = true)]
    read_after: Option<PathBuf>,

    /// Go on after results that were written before: how many passed, failed, were skipped, differed
    #[arg(long, value_name = "COUNTS", hide = true)]
    resume: Option<Totals>,

    /// Put faults in front of the driver, to see the tests fail
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', hide = true)]
    inject: Vec<Fault>,
}

/// Runs a helper of a suite under way
#[derive(Clone, Debug, Args)]
pub(crate) struct HelperArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl ConformanceArgs {
    /// The items in the order of the run.
    pub(crate) fn items(&self) -> Vec<&'static Item> {
        let mut items = conformance::select(&self.filter);
        if let Some(seed) = self.shuffle {
            conformance::shuffle(&mut items, seed);
        }
        items
    }

    /// Whether it ends behind the first item that fails.
    pub(crate) fn stops_at_failure(&self) -> bool {
        self.stop_at_failure
    }

    /// Whether it only lists the items.
    pub(crate) fn is_list(&self) -> bool {
        self.list
    }
}

/// Runs the suite.
pub(crate) fn run(args: &ConformanceArgs) -> CommandResult {
    let items = args.items();
    if items.is_empty() {
        let why = "in its number or title; see binderperf conformance --list";
        return Err(Failure::new(exit::USAGE, format_args!("no item has {:?} {why}", args.filter)));
    }
    if args.list {
        return say(&items.into_iter().map(listed).collect::<String>());
    }
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    let options = Options {
        faults: args.inject.clone(),
        limit: Duration::from_secs(args.limit),
        stop_at_failure: args.stop_at_failure,
        read_after: args.read_after.clone(),
    };
    let order = args.shuffle.map(|seed| format!("order of the items: --shuffle {seed}"));
    Job { wanted, items, order, options, resume: args.resume, for_ci: args.for_ci }.run()
}

/// Runs a helper.
pub(crate) fn help(args: &HelperArgs) -> CommandResult {
    conformance::helper_main(&args.words).or_exit(exit::INTERNAL)?;
    Ok(exit::FINE)
}
