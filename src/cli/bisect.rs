//! The command `bisect-step`: a gate with the exit statuses of `git bisect run`.
//! Not here: the step (`conduct::bisect`), the gate (`record::compare::gate`), measuring (`bench::ab`).
//! Facts: git-bisect(1): 0 is good, 125 cannot be tested, 1 to 127 else is bad, from 128 on the bisection stops.

use std::path::PathBuf;
use std::time::Duration;

use bench::ab::Side;
use clap::Args;
use conduct::bisect::{BAD, GOOD, Kernel, SKIP, STOP, Step};
use record::compare::CannotCompare;
use record::compare::gate::{GateOutcome, gate};
use store::records::group;
use units::typed::Percent;
use vm::build::WantedModule;

use super::gate::shown;
use super::kernels::KindArgs;
use super::records::CompareFlags;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, status_of, tell};

/// The command's name.
pub(super) const NAME: &str = "bisect-step";

/// Answer good, bad or skip to `git bisect run`: is this commit slower than a baseline?
///
/// A gate with git's exit statuses. A commit that cannot be measured is skipped; with
/// --build or --build-driver, so is one that does not build or boot. Measure the baseline once, preferably
/// in twelve runs, on the machine that the bisection runs on.
#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// Records of a good commit: a file, a folder, or several separated by commas
    #[arg(long, value_name = "RECORDS")]
    baseline: String,

    /// How much slower than the baseline a good commit may be
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    max_regress: Percent,

    /// The side to measure, as for `ab`: kernel=FILE, binary=FILE, FLAG=VALUE
    #[arg(
        help_heading = "Measuring",
        long,
        value_name = "SIDE",
        default_value = "",
        allow_hyphen_values = true
    )]
    side: Side,

    /// Build the kernel that git has checked out, and measure in a guest on it
    #[arg(help_heading = "Build", long, conflicts_with = "given")]
    build: bool,

    /// Build only the driver that git has checked out, as vm build-driver does, and measure in a guest on this kernel
    /// of Debian's: newest, 7.2
    #[arg(help_heading = "Build", long, value_name = "KERNEL", conflicts_with_all = ["given", "build"])]
    build_driver: Option<String>,

    /// The kernel's source for --build and --build-driver: the tree that is bisected
    #[arg(help_heading = "Build", long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    source: String,

    #[command(flatten)]
    kind: KindArgs,

    /// Number of runs [default: 12; 1 with --icount]
    #[arg(help_heading = "Measuring", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,

    /// Count guest instructions instead of time, as the baseline must: one boot detects a change of 1 %
    #[arg(help_heading = "Measuring", long, conflicts_with = "given")]
    icount: bool,

    /// A commit that cannot be measured, for example does not boot, is bad instead of skipped
    #[arg(long)]
    broken_is_bad: bool,

    /// Folder for the records of this step, without any of another step [default: a temporary one]
    #[arg(help_heading = "Measuring", long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    records: Option<PathBuf>,

    /// Longest time of one run in seconds
    #[arg(help_heading = "Measuring", long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    #[command(flatten)]
    flags: CompareFlags,

    /// Records of this commit, instead of a test
    #[arg(value_name = "RECORDS", required_unless_present = "test")]
    given: Option<String>,

    /// The test and its flags
    #[arg(value_name = "TEST", last = true, conflicts_with = "given")]
    test: Vec<String>,
}

/// Runs one step; returns the exit status for git.
pub(super) fn run(args: &BisectArgs) -> CommandResult {
    let options = args.flags.options().or_exit(STOP)?;
    let baseline = group(&args.baseline, tell).or_exit(STOP)?;
    let measured = match &args.given {
        Some(given) => group(given, tell).or_exit(if args.broken_is_bad { BAD } else { SKIP })?,
        None => args.step()?.measured()?,
    };
    let found = gate(&baseline, &measured, args.max_regress.0, &options).map_err(|error| {
        let status = if matches!(error, CannotCompare::NothingInCommon { .. }) { SKIP } else { STOP };
        Failure::new(status, error)
    })?;
    let told = args.flags.sink().deliver(&shown(&found, args.flags.format));
    if args.flags.has_file() {
        // Neither good nor bad, and it would recur at each step.
        told.map_err(|failure| Failure { status: STOP, ..failure })?;
    } else {
        // git looks at the status alone; a closed output does not change it.
        let _ = status_of(told.map(|()| GOOD));
    }
    Ok(match found.outcome {
        GateOutcome::Kept => GOOD,
        GateOutcome::Exceeded => BAD,
        GateOutcome::CannotTell => SKIP,
    })
}

impl BisectArgs {
    /// The step that measures this commit.
    fn step(&self) -> Result<Step<'_>, Failure> {
        Ok(Step {
            test: &self.test,
            side: self.side.clone(),
            kernel: self.kernel().or_exit(STOP)?,
            records: self.records.as_deref(),
            patience: Duration::from_secs(self.patience),
            runs: self.runs,
            icount: self.icount,
            broken: if self.broken_is_bad { BAD } else { SKIP },
        })
    }

    /// The kernel to measure on.
    fn kernel(&self) -> Result<Kernel, String> {
        let mut unused = self.kind.given();
        if let Some(kernel) = &self.build_driver {
            unused.retain(|flag| *flag != "--patch");
            if !unused.is_empty() {
                return Err(format!(
                    "{} is for --build: a module is built as its kernel was",
                    unused.join(", ")
                ));
            }
            return Ok(Kernel::Driver(WantedModule {
                kernel: Some(kernel.clone()),
                source: Some(PathBuf::from(&self.source)),
                patches: self.kind.patch.clone(),
                refresh: false,
            }));
        }
        match (self.build, unused.is_empty()) {
            (true, _) => Ok(Kernel::Built(self.kind.of(&self.source, false))),
            (false, true) => Ok(Kernel::Given),
            (false, false) => Err(format!("{} is for --build, which is not given", unused.join(", "))),
        }
    }
}
