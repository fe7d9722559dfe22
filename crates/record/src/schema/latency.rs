//! Room: what a latency test finds besides times: who missed the deadline, on which CPU a call was served,
//! and whether the caller's priority went with it.
//! Not here: the times (`super::case`), what of it is good or poor (`crate::verdict`).
//! Facts: the words of Android's page: *SYNC*, *deadline*, *miss*; levels of inheritance: contract section 14.

use super::sweep::Sweep;
use serde::{Deserialize, Serialize};

/// Longest text in `Latency::load`, in bytes.
pub const LONGEST_LOAD: usize = 200;
/// Most single times of a case, as many as fit into a document that can be read.
pub const MOST_RAW: usize = 20_000_000;

/// How a thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sched {
    /// The kernel's number of the policy: 0 OTHER, 1 FIFO, 2 RR, 3 BATCH, 5 IDLE, 6 DEADLINE.
    pub policy: u32,
    /// Real-time priority, 1 to 99; 0 under policies without one.
    pub priority: u32,
    /// Nice, -20 to 19; it does not count under a real-time policy.
    pub nice: i32,
}

impl Sched {
    /// `SCHED_OTHER` of this nice.
    pub fn other(nice: i32) -> Sched {
        Sched { policy: 0, priority: 0, nice }
    }

    /// `SCHED_FIFO` of this priority.
    pub fn fifo(priority: u32) -> Sched {
        Sched { policy: 1, priority, nice: 0 }
    }

    /// Whether it goes before every thread that shares the CPU by nice.
    pub fn is_realtime(self) -> bool {
        matches!(self.policy, 1 | 2 | 6)
    }

    /// The kernel's name of the policy; `None` for one newer than this list.
    pub fn policy_name(self) -> Option<&'static str> {
        Some(match self.policy {
            0 => "SCHED_OTHER",
            1 => "SCHED_FIFO",
            2 => "SCHED_RR",
            3 => "SCHED_BATCH",
            5 => "SCHED_IDLE",
            6 => "SCHED_DEADLINE",
            _ => return None,
        })
    }
}

/// Which of the two callers of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The thread of normal priority, `SCHED_OTHER`.
    Other,
    /// The real-time thread, `SCHED_FIFO` at the highest priority.
    Fifo,
}

impl Class {
    /// Both, in the order of an iteration.
    pub const BOTH: [Class; 2] = [Class::Fifo, Class::Other];

    /// The word used in documents, names of cases and tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Other => "other",
            Class::Fifo => "fifo",
        }
    }
}

/// What was found about the calls of one class in one pair, beside their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Which pair of client and server, from 0.
    pub pair: u32,
    /// Whose calls.
    pub class: Class,
    /// How many pairs were at work at once.
    pub pairs: u32,
    /// A call that took longer than this missed its deadline, in clock units.
    pub deadline: u64,
    /// Calls that missed it.
    pub misses: u64,
    /// Those of them in which, for more than half of the time, neither side ran on a CPU.
    pub bubbles: u64,
    /// Calls served on the CPU that they were made on; migrated ones do not count.
    pub same_cpu: u64,
    /// Calls during which the caller moved to another CPU, so that "the same CPU" has no meaning.
    pub migrated: u64,
    /// Calls served at another priority than the caller's.
    pub not_inherited: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Every single time in clock units in the order of the calls, if that was asked for.
    #[serde(default)]
    pub raw: Vec<u64>,
    /// Of those, the places of calls in which timers were to expire and, by the caller's clock, did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<u64>,
    /// The load beside the test, as typed, e.g. `cpu:4`; empty for none.
    #[serde(default)]
    pub load: String,
    /// Calls per second that were intended; `None` when each call followed the one before.
    #[serde(default)]
    pub rate_hz: Option<f64>,
}

/// Least values that so many percent of the calls do not exceed, of all samples, in clock units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half of them.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 95 %.
    pub p95: u64,
    /// 99 %.
    pub p99: u64,
}

impl Percentiles {
    /// Of these samples, which it sorts (nearest rank); `None` of nothing.
    pub fn of(samples: &mut [u64]) -> Option<Percentiles> {
        samples.sort_unstable();
        let count = samples.len() as u128;
        let ranked = |percent: u128| {
            let rank = (count * percent).div_ceil(100).max(1) - 1;
            samples.get(usize::try_from(rank).ok()?).copied()
        };
        Some(Percentiles { p50: ranked(50)?, p90: ranked(90)?, p95: ranked(95)?, p99: ranked(99)? })
    }
}

/// What can only be told of the calls of all pairs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotals {
    /// Whose calls.
    pub class: Class,
    /// Exact percentiles of the times of all pairs, those of failed ones until then among them.
    pub percentiles: Percentiles,
}

/// A latency test as a whole: what all its cases share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyTest {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// False when the interface was called in the client's own process, without IPC.
    pub binderized: bool,
    /// Pairs of client and server.
    pub pairs: u32,
    /// Iterations of each pair; each is one call of either class.
    pub iterations: u64,
    /// In clock units.
    pub deadline: u64,
    /// How the real-time caller was really scheduled; `None` where there was none, `realtime_problem` says why.
    #[serde(default)]
    pub realtime: Option<Sched>,
    /// Why there was no real-time caller.
    #[serde(default)]
    pub realtime_problem: Option<String>,
    /// All pairs together, for each class that made a call.
    #[serde(default)]
    pub all: Vec<ClassTotals>,
    /// Whether priorities were inherited.
    pub inheritance: Inheritance,
    /// Who took part, as seen in the first iteration of the first pair.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// What was made to go wrong on purpose, as typed.
    #[serde(default)]
    pub injected: Vec<String>,
    /// What the test itself adds to each time, in clock units: two clock readings, and the questions that
    /// the service asks about its own thread; measured at the start.
    #[serde(default)]
    pub overhead: Option<f64>,
    /// The miss at which tracing was stopped.
    #[serde(default)]
    pub stopped_at: Option<Miss>,
    /// The grid that was measured, if it was more than one point. What the test says of pairs is then of the
    /// most of them, and its deadline one of the sweep's.
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

/// A deadline missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// In which pair.
    pub pair: u32,
    /// Whose call.
    pub class: Class,
    /// Which iteration, from 0.
    pub iteration: u64,
    /// How long it took, in clock units.
    pub took: u64,
}

/// Somebody who took part in the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// `service`, `main`, `client`, `fifo-caller`, `other-caller`, or the thread that served a call:
    /// `hwbinder` or `binder`.
    pub role: String,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// How it was scheduled.
    pub sched: Sched,
    /// True when it was only lent this priority for the call that it served.
    #[serde(default)]
    pub transitional: bool,
}

/// How much of its caller's priority a serving thread takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// None of it, as with the kernel's Rust driver.
    None,
    /// Nice, as with the kernel's C driver.
    Nice,
    /// Nice and real-time policies, as on Android.
    Rt,
}

impl Level {
    /// The word used in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Nice => "nice",
            Level::Rt => "rt",
        }
    }
}

/// Whether priorities were inherited: measured, and expected of this driver, apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inheritance {
    /// Calls of the test itself that were looked at.
    pub calls: u64,
    /// Those of them served at another priority than their caller's.
    pub not_inherited: u64,
    /// The highest level at which every direct call was served, by the scenes; `None` when it could not be told.
    #[serde(default)]
    pub measured: Option<Level>,
    /// The level of this driver with this kind of node, by what is known of it; `None` when it is not.
    #[serde(default)]
    pub expected: Option<Level>,
    /// Why that is expected.
    #[serde(default)]
    pub expected_reason: String,
    /// Single situations, looked at one by one.
    #[serde(default)]
    pub hops: Vec<Hop>,
}

/// One hop of a call in one situation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The situation: `call`, `queued`, `nested-1`, `nested-2`, `callback`, `oneway`, `minimum`, `restored`,
    /// `after`.
    pub scene: String,
    /// The caller.
    pub caller: Sched,
    /// How the serving thread was scheduled before.
    pub idle: Sched,
    /// How it was while it served (in `restored`: once it had replied).
    #[serde(default)]
    pub served: Option<Sched>,
    /// What this driver is expected to make of it; `None` if that is not known, or could not be tried.
    #[serde(default)]
    pub expected: Option<Sched>,
    /// Why it could not be looked at, or what else there is to say.
    #[serde(default)]
    pub note: String,
}

impl Hop {
    /// Whether it was as expected; `None` when either is not known.
    pub fn as_expected(&self) -> Option<bool> {
        Some(same_urgency(self.served?, self.expected?))
    }

    /// Whether it was tried, and nothing came of it: `note` says what broke.
    pub fn is_broken(&self) -> bool {
        self.served.is_none() && self.expected.is_some()
    }
}

/// Whether two threads are as urgent: nice does not count under real-time policies.
pub fn same_urgency(one: Sched, other: Sched) -> bool {
    one.policy == other.policy
        && one.priority == other.priority
        && (one.is_realtime() || one.nice == other.nice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank_and_exact() {
        let mut samples: Vec<u64> = (1..=5000).rev().map(|n| n * 1001).collect();
        let wanted = [2500, 4500, 4750, 4950].map(|n| n * 1001);
        let found = Percentiles::of(&mut samples).expect("there are samples");
        assert_eq!([found.p50, found.p90, found.p95, found.p99], wanted);
        let one = Percentiles::of(&mut [7]).expect("there is one");
        assert_eq!([one.p50, one.p90, one.p95, one.p99], [7; 4]);
        let three = Percentiles::of(&mut [30, 10, 20]).expect("there are three");
        assert_eq!([three.p50, three.p90, three.p95, three.p99], [20, 30, 30, 30]);
        assert_eq!(Percentiles::of(&mut []), None);
    }
}
