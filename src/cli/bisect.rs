//! The command `bisect-step`: a gate with the exit statuses of `git bisect run`.
//! Not here: the gate (`record::compare::gate`), measuring (`bench::ab`).
//! Facts: git-bisect(1): 0 is good, 125 cannot be tested, 1 to 127 else is bad, from 128 on the bisection stops.

use std::path::PathBuf;
use std::time::Duration;

use bench::ab::{Bench, Ended, RunFailure, Side, is_record_of};
use clap::Args;
use record::compare::gate::{GateOutcome, gate};
use record::compare::{CannotCompare, Group, USUAL_RUNS};
use store::lock::FolderLock;
use store::records::group;
use sys::private_folder::PrivateFolder;
use vm::build::{BuildError, WantedModule};

use super::gate::shown;
use super::kernels::{self, KindArgs};
use super::records::CompareFlags;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, note, status_of, tell};
use units::typed::Percent;

const GOOD: u8 = exit::FINE;
const BAD: u8 = exit::FAILED;
const SKIP: u8 = 125;
/// Exit status that ends the bisection: the error would recur at each step.
pub(super) const STOP: u8 = 128;

/// The first part of a run's name.
const STEP: &str = "step";

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

    /// Build only the driver that git has checked out, as vm build-driver does, and measure in a guest on this kernel of Debian's: newest, 7.2
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
    let measured = args.measured()?;
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
    /// The runs of this commit.
    fn measured(&self) -> Result<Group, Failure> {
        if let Some(given) = &self.given {
            return group(given, tell).or_exit(self.broken());
        }
        let Some(folder) = &self.records else {
            // The user did not ask for its contents.
            let own = PrivateFolder::new("bisect").or_exit(STOP)?;
            return self.measure(own.path());
        };
        let _lock =
            FolderLock::take_without(folder, |name| is_record_of(name, &[STEP]), tell).or_exit(STOP)?;
        self.measure(folder)
    }

    fn measure(&self, folder: &std::path::Path) -> Result<Group, Failure> {
        let side = self.side()?;
        let cannot = |why: RunFailure| {
            let stops = matches!(why, RunFailure::Usage(_) | RunFailure::Here(_));
            Failure::new(if stops { STOP } else { self.broken() }, why)
        };
        let bench = Bench::new(&self.test, folder, Duration::from_secs(self.patience), self.icount);
        let bench = bench.map_err(cannot)?;
        let mut group = Group { name: "this commit".to_owned(), members: Vec::new() };
        let usual = if self.icount { 1 } else { USUAL_RUNS as u32 };
        for at in 1..=self.runs.unwrap_or(usual) {
            let result =
                bench.run(&side, &format!("{STEP}-{at:03}"), ("bisect.run".to_owned(), at.to_string()));
            if let Some(signal) = ftrace::stop_asked() {
                note(format_args!("{}\n", Ended::Stopped(signal)));
                return Err(Failure { status: STOP, message: None });
            }
            group.members.push(result.map_err(cannot)?);
        }
        Ok(group)
    }

    /// The side to measure, on the kernel that is built for it.
    fn side(&self) -> Result<Side, Failure> {
        let mut side = self.side.clone();
        if let Some(kernel) = &self.build_driver {
            let unused: Vec<_> = self.kind.given().into_iter().filter(|flag| *flag != "--patch").collect();
            if !unused.is_empty() {
                let why =
                    format!("{} is for --build: a module is built as its kernel was", unused.join(", "));
                return Err(Failure::new(STOP, why));
            }
            return self.on_kernel(side, kernel.clone());
        }
        if !self.build {
            let unused = self.kind.given();
            return if unused.is_empty() {
                Ok(side)
            } else {
                Err(Failure::new(STOP, format!("{} is for --build, which is not given", unused.join(", "))))
            };
        }
        if !side.kernels.is_empty() {
            return Err(Failure::new(STOP, "--build makes the kernel: leave kernel= out of --side"));
        }
        let built =
            kernels::built(&self.kind.of(&self.source, false)).map_err(|error| self.unbuilt(error))?;
        side.kernels.push(format!("built:{}", built.name));
        Ok(side)
    }

    /// The side on this kernel, with the driver that is built of the source.
    fn on_kernel(&self, mut side: Side, kernel: String) -> Result<Side, Failure> {
        if !side.kernels.is_empty() {
            return Err(Failure::new(STOP, "--build-driver names the kernel: leave kernel= out of --side"));
        }
        let wanted = WantedModule {
            kernel: Some(kernel.clone()),
            source: Some(PathBuf::from(&self.source)),
            patches: self.kind.patch.clone(),
            refresh: false,
        };
        side.driver = Some(kernels::built_module(&wanted).map_err(|error| self.unbuilt(error))?.file);
        side.kernels.push(kernel);
        Ok(side)
    }

    /// Another commit may build; what is missing here is missing at each step.
    fn unbuilt(&self, error: BuildError) -> Failure {
        Failure::new(if error.is_of_the_source() { self.broken() } else { STOP }, error)
    }

    fn broken(&self) -> u8 {
        if self.broken_is_bad { BAD } else { SKIP }
    }
}
