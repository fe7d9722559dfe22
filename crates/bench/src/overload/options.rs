//! Options of the overload experiment, and their validation.
//! Not here: parsing them (the command line).

use ipc::Release;
use record::Class;

use crate::inversion::options::MOST_WORK_US;
use crate::plan::{Flavour, Wanted};

/// Maximum number of pairs; each is three processes.
pub const MOST_PAIRS: u32 = 128;
/// Longest period, in us.
const LONGEST_PERIOD_US: u64 = 10_000_000;
/// Largest share of the CPUs' time that the pairs may need. Linux leaves real-time threads 95 %.
const MOST_BUSY: f64 = 0.8;

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct OverloadOptions {
    /// Flavour of the calls, with IPC.
    pub flavour: Flavour,
    /// Number of CPUs that all pairs share, the last usable ones; `None` for all usable ones, at most 64.
    pub cpus: Option<u32>,
    /// Numbers of pairs, ascending; empty for [`usual_pairs`].
    pub pairs: Vec<u32>,
    /// Computing time of the service in each call, in us; 1 to [`MOST_WORK_US`].
    pub work_us: u64,
    /// Deadline of a call, in us: more than `work_us`, less than twice as much.
    pub deadline_us: u64,
    /// Time between two calls of a pair, in us.
    pub period_us: u64,
    /// Calls of each pair in each round.
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

impl OverloadOptions {
    /// Default options: the deadline of Android's page, and a call that needs more than half of it.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            flavour: Flavour::Hwbinder,
            cpus: None,
            pairs: Vec::new(),
            work_us: 1500,
            deadline_us: 2500,
            period_us: 10_000,
            iterations: 100,
            rounds: 3,
            wanted: Wanted::default(),
            android: Release::default(),
            patience_s: 30,
            time_limit_s: 600,
            command_line: Vec::new(),
        }
    }

    /// Checks the options, and returns the CPUs.
    ///
    /// # Errors
    /// The invalid option and its limits, as a message for the user.
    pub fn check(&self) -> Result<Vec<u32>, String> {
        let Self { work_us, deadline_us, period_us, .. } = *self;
        if !(1..=MOST_WORK_US).contains(&work_us) {
            return Err(format!("{work_us} us of work in each call cannot be: use 1 to {MOST_WORK_US}"));
        }
        if !(work_us + 1..work_us * 2).contains(&deadline_us) {
            return Err(format!(
                "a deadline of {deadline_us} us tells nothing of calls of {work_us} us: use more than {work_us}, so that \
                 one call meets it, and less than {}, so that a CPU cannot serve two",
                work_us * 2
            ));
        }
        let cpus = self.usable()?;
        let pairs = self.pairs(cpus.len() as u32);
        if !pairs.is_sorted_by(|one, next| one < next) {
            return Err("the numbers of pairs must ascend".to_owned());
        }
        let (least, most) = (pairs.first().copied().unwrap_or(0), pairs.last().copied().unwrap_or(0));
        if least == 0 || most > MOST_PAIRS {
            return Err(format!("{least} to {most} pairs cannot be: use 1 to {MOST_PAIRS}"));
        }
        let needed = (work_us * u64::from(most)) as f64 / (MOST_BUSY * cpus.len() as f64);
        if (period_us as f64) < needed || period_us > LONGEST_PERIOD_US {
            return Err(format!(
                "{most} calls of {work_us} us in every {period_us} us are not possible on {}: use a period of {:.0} to \
                 {LONGEST_PERIOD_US} us",
                units::counted(cpus.len() as u64, "CPU"),
                needed.ceil()
            ));
        }
        Ok(cpus)
    }

    /// Returns the CPUs that the pairs share: at most half as many as there may be pairs, so that more pairs than CPUs can
    /// be measured.
    fn usable(&self) -> Result<Vec<u32>, String> {
        let mut usable = sys::sched::affinity()
            .map_err(|error| format!("asking for the usable CPUs: {}", sys::errno::describe(&error)))?;
        match self.cpus {
            Some(count) if count == 0 || count as usize > usable.len() || count > MOST_PAIRS / 2 => {
                let most = usable.len().min(MOST_PAIRS as usize / 2);
                Err(format!("{count} CPUs cannot be used here: use 1 to {most}"))
            }
            // The first CPU takes the interrupts.
            Some(count) => Ok(usable.split_off(usable.len() - count as usize)),
            None => Ok(usable.split_off(usable.len().saturating_sub(MOST_PAIRS as usize / 2))),
        }
    }

    /// Returns the numbers of pairs to measure on this many CPUs.
    pub(super) fn pairs(&self, cpus: u32) -> Vec<u32> {
        if self.pairs.is_empty() { usual_pairs(cpus) } else { self.pairs.clone() }
    }

    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: "overload".to_owned(),
            min_time: format!("{}x", self.iterations),
            repetitions: self.rounds,
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: "default".to_owned(),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }
}

/// Returns the usual numbers of pairs: one, those around the number of CPUs, and twice that number.
fn usual_pairs(cpus: u32) -> Vec<u32> {
    let mut pairs = vec![1, cpus.saturating_sub(1).max(1), cpus, cpus + 1, cpus + 2, cpus * 2];
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// The name of a case.
pub(super) fn case_name(class: Class, pairs: u32) -> String {
    format!("overload/{}/pairs:{pairs}", class.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_numbers_lie_on_both_sides_of_the_limit() {
        assert_eq!(usual_pairs(1), [1, 2, 3]);
        assert_eq!(usual_pairs(2), [1, 2, 3, 4]);
        assert_eq!(usual_pairs(8), [1, 7, 8, 9, 10, 16]);
        assert_eq!(usual_pairs(MOST_PAIRS / 2).last(), Some(&MOST_PAIRS), "on the most CPUs, too");
        OverloadOptions::usual().check().expect("can be done on any machine");
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let usual = OverloadOptions::usual;
        for (bad, says) in [
            (OverloadOptions { work_us: 0, ..usual() }, "1 to 50000"),
            (OverloadOptions { deadline_us: 1500, ..usual() }, "more than 1500"),
            (OverloadOptions { deadline_us: 3000, ..usual() }, "less than 3000"),
            (OverloadOptions { cpus: Some(0), ..usual() }, "use 1 to"),
            (OverloadOptions { cpus: Some(1 << 20), ..usual() }, "use 1 to"),
            (OverloadOptions { pairs: vec![2, 1], ..usual() }, "ascend"),
            (OverloadOptions { pairs: vec![0, 1], ..usual() }, "1 to 128"),
            (OverloadOptions { pairs: vec![129], ..usual() }, "1 to 128"),
            (OverloadOptions { cpus: Some(1), pairs: vec![4], period_us: 7000, ..usual() }, "7500 to"),
            (OverloadOptions { period_us: u64::MAX, ..usual() }, "a period of"),
        ] {
            let error = bad.check().expect_err("refused");
            assert!(error.contains(says), "{error}");
        }
    }
}
