//! Room: `bisect-step`: a gate with the exit statuses of `git bisect run`.
//! Not here: the gate (`record::compare::gate`), measuring (`lab::ab`).
//! Facts: git-bisect(1): 0 is good, 125 cannot be tested, 1 to 127 else is bad, from 128 on the bisection stops.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab::ab::{Bench, Ended, RunFailure, Side};
use record::compare::gate::{Outcome, gate};
use record::compare::{CannotCompare, Group, USUAL_RUNS};

use super::gate::shown;
use super::records::{CompareFlags, Percent, deliver, group};
use super::{A_YEAR_S, complain, exit, note, say};

const GOOD: u8 = exit::FINE;
const BAD: u8 = exit::FAILED;
const SKIP: u8 = 125;
/// What is wrong would be wrong at each step.
pub(super) const STOP: u8 = 128;

/// The command's name.
pub(super) const NAME: &str = "bisect-step";

/// Say good, bad or skip to `git bisect run`: is this commit slower than a baseline?
///
/// A gate with git's exit statuses. A commit that cannot be measured is skipped. The baseline is measured once, best
/// twelve times, on the machine that the bisection runs on.
#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// Records of a good commit: a file, a folder, or several with commas between
    #[arg(long, value_name = "RECORDS")]
    baseline: String,

    /// How much slower a good commit may be
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    max_regress: Percent,

    /// What to measure, as `ab` has it: kernel=FILE, binary=FILE, FLAG=VALUE
    #[arg(
        help_heading = "Measuring",
        long,
        value_name = "SIDE",
        default_value = "",
        allow_hyphen_values = true
    )]
    side: Side,

    /// How often
    #[arg(help_heading = "Measuring", long, value_name = "N", default_value_t = USUAL_RUNS as u32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,

    /// A commit that cannot be measured, as it does not boot, is bad instead of skipped
    #[arg(long)]
    broken_is_bad: bool,

    /// Folder for the records of this step [default: one that goes away]
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

/// One step.
pub(super) fn run(args: &BisectArgs) -> u8 {
    let read = || Ok((args.flags.options()?, group(&args.baseline)?));
    let (options, baseline) = match read() {
        Ok(read) => read,
        Err(why) => {
            let why: String = why;
            complain(why);
            return STOP;
        }
    };
    let measured = match args.measured() {
        Ok(measured) => measured,
        Err(status) => return status,
    };
    match gate(&baseline, &measured, args.max_regress.0, &options) {
        Ok(found) => {
            let text = shown(&found, args.flags.format);
            if args.flags.has_file() {
                // Neither good nor bad, and the same at each step.
                if deliver(args.flags.sink(), &text, GOOD) != GOOD {
                    return STOP;
                }
            } else {
                // git looks at the status alone; a reader that went away changes no commit.
                let _ = say(&text);
            }
            match found.outcome {
                Outcome::Kept => GOOD,
                Outcome::Exceeded => BAD,
                Outcome::CannotTell => SKIP,
            }
        }
        Err(error @ CannotCompare::NothingInCommon { .. }) => {
            complain(error);
            SKIP
        }
        Err(error) => {
            complain(error);
            STOP
        }
    }
}

impl BisectArgs {
    /// The runs of this commit, or a status.
    fn measured(&self) -> Result<Group, u8> {
        if let Some(given) = &self.given {
            return group(given).map_err(|why| {
                complain(why);
                self.broken()
            });
        }
        let seed = lab::plan::fresh_seed();
        let usual = std::env::temp_dir().join(format!("binderperf-bisect-{seed:x}"));
        let folder = self.records.clone().unwrap_or_else(|| usual.clone());
        let measured = self.measure(&folder);
        if self.records.is_none() {
            // Nobody asked for what is in it.
            let _ = std::fs::remove_dir_all(&usual);
        }
        measured
    }

    fn measure(&self, folder: &std::path::Path) -> Result<Group, u8> {
        let cannot = |why: &RunFailure| {
            complain(why);
            if matches!(why, RunFailure::Usage(_) | RunFailure::Here(_)) { STOP } else { self.broken() }
        };
        let bench = Bench::new(&self.test, folder, Duration::from_secs(self.patience), false);
        let bench = bench.map_err(|why| cannot(&why))?;
        let mut group = Group { name: "this commit".to_owned(), members: Vec::new() };
        for at in 1..=self.runs {
            let result =
                bench.run(&self.side, &format!("step-{at:03}"), ("bisect.run".to_owned(), at.to_string()));
            if let Some(signal) = lab::trace::stop_asked() {
                note(format_args!("{}\n", Ended::Stopped(signal)));
                return Err(STOP);
            }
            group.members.push(result.map_err(|why| cannot(&why))?);
        }
        Ok(group)
    }

    fn broken(&self) -> u8 {
        if self.broken_is_bad { BAD } else { SKIP }
    }
}
