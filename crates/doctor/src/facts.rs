//! Facts about a machine that are in no file: its host class, this program's build and rights, devices, measurements.
//! Saved beside the files of a snapshot.
//! Not here: measuring (`measure`), judging (the probes).

use std::collections::BTreeMap;

use driver::error::NO_DRIVER;
use record::HostClass;
use serde::{Deserialize, Serialize};

/// File name in a snapshot.
pub(super) const FILE: &str = "binderperf-snapshot.json";
/// The value of `Facts::schema`.
const SCHEMA: &str = "binderperf.snapshot";
/// Newest version that is read; the version that is written.
const VERSION: u32 = 1;

/// The facts. `None` and empty: unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Always [`SCHEMA`] when written.
    pub schema: String,
    /// Always [`VERSION`] when written.
    pub version: u32,
    /// Version of the program that collected them.
    pub tool: String,
    /// Whether that program is a debug build.
    pub debug_build: Option<bool>,
    /// Host class.
    pub class: Option<HostClass>,
    /// CPUs usable by the program.
    pub usable_cpus: Option<u32>,
    /// Binder devices.
    pub devices: Option<Vec<Device>>,
    /// Trace instances of this program's recorders by name, with whether the recorder runs.
    pub recorders: Option<BTreeMap<String, bool>>,
    /// Outputs of commands, keyed by the file name that a snapshot made by hand would have.
    pub texts: BTreeMap<String, String>,
    /// Files that could not be copied, with the reason.
    pub unreadable: BTreeMap<String, String>,
    /// Measurements.
    pub measured: Measured,
    /// Results of attempts; `None` if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

/// Needs of the tests, tried on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tried {
    /// The effective user.
    pub uid: Option<u32>,
    /// The contexts of the system that exist.
    pub contexts: Vec<ContextTried>,
    /// Making a private binderfs and opening its device.
    pub private: Option<Attempt>,
    /// Making a trace instance.
    pub tracefs: Option<Attempt>,
    /// Asking Perfetto's recorder.
    pub perfetto: Option<Attempt>,
    /// Messages of SELinux meanwhile; `None` if the kernel's log cannot be read.
    pub denials: Option<Vec<String>>,
}

/// A context of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTried {
    /// Its name.
    pub name: String,
    /// Opening it.
    pub opened: Attempt,
    /// Whether it has a manager; `None` if that cannot be told.
    #[serde(default)]
    pub managed: Option<bool>,
    /// Registering a service at its manager.
    #[serde(default)]
    pub registered: Option<Attempt>,
}

/// An attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// The reason why not; `None` if it succeeded.
    pub refused: Option<String>,
}

/// A binder device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its path.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Error of opening it; `None` if that succeeded.
    pub refused: Option<String>,
}

impl Device {
    /// The errno of opening it; empty if that succeeded.
    pub(crate) fn errno(&self) -> &str {
        let why = self.refused.as_deref().unwrap_or_default();
        why.split([' ', ':']).next().unwrap_or_default()
    }

    /// Whether opening it said that no driver stands behind the node.
    pub(crate) fn is_driverless(&self) -> bool {
        NO_DRIVER.contains(&self.errno())
    }
}

/// Measurements on the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Wake-up latency of a sleeping thread.
    pub wake: Option<Wake>,
    /// Cost of a pair of clock readings.
    pub clock_pair_ns: Option<f64>,
    /// Share of CPU time that the hypervisor gave to other guests, over a short interval.
    pub steal_share: Option<f64>,
    /// Whether a thread could become `SCHED_FIFO`.
    pub realtime: Option<Realtime>,
}

/// Wake-up latency of a timer, in ns: interrupt, exit from the idle state, context switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// Whether the thread was real-time; other threads also wait for their turn.
    pub realtime: bool,
    /// Number of samples.
    pub sleeps: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Whether a thread could become `SCHED_FIFO`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Realtime {
    /// The reason why not; `None` if it could.
    pub refused: Option<String>,
}

impl Facts {
    /// Empty facts of the current version.
    #[must_use]
    pub fn new() -> Self {
        Self { schema: SCHEMA.to_owned(), version: VERSION, ..Self::default() }
    }

    /// Parses the JSON document.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let facts: Self = serde_json::from_str(text).map_err(|error| format!("not understood: {error}"))?;
        match (facts.schema.as_str(), facts.version) {
            (SCHEMA, 1..=VERSION) => Ok(facts),
            (SCHEMA, version) => {
                Err(format!("a snapshot of version {version}; this binderperf reads up to {VERSION}"))
            }
            (other, _) => Err(format!("not a snapshot's facts but {other:?}")),
        }
    }

    /// The JSON document.
    pub(super) fn to_json(&self) -> String {
        // Cannot fail: strings, numbers and lists only.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
