//! Room: what is known of a machine that no file of its tells: its kind, this program's build and rights,
//! devices, what was measured; kept beside the files of a snapshot.
//! Not here: measuring (`measure`), judging (the probes).

use std::collections::BTreeMap;

use record::HostClass;
use serde::{Deserialize, Serialize};

/// The file of a snapshot that holds them.
pub(super) const FILE: &str = "binderperf-snapshot.json";
/// The value of `Facts::schema`.
const SCHEMA: &str = "binderperf.snapshot";
/// The newest version that is read, and the one that is written.
const VERSION: u32 = 1;

/// The facts. `None` and empty: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Always [`SCHEMA`] when written.
    pub schema: String,
    /// Always [`VERSION`] when written.
    pub version: u32,
    /// The version of the program that looked.
    #[serde(default)]
    pub tool: String,
    /// Whether that program was built for debugging.
    #[serde(default)]
    pub debug_build: Option<bool>,
    /// What kind of machine it is.
    #[serde(default)]
    pub class: Option<HostClass>,
    /// CPUs that the program might use.
    #[serde(default)]
    pub usable_cpus: Option<u32>,
    /// Binder devices.
    #[serde(default)]
    pub devices: Option<Vec<Device>>,
    /// Names in binderfs' folder of features; `None` where there is no such folder.
    #[serde(default)]
    pub features: Option<Vec<String>>,
    /// Outputs of commands, under the names of the files that a snapshot made by hand would have.
    #[serde(default)]
    pub texts: BTreeMap<String, String>,
    /// Files that could not be copied, and why.
    #[serde(default)]
    pub unreadable: BTreeMap<String, String>,
    /// What was measured.
    #[serde(default)]
    pub measured: Measured,
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
    /// Why it could not be opened; `None` if it could.
    pub refused: Option<String>,
}

/// What was measured on the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// How late a sleeping thread was woken.
    #[serde(default)]
    pub wake: Option<Wake>,
    /// Cost of a pair of clock readings.
    #[serde(default)]
    pub clock_pair_ns: Option<f64>,
    /// Share of the CPU time of a short while that a hypervisor gave to others.
    #[serde(default)]
    pub steal_share: Option<f64>,
    /// Whether a thread could become `SCHED_FIFO`.
    #[serde(default)]
    pub realtime: Option<Realtime>,
}

/// How late a sleeping thread was woken by its timer, in ns: interrupt, the way out of the CPU's idle state,
/// the switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// Whether the thread was a real-time one; others wait for their turn, too.
    pub realtime: bool,
    /// How often it slept.
    pub sleeps: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The worst.
    pub max_ns: u64,
}

/// Whether a thread could become `SCHED_FIFO`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Realtime {
    /// Why not; `None` if it could.
    pub refused: Option<String>,
}

impl Facts {
    /// Nothing known yet, of the current version.
    #[must_use]
    pub fn new() -> Self {
        Self { schema: SCHEMA.to_owned(), version: VERSION, ..Self::default() }
    }

    /// Reads the document.
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

    /// The document.
    pub(super) fn to_json(&self) -> String {
        // Strings, numbers and lists only: nothing in it can fail to be JSON.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
