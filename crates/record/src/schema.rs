//! The `Run` document: the record that a test leaves.
//! Not here: the host (`host`), the measurements (`case`), reading and checking (`crate::read`).
//! Units: a field without a unit in its name is in the run's clock unit (`Run::clock`), or has none.

mod calls;
mod case;
mod constraints;
mod device;
mod host;
mod latency;
mod measured;
mod placed;
mod recorder;
mod sched;
mod stated;

pub use crate::experiments::background::schema::{Background, BackgroundRow, Ground};
pub use crate::experiments::inheritance::schema::{Hop, Inheritance, Level, Limit};
pub use crate::experiments::inversion::schema::{Inversion, InversionRow, ServedAs, Setting};
pub use crate::experiments::overload::schema::{Overload, OverloadRow};
pub use crate::experiments::sweep::schema::{Cell, Point, Sweep};
pub use calls::{Class, ClassTotals, Miss, Percentiles};
pub use case::{
    Case, CaseKind, Counter, CounterKind, Counters, CpuLooks, Crowd, CrowdShape, Measurement, Outcome,
    Repetition,
};
pub use constraints::{Constraints, LimitedMemory};
pub use device::{Battery, Cluster, ClusterKind, Conditions, Cooling, Device, Frequency, State, Temperature};
pub use host::{Cpu, CpuCache, Driver, DriverKind, EmbeddedSettings, Host, HostClass, Kernel};
pub use latency::{AndroidCounts, LONGEST_LOAD, Latency, LatencyTest, MOST_RAW, Role};
pub(crate) use measured::Fields;
pub use measured::Measured;
pub use placed::{PlacedMedians, Side};
pub use recorder::{Pass, Recorder, RecorderCost, SavedCall, StoppedPair, anchor_of_recording};
pub use sched::{Sched, same_urgency};
pub use stated::{Figure, Imported, Stated};

use serde::{Deserialize, Serialize};

/// The value of `Run::schema` in every record.
pub const SCHEMA: &str = "binderperf.run";
/// The version that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// One run of a test. It is the only result of a run; all outputs are renderings of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] when written.
    pub version: u32,
    /// The program that measured.
    pub tool: Tool,
    /// Wall clock at the start, RFC 3339 with offset, e.g. `2026-01-31T12:00:00+01:00`.
    pub started: String,
    /// Wall-clock duration of the whole run in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time in nanoseconds that the hypervisor gave to others during the run, over all CPUs, exact to 10 ms; `None`
    /// if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// The settings of the test.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// Frequencies, temperatures, battery and placement of the run; `None` if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Constraints that the test was put under; `None` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Constraints>,
    /// The Binder driver; `None` if only controls ran or none could be opened.
    #[serde(default)]
    pub driver: Option<Driver>,
    /// The clock of all readings.
    pub clock: Clock,
    /// Findings of the checks before and after the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// True if more threads ran at once than the machine has CPUs: latencies are then meaningless.
    #[serde(default)]
    pub overloaded: bool,
    /// True if every planned case was tried to its end.
    pub complete: bool,
    /// Why the run stopped early; set when `complete` is false.
    #[serde(default)]
    pub incomplete_reason: Option<String>,
    /// The user's own key/value pairs, in the order given.
    #[serde(default)]
    pub context: Vec<(String, String)>,
    /// The results besides the cases. [`Run::from_json`] reads them, `Deserialize` alone does not.
    #[serde(flatten, skip_deserializing)]
    pub measured: Measured,
    /// The program that measured, if it is another; `None` for a run of binderperf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The cases in the planned order.
    pub cases: Vec<Case>,
}

/// The program that measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// `binderperf`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from, if the build knew it.
    #[serde(default)]
    pub git: Option<String>,
    /// Cargo profile: `release` or `dev`.
    pub build_profile: String,
    /// `argv[0]`.
    pub executable: String,
    /// True if built with debug assertions, which makes the numbers incomparable.
    pub debug_assertions: bool,
}

/// The settings of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The test, e.g. `throughput binder`.
    #[serde(default)]
    pub test: String,
    /// Regular expression over case names; empty for all, a leading `-` negates.
    #[serde(default)]
    pub filter: String,
    /// Minimum measuring time or iterations of a repetition, as typed: `0.5s`, `1000x`.
    #[serde(default)]
    pub min_time: String,
    /// Minimum warm-up before the first repetition, in seconds.
    #[serde(default)]
    pub min_warmup_s: f64,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// Whether repetitions of different cases ran in shuffled order.
    #[serde(default)]
    pub random_interleaving: bool,
    /// Seed of the shuffling, and of the choice of services in cases that have many.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether the control cases ran beside the test.
    #[serde(default)]
    pub controls: bool,
    /// The driver asked for: `auto`, `kernel` or `embedded`; empty when not known.
    #[serde(default)]
    pub driver: String,
    /// The device asked for: a path, a context's name, `private`, or `auto`.
    #[serde(default)]
    pub device: String,
    /// CPU placement of the two sides of a case: `default` (by the scheduler), `same` (one CPU) or `cross` (two);
    /// behind `; ` the clusters and the cpuset that were chosen; empty if unknown.
    #[serde(default)]
    pub placement: String,
    /// The command line's arguments.
    #[serde(default)]
    pub command_line: Vec<String>,
}

/// The clock of all readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// e.g. `CLOCK_MONOTONIC`.
    pub name: String,
    /// The unit of every reading in this document.
    pub unit: ClockUnit,
    /// Cost of a pair of readings, in `unit`, measured at the start. Each sample contains it.
    #[serde(default)]
    pub read_cost: Option<f64>,
    /// Smallest observed step of the clock, in `unit`.
    #[serde(default)]
    pub resolution: Option<u64>,
}

/// The unit of a clock reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockUnit {
    /// Nanoseconds.
    Ns,
    /// Guest instructions under a deterministic emulator: exact, and never shown as time.
    Instructions,
}

impl ClockUnit {
    /// `ns` or `insns`.
    pub fn name(self) -> &'static str {
        match self {
            ClockUnit::Ns => "ns",
            ClockUnit::Instructions => units::INSTRUCTIONS,
        }
    }

    /// A reading with its unit: `3.08 us`, `812 insns`.
    pub fn show(self, value: f64) -> String {
        match self {
            ClockUnit::Ns => units::duration(value),
            ClockUnit::Instructions => units::instructions(value),
        }
    }

    /// A round value, such as a tick or a deadline, without trailing zeros: `100 us`.
    pub fn show_round(self, value: f64) -> String {
        match self {
            ClockUnit::Ns => units::round_duration(value),
            ClockUnit::Instructions => units::instructions(value),
        }
    }
}

/// One finding of a check of the machine or the build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name of the check, e.g. `cpu-governor`.
    pub id: String,
    /// How much it spoils the numbers.
    pub severity: Severity,
    /// The finding in words.
    pub text: String,
    /// The effect on the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The remedy.
    #[serde(default)]
    pub fix: Option<String>,
    /// The files and measurements that prove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// A command that reproduces the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

impl Finding {
    /// The `id` of the finding that the embedded driver's broker ended during the run.
    pub const BROKER_LOST: &'static str = "broker-lost";

    /// A finding without effect, remedy or evidence.
    pub fn new(id: impl Into<String>, severity: Severity, text: impl Into<String>) -> Finding {
        Finding {
            id: id.into(),
            severity,
            text: text.into(),
            effect: None,
            fix: None,
            evidence: Vec::new(),
            proof: None,
        }
    }
}

/// The content of one file, or the result of one measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file's path on the machine, or the name of the measurement.
    pub source: String,
    /// Its content, shortened if it is long.
    pub says: String,
}

/// How much a finding spoils the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information only.
    Info,
    /// The numbers may be off.
    Warning,
    /// The numbers are not trustworthy.
    Error,
}

impl Run {
    /// The name of its test for people.
    pub fn title(&self) -> String {
        match &self.measured {
            Measured::Latency(test) if test.sweep.is_some() => {
                format!("{} latency over a grid", test.flavour)
            }
            Measured::Latency(test) => format!("{} latency", test.flavour),
            Measured::Inversion(_) => "priority inversion".to_owned(),
            Measured::Overload(_) => "real-time overload".to_owned(),
            Measured::Background(_) => "foreground and background".to_owned(),
            Measured::Cases => match self.plan.test.as_str() {
                "" | "throughput all" => "throughput".to_owned(),
                test => test.to_owned(),
            },
        }
    }

    /// Why it did not come to its end; `None` if it did.
    pub fn ended_early(&self) -> Option<&str> {
        (!self.complete).then(|| self.incomplete_reason.as_deref().unwrap_or("the run did not end"))
    }

    /// A run of the current schema without cases, not yet complete.
    pub fn new(tool: Tool, started: String, plan: Plan, host: Host, clock: Clock) -> Run {
        Run {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            tool,
            started,
            elapsed_ns: 0,
            stolen_ns: None,
            plan,
            host,
            driver: None,
            clock,
            findings: Vec::new(),
            overloaded: false,
            conditions: None,
            constraints: None,
            complete: false,
            incomplete_reason: None,
            context: Vec::new(),
            measured: Measured::Cases,
            imported: None,
            cases: Vec::new(),
        }
    }

    /// Whether it is one of the experiments that have a record of their own.
    pub fn is_experiment(&self) -> bool {
        matches!(self.measured, Measured::Inversion(_) | Measured::Overload(_) | Measured::Background(_))
    }

    /// The case with this name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// The finding that the embedded driver's broker ended during the run, if it did.
    pub fn broker_lost(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == Finding::BROKER_LOST)
    }

    /// Whether any repetition of any case failed.
    pub fn any_failed(&self) -> bool {
        self.cases.iter().any(|case| case.failure().is_some())
    }
}
