//! Results of the overload experiment: more real-time pairs than CPUs.
//! Not here: the verdict (`verdict`).
//! Facts: Android's page on Binder performance testing: with n CPUs at most n real-time threads run at once.

use serde::{Deserialize, Serialize};

use crate::schema::{Class, Percentiles, Sched};

/// The experiment: pairs of client and server on a fixed set of CPUs, all of which call at the same moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// The CPUs that all pairs share, ascending.
    pub cpus: Vec<u32>,
    /// Computing time of the server in each call, in clock units.
    pub work: u64,
    /// Deadline of each call from its intended start, in clock units; less than twice `work`.
    pub deadline: u64,
    /// Time between two calls of a pair, in clock units.
    pub period: u64,
    /// Calls of each pair in each round.
    pub iterations: u64,
    /// Number of rounds; each contains every row once.
    pub rounds: u32,
    /// Scheduling of the real-time pairs; `None` if the machine does not permit it.
    #[serde(default)]
    pub realtime: Option<Sched>,
    /// Why there are no real-time pairs.
    #[serde(default)]
    pub realtime_problem: Option<String>,
    /// The results, by class, then by number of pairs.
    pub rows: Vec<OverloadRow>,
}

/// The calls of one number of pairs over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverloadRow {
    /// Scheduling of both sides of each pair.
    pub class: Class,
    /// Number of pairs.
    pub pairs: u32,
    /// The name of the case with the times.
    pub case: String,
    /// Number of calls of all pairs.
    pub calls: u64,
    /// Calls that took longer than the deadline.
    pub misses: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
}

impl Overload {
    /// Rows of this class, by ascending number of pairs.
    pub fn of(&self, class: Class) -> impl Iterator<Item = &OverloadRow> {
        self.rows.iter().filter(move |row| row.class == class)
    }

    /// Share of calls that must miss: each CPU completes one call before the deadline, so of `pairs` calls at the
    /// same moment as many as there are CPUs meet it.
    pub fn expected(&self, pairs: u32) -> f64 {
        f64::from(pairs.saturating_sub(self.cpus.len() as u32)) / f64::from(pairs.max(1))
    }
}

impl OverloadRow {
    /// Share of calls that missed the deadline; `None` without calls.
    pub fn missed(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.misses as f64 / self.calls as f64)
    }
}
