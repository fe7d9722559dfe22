//! Room: the `Run` document, field by field; what a reader needs to judge the numbers later.
//! Not here: where it ran (`host`), what was measured (`case`), reading and checking (`crate::read`).
//! Units: a field without a unit in its name is in the run's clock unit (`Run::clock`), or has none.

mod case;
mod host;
mod inversion;
mod latency;
mod sweep;

pub use case::{
    Case, CaseKind, Counter, CounterKind, Counters, Crowd, CrowdShape, Measurement, Outcome, Repetition,
};
pub use host::{Cpu, CpuCache, Driver, DriverKind, EmbeddedSettings, Host, HostClass, Kernel};
pub use inversion::{Inversion, InversionRow, ServedAs, Setting};
pub use latency::{
    Class, ClassTotals, Hop, Inheritance, LONGEST_LOAD, Latency, LatencyTest, Level, MOST_RAW, Miss,
    Percentiles, Role, Sched, same_urgency,
};
pub use sweep::{Cell, Point, Sweep};

use serde::{Deserialize, Serialize};

/// The value of `Run::schema` in every document of ours.
pub const SCHEMA: &str = "binderperf.run";
/// The newest version this code reads, and the one it writes.
pub const VERSION: u32 = 1;

/// One run of a test: the only result there is; all outputs are renderings of it.
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
    /// Time from start to end of the whole run in nanoseconds, by the wall.
    pub elapsed_ns: u64,
    /// What was asked for.
    pub plan: Plan,
    /// Where it ran.
    pub host: Host,
    /// The Binder driver that served; `None` when only controls ran or none could be opened.
    #[serde(default)]
    pub driver: Option<Driver>,
    /// What the numbers were read from.
    pub clock: Clock,
    /// What the checks before and after the run had to say.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// True when more was run at once than the machine has CPUs: latencies then tell nothing.
    #[serde(default)]
    pub overloaded: bool,
    /// True when every planned case was tried to its end.
    pub complete: bool,
    /// Why the run stopped early; set when `complete` is false.
    #[serde(default)]
    pub incomplete_reason: Option<String>,
    /// The user's own key/value pairs, in the order given.
    #[serde(default)]
    pub context: Vec<(String, String)>,
    /// What all cases of a latency test share; `None` for other tests.
    #[serde(default)]
    pub latency: Option<LatencyTest>,
    /// What the priority-inversion experiment found; `None` for other tests.
    #[serde(default)]
    pub inversion: Option<Inversion>,
    /// The cases in the order they were planned.
    pub cases: Vec<Case>,
}

/// The program that measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// `binderperf`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, where the build knew it.
    #[serde(default)]
    pub git: Option<String>,
    /// Cargo profile: `release` or `dev`.
    pub build_profile: String,
    /// `argv[0]`.
    pub executable: String,
    /// True when built with debug assertions: the numbers are then not to be compared.
    pub debug_assertions: bool,
}

/// What was asked for, as settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The test, e.g. `throughput binder`.
    #[serde(default)]
    pub test: String,
    /// Regular expression over case names; empty for all, a leading `-` negates.
    #[serde(default)]
    pub filter: String,
    /// Least measuring time or iterations of a repetition, as typed: `0.5s`, `1000x`.
    #[serde(default)]
    pub min_time: String,
    /// Least warm-up before the first repetition, in seconds.
    #[serde(default)]
    pub min_warmup_s: f64,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// Whether repetitions of different cases were run in shuffled order.
    #[serde(default)]
    pub random_interleaving: bool,
    /// Seed of that order, or of the choice of services where a case has many.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether the control cases were run beside the test.
    #[serde(default)]
    pub controls: bool,
    /// The driver asked for: `auto`, `kernel` or `embedded`; empty when not known.
    #[serde(default)]
    pub driver: String,
    /// The device asked for: a path, a context's name, `private`, or `auto`.
    #[serde(default)]
    pub device: String,
    /// Where both sides of a case ran: `default` (where the scheduler put them), `same` (one CPU) or
    /// `cross` (two); empty when not known.
    #[serde(default)]
    pub placement: String,
    /// The words of the command line.
    #[serde(default)]
    pub command_line: Vec<String>,
}

/// What the numbers were read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// e.g. `CLOCK_MONOTONIC`.
    pub name: String,
    /// The unit of every reading in this document.
    pub unit: ClockUnit,
    /// Cost of one pair of readings, in `unit`, measured at the start; contained in each sample.
    #[serde(default)]
    pub read_cost: Option<f64>,
    /// Smallest step the clock was seen to make, in `unit`.
    #[serde(default)]
    pub resolution: Option<u64>,
}

/// The unit of a clock reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockUnit {
    /// Nanoseconds.
    Ns,
    /// Guest instructions under a deterministic emulator: exact, and never to be shown as time.
    Instructions,
}

/// What one check of the machine or the build had to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name of the check, e.g. `cpu-governor`.
    pub id: String,
    /// How much it spoils the numbers.
    pub severity: Severity,
    /// What was found.
    pub text: String,
    /// What it does to the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// What to do about it.
    #[serde(default)]
    pub fix: Option<String>,
    /// The files that say so, each with what it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// A command that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

impl Finding {
    /// A finding that knows neither cause nor cure.
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

/// What one file, or one measurement, says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file's path on the machine, or what was measured.
    pub source: String,
    /// What it says, shortened where it is long.
    pub says: String,
}

/// How much a finding spoils the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// The numbers may be off.
    Warning,
    /// The numbers are not to be trusted.
    Error,
}

impl Run {
    /// An empty run of the current schema, not yet complete.
    pub fn new(tool: Tool, started: String, plan: Plan, host: Host, clock: Clock) -> Run {
        Run {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            tool,
            started,
            elapsed_ns: 0,
            plan,
            host,
            driver: None,
            clock,
            findings: Vec::new(),
            overloaded: false,
            complete: false,
            incomplete_reason: None,
            context: Vec::new(),
            latency: None,
            inversion: None,
            cases: Vec::new(),
        }
    }

    /// The case of this exact name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// Whether any repetition of any case failed.
    pub fn any_failed(&self) -> bool {
        let failed = |rep: &Repetition| matches!(rep.outcome, Outcome::Failed { .. });
        self.cases.iter().any(|case| case.repetitions.iter().any(failed))
    }
}
