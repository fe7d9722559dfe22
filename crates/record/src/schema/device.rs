//! The device of a run, and its conditions before and after: build, clusters, frequencies, temperatures, battery.
//! `None` and empty: unknown.
//! Not here: the machine as any Linux describes it (`super::host`), judging (`Finding`s do).

use serde::{Deserialize, Serialize};

/// Facts about a phone or board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The serial number: every phone calls itself `localhost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Android's build fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Android's security patch level, e.g. `2026-10-05`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_level: Option<String>,
    /// `user`, `userdebug` or `eng`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_type: Option<String>,
    /// The system on a chip: maker and model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soc: Option<String>,
    /// Groups of CPUs of different speed, slowest first; empty where all are alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
}

/// CPUs of one speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Which of them.
    pub kind: ClusterKind,
    /// The CPUs, ascending.
    pub cpus: Vec<u32>,
    /// The kernel's capacity of the fastest of them; the machine's fastest CPU has 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// Highest frequency of the hardware, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
}

/// A cluster, by its speed among those of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterKind {
    /// The slowest.
    Little,
    /// Between them.
    Mid,
    /// The fastest.
    Big,
}

impl ClusterKind {
    /// The word in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Mid => "mid",
            Self::Big => "big",
        }
    }
}

/// The conditions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The cpuset of the test, e.g. `/top-app`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpuset: Option<String>,
    /// Least and greatest utilisation that the scheduler assumes of the test's threads, of 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp: Option<(u32, u32)>,
    /// The device at the start.
    pub before: State,
    /// The device at the end.
    pub after: State,
}

/// A device at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Frequencies, one for each group of CPUs that share one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frequencies: Vec<Frequency>,
    /// Temperatures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub temperatures: Vec<Temperature>,
    /// Cooling devices that are at work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cooling: Vec<Cooling>,
    /// Android's thermal status: 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_status: Option<u32>,
    /// The battery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Whether the screen is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen_on: Option<bool>,
}

/// The frequency of CPUs that share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    /// The CPUs, as the kernel lists them, e.g. `0-3`.
    pub cpus: String,
    /// The governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Now, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz: Option<u64>,
    /// The present limit, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_khz: Option<u64>,
    /// The limit of the hardware, in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
}

/// The temperature of a thermal zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Temperature {
    /// The zone's type, e.g. `cpu-1-0`.
    pub zone: String,
    /// Temperature in thousandths of a degree Celsius.
    pub millidegrees: i64,
}

/// A cooling device at work: it takes speed away from what it cools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    /// The device's type, e.g. `thermal-cpufreq-0`.
    pub device: String,
    /// Its state; 0 is no cooling.
    pub state: u64,
    /// Its greatest state.
    pub most: u64,
}

/// A battery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Battery {
    /// Its charge in percent.
    pub percent: u32,
    /// Whether it is being charged, or full beside a charger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charging: Option<bool>,
}

impl State {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
