//! Results of a latency test besides times: missed deadlines, CPUs, inherited priorities.
//! Not here: the times (`super::case`), the classes of calls (`super::calls`), verdicts (`crate::verdict`).
//! Facts: *SYNC*, *deadline* and *miss* are the words of Android's page.

use super::calls::{Class, ClassTotals, Miss, Percentiles};
use super::recorder::Recorder;
use super::sched::Sched;
use crate::experiments::inheritance::schema::Inheritance;
use crate::experiments::sweep::schema::Sweep;
use serde::{Deserialize, Serialize};

/// Maximum length of `Latency::load`, in bytes.
pub const LONGEST_LOAD: usize = 200;
/// Maximum number of single times of a case; as many as fit into a document that can be read.
pub const MOST_RAW: usize = 20_000_000;

/// Results for the calls of one class in one pair, besides their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Index of the pair of client and server, from 0.
    pub pair: u32,
    /// The class of the callers.
    pub class: Class,
    /// Number of concurrent pairs.
    pub pairs: u32,
    /// A call that took longer than this missed its deadline, in clock units.
    pub deadline: u64,
    /// Calls that missed the deadline.
    pub misses: u64,
    /// Missed calls in which neither side ran on a CPU for more than half of the time.
    pub bubbles: u64,
    /// True if the called object, another program's, told nothing of its thread: `bubbles`, `same_cpu` and `not_inherited` are
    /// then unknown, and 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
    /// Calls served on the caller's CPU, without migrated ones.
    pub same_cpu: u64,
    /// Calls during which the caller migrated to another CPU, so that "same CPU" has no meaning.
    pub migrated: u64,
    /// Calls served at a priority other than the caller's.
    pub not_inherited: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Every single time in clock units in the order of the calls, if requested.
    #[serde(default, serialize_with = "crate::one_line::on_one_line")]
    pub raw: Vec<u64>,
    /// Indices into `raw` of the calls that a fault was to delay and did not: a timer that, by the caller's clock, did not
    /// expire in the call, or a disk that, by the server's clocks, kept it working longer than waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<u64>,
    /// Time of each call of `raw` in which neither side ran on a CPU, in clock units, by the clocks of their threads. A CPU
    /// that the host took is idle by these clocks and busy in a trace. `None` for a thread's first call.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "crate::one_line::on_one_line")]
    pub idle: Vec<Option<u64>>,
    /// The background load, as typed, e.g. `cpu:4`; empty for none.
    #[serde(default)]
    pub load: String,
    /// Intended calls per second; `None` if each call followed the one before.
    #[serde(default)]
    pub rate_hz: Option<f64>,
    /// Counts by the rules of Android's tools; `None` in records of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub android: Option<AndroidCounts>,
}

/// Counts by the rules of Android's latency tests, which differ from [`Latency::same_cpu`] and
/// [`Latency::not_inherited`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AndroidCounts {
    /// Calls served on another CPU than the one on which the caller prepared the call, wherever the caller went
    /// meanwhile. Of flavour binder only those that were served at the highest real-time priority.
    pub apart: u64,
    /// Calls whose serving thread had another real-time priority than the caller. Nice values and policies are not seen.
    pub other_priority: u64,
}

impl Latency {
    /// A class of a pair without any calls yet.
    pub fn new(pair: u32, class: Class, pairs: u32, deadline: u64) -> Latency {
        Latency {
            pair,
            class,
            pairs,
            deadline,
            misses: 0,
            bubbles: 0,
            untold: false,
            same_cpu: 0,
            migrated: 0,
            not_inherited: 0,
            percentiles: None,
            raw: Vec::new(),
            spared: Vec::new(),
            idle: Vec::new(),
            load: String::new(),
            rate_hz: None,
            android: None,
        }
    }
}

/// A latency test as a whole: the part that all its cases share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyTest {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// False if the interface was called in the client's own process, without IPC.
    pub binderized: bool,
    /// The registered name of the object whose pings are the calls, empty for the context's manager; `None` if the test
    /// called services of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinged: Option<String>,
    /// Number of pairs of client and server.
    pub pairs: u32,
    /// Iterations of each pair; each consists of one call of each class.
    pub iterations: u64,
    /// The deadline in clock units.
    pub deadline: u64,
    /// Observed scheduling of the real-time caller; `None` if there was none, see `realtime_problem`.
    #[serde(default)]
    pub realtime: Option<Sched>,
    /// The reason why there was no real-time caller.
    #[serde(default)]
    pub realtime_problem: Option<String>,
    /// Percentiles over all pairs, for each class that made calls.
    #[serde(default)]
    pub all: Vec<ClassTotals>,
    /// Whether priorities were inherited.
    pub inheritance: Inheritance,
    /// Threads and processes of the first pair as seen in its first iteration; of all pairs in all of their calls where
    /// the output of Android's tools was asked for with `-v`.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// The injected faults, as typed.
    #[serde(default)]
    pub injected: Vec<String>,
    /// Overhead of the test in each time, in clock units: two clock readings, and the system calls by which the
    /// service inspects its own thread. Measured at the start.
    #[serde(default)]
    pub overhead: Option<f64>,
    /// The miss at which tracing stopped.
    #[serde(default)]
    pub stopped_at: Option<Miss>,
    /// The flight recorder; `None` if none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Recorder>,
    /// The measured grid, if it has more than one point. `pairs` is then the largest number of pairs, and `deadline`
    /// is one of the sweep's deadlines.
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

impl LatencyTest {
    /// The command's word for the test: `binder`, `hwbinder` or `ping`.
    pub fn word(&self) -> &str {
        if self.pinged.is_some() { "ping" } else { &self.flavour }
    }
}

/// A thread or process that took part in the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// `service`, `main`, `client`, `fifo-caller`, `other-caller`; for the thread that served a call `hwbinder` or
    /// `binder`.
    pub role: String,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// Its scheduling.
    pub sched: Sched,
    /// True if it had this priority only while it served a call.
    #[serde(default)]
    pub transitional: bool,
}
