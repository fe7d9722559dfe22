//! One step of a bisection: builds of a commit, its runs, and the exit statuses of `git bisect run`.
//! Not here: the gate (`record::compare::gate`), measuring (`bench::ab`).
//! Facts: git-bisect(1): 0 is good, 125 cannot be tested, 1 to 127 else is bad, from 128 on the bisection stops.

use std::path::Path;
use std::time::Duration;

use bench::ab::{Bench, Ended, RunFailure, Side, is_record_of};
use console::building::{built, built_module};
use console::{Failure, OrExit, exit, note, tell};
use record::compare::{Group, USUAL_RUNS};
use store::lock::FolderLock;
use sys::private_folder::PrivateFolder;
use vm::build::{BuildError, Wanted, WantedModule};

/// A good commit.
pub const GOOD: u8 = exit::FINE;
/// A bad commit.
pub const BAD: u8 = exit::FAILED;
/// A commit that cannot be tested.
pub const SKIP: u8 = 125;
/// Exit status that ends the bisection: the error would recur at each step.
pub const STOP: u8 = 128;

/// The first part of a run's name.
const STEP: &str = "step";

/// The kernel of a step.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// The side's own, if it has any.
    Given,
    /// One that is built of the commit.
    Built(Wanted),
    /// One with a driver that is built of the commit.
    Driver(WantedModule),
}

/// A step.
#[derive(Debug)]
pub struct Step<'a> {
    /// The test and its flags.
    pub test: &'a [String],
    /// The side to measure.
    pub side: Side,
    /// Its kernel.
    pub kernel: Kernel,
    /// Folder of the records, without any of another step.
    pub records: Option<&'a Path>,
    /// Longest time of one run.
    pub patience: Duration,
    /// Number of runs.
    pub runs: Option<u32>,
    /// Whether instructions are counted.
    pub icount: bool,
    /// Exit status for a commit that cannot be measured.
    pub broken: u8,
}

impl Step<'_> {
    /// The runs of the commit.
    ///
    /// # Errors
    /// It cannot be built or measured, or a signal came.
    pub fn measured(&self) -> Result<Group, Failure> {
        let Some(folder) = self.records else {
            // The user did not ask for its contents.
            let own = PrivateFolder::new("bisect").or_exit(STOP)?;
            return self.measure(own.path());
        };
        let _lock =
            FolderLock::take_without(folder, |name| is_record_of(name, &[STEP]), tell).or_exit(STOP)?;
        self.measure(folder)
    }

    fn measure(&self, folder: &Path) -> Result<Group, Failure> {
        let side = self.side()?;
        let cannot = |why: RunFailure| {
            let stops = matches!(why, RunFailure::Usage(_) | RunFailure::Here(_));
            Failure::new(if stops { STOP } else { self.broken }, why)
        };
        let bench = Bench::new(self.test, folder, self.patience, self.icount);
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
        let is_free = |flag: &str| match self.side.kernels.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(STOP, format_args!("{flag} the kernel: leave kernel= out of --side"))),
        };
        match &self.kernel {
            Kernel::Given => {}
            Kernel::Built(wanted) => {
                is_free("--build makes")?;
                let built = built(wanted).map_err(|error| self.unbuilt(error))?;
                side.kernels.push(format!("built:{}", built.name));
            }
            Kernel::Driver(wanted) => {
                is_free("--build-driver names")?;
                side.driver = Some(built_module(wanted).map_err(|error| self.unbuilt(error))?.file);
                side.kernels.extend(wanted.kernel.clone());
            }
        }
        Ok(side)
    }

    /// Another commit may build; what is missing here is missing at each step.
    fn unbuilt(&self, error: BuildError) -> Failure {
        Failure::new(if error.is_of_the_source() { self.broken } else { STOP }, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_has_one_kernel() {
        let side = |text: &str, kernel| {
            let side = text.parse().expect("a side");
            let (runs, records) = (None, None);
            let patience = Duration::ZERO;
            Step { test: &[], side, kernel, records, patience, runs, icount: false, broken: SKIP }.side()
        };
        assert_eq!(side("kernel=6.12", Kernel::Given).expect("its own").kernels, ["6.12"]);
        let both = side("kernel=6.12", Kernel::Built(Wanted::usual("."))).expect_err("two");
        assert!(both.status == STOP && both.to_string().contains("kernel="), "{both}");
    }
}
