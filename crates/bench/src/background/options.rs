//! Options of the background experiment, and their validation.
//! Not here: parsing them (the command line).

use ipc::Release;

pub use super::group::GroupKind;
use crate::inversion::options::check;
use crate::plan::{Flavour, Wanted};
use record::Ground;

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct BackgroundOptions {
    /// Flavour of the calls, with IPC.
    pub flavour: Flavour,
    /// Scheduling group of the background.
    pub group: GroupKind,
    /// Number of foreground processes that occupy the CPU, 1 to [`MOST_HOGS`](crate::inversion::options::MOST_HOGS).
    pub hogs: u32,
    /// Computing time of the service in each call, in us; at most [`MOST_WORK_US`](crate::inversion::options::MOST_WORK_US).
    pub work_us: u64,
    /// Calls of each setting in each round.
    pub iterations: u32,
    /// Rounds; at least 1.
    pub rounds: u32,
    /// Driver and context.
    pub wanted: Wanted,
    /// Android release of the service manager's protocol.
    pub android: Release,
    /// Time limit without a completed call, in seconds.
    pub patience_s: u64,
    /// Time limit of the whole experiment, in seconds.
    pub time_limit_s: u64,
    /// Command line, for the record.
    pub command_line: Vec<String>,
}

impl BackgroundOptions {
    /// Default options.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            flavour: Flavour::Binder,
            group: GroupKind::Auto,
            hogs: 1,
            work_us: 1000,
            iterations: 50,
            rounds: 3,
            wanted: Wanted::default(),
            android: Release::default(),
            patience_s: 30,
            time_limit_s: 600,
            command_line: Vec::new(),
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The invalid option and its limits, as a message for the user.
    pub fn check(&self) -> Result<(), String> {
        check(self.hogs, self.work_us, self.iterations, self.rounds)
    }

    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: "background".to_owned(),
            min_time: format!("{}x", self.iterations),
            repetitions: self.rounds,
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: "same".to_owned(),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }
}

/// The settings of a round, in their order.
pub(super) fn settings() -> impl Iterator<Item = (Ground, bool)> {
    [false, true].into_iter().flat_map(|hogs| Ground::ALL.map(|ground| (ground, hogs)))
}

/// The name of a case.
pub(super) fn case_name((ground, hogs): (Ground, bool)) -> String {
    format!("background/{}/{}", ground.name(), if hogs { "hogs" } else { "alone" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_nothing_is_refused() {
        let usual = BackgroundOptions::usual;
        usual().check().expect("can be done");
        for (bad, says) in [
            (BackgroundOptions { hogs: 0, ..usual() }, "1 to 64"),
            (BackgroundOptions { work_us: 50_001, ..usual() }, "50000 at most"),
            (BackgroundOptions { iterations: 6, ..usual() }, "20 in all"),
        ] {
            assert!(bad.check().expect_err("refused").contains(says));
        }
        let names: std::collections::HashSet<String> = settings().map(case_name).collect();
        assert_eq!(names.len(), 8);
    }
}
