//! The command `ab`: measures two kernels, drivers or settings alternately and compares them.
//! Not here: measuring them (`conduct::ab`, `bench::ab`), comparing (`record::compare`), what a gate is (`super::gate`).

use std::path::PathBuf;
use std::time::Duration;

use bench::ab::{AbOptions, Side};
use clap::Args;
use record::compare::Options;
use record::compare::gate::judge;

use super::gate::{CannotTell, shown};
use super::records::CompareFlags;
use super::{A_YEAR_S, CommandResult, OrExit, exit};
use units::typed::Percent;
use units::typed::duration;

/// Measure two kernels, drivers or settings alternately until it is clear which is slower
///
/// A side is KEY=VALUE, several separated by commas, or '' for the unchanged test:
///   kernel=FILE-OR-NAME   boot it (as vm --kernel); vm.FLAG=VALUE passes a further flag to vm
///   binary=FILE           another build of binderperf
///   env.NAME=VALUE        an environment variable
///   FLAG=VALUE            any flag of the test, without its dashes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AbArgs {
    /// One side
    #[arg(long, value_name = "SIDE", allow_hyphen_values = true)]
    a: Side,

    /// The side that is compared with A
    #[arg(long, value_name = "SIDE", allow_hyphen_values = true)]
    b: Side,

    /// Time limit: no pair of runs starts that would end later: 90, 90s, 5m, 1h
    #[arg(help_heading = "When to stop", long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    budget: Duration,

    /// Stop once the half-width of every interval is at most this
    #[arg(help_heading = "When to stop", long, value_name = "PERCENT", default_value = "1%")]
    until_width: Percent,

    /// Stop after N pairs of runs
    #[arg(help_heading = "When to stop", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: Option<u32>,

    /// Count guest instructions in one boot of each side instead of timing
    #[arg(long, conflicts_with_all = ["budget", "until_width", "pairs"])]
    icount: bool,

    /// Fail if B is certainly slower by more than this
    #[arg(help_heading = "Verdict", long, value_name = "PERCENT")]
    max_regress: Option<Percent>,

    /// The exit status if the result is inconclusive
    #[arg(help_heading = "Verdict", long, value_enum, value_name = "WHAT", default_value_t = CannotTell::Unable, requires = "max_regress")]
    cannot_tell: CannotTell,

    /// Folder for the records [default: binderperf-ab-SEED]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    records: Option<PathBuf>,

    /// Longest time of one run in seconds
    #[arg(help_heading = "When to stop", long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Seed of the order of sides [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    flags: CompareFlags,

    /// The test and its flags
    #[arg(value_name = "TEST", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    test: Vec<String>,
}

/// Measures and compares.
pub(crate) fn run(args: &AbArgs) -> CommandResult {
    let options = args.options().or_exit(exit::USAGE)?;
    let format = args.flags.format;
    conduct::ab::run(
        &options,
        || args.flags.sink(),
        |found| match args.max_regress {
            Some(limit) => {
                let gated = judge(found, limit.0);
                (shown(&gated, format), args.cannot_tell.status(gated.outcome))
            }
            None => (format.of(&found), exit::FINE),
        },
    )
}

impl AbArgs {
    fn options(&self) -> Result<AbOptions, String> {
        let seed = self.seed.unwrap_or_else(bench::plan::fresh_seed);
        let limit = self.max_regress.map(|limit| limit.0);
        Ok(AbOptions {
            sides: [self.a.clone(), self.b.clone()],
            test: self.test.clone(),
            budget: self.budget,
            until_width: self.until_width.0,
            pairs: self.pairs.map(|pairs| pairs as usize),
            icount: self.icount,
            folder: self.records.clone().unwrap_or_else(|| PathBuf::from(format!("binderperf-ab-{seed:x}"))),
            patience: Duration::from_secs(self.patience),
            options: Options { limit, ..self.flags.options()? },
            seed,
        })
    }
}
