//! Results of the priority-inversion experiment: how calls fared with and without inheritance.
//! Not here: the verdict (`lateness`).
//! Facts: Android's page on Binder performance testing, "Priority inversion".

use serde::{Deserialize, Serialize};

use crate::schema::{Percentiles, Sched};

/// The experiment: a real-time caller, its server and processes that hog the CPU, all on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inversion {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// The CPU that all of them share.
    pub cpu: u32,
    /// Number of hog processes.
    pub hogs: u32,
    /// Scheduling of the hogs, as typed, e.g. `other` or `fifo10`.
    pub hog_class: String,
    /// Scheduling of the caller, as observed.
    pub caller: Sched,
    /// Calls of each row in each round.
    pub iterations: u64,
    /// Number of rounds; each contains every row once.
    pub rounds: u32,
    /// A call that took longer is late, in clock units; `None` without calls to derive it from.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The results of each setting, in the order of [`Setting::ALL`].
    pub rows: Vec<InversionRow>,
}

impl Inversion {
    /// The row of this setting.
    pub fn row(&self, setting: Setting) -> Option<&InversionRow> {
        self.rows.iter().find(|row| row.setting == setting)
    }
}

/// The setting in which calls were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// No hogs.
    Quiet,
    /// Hogs without inheritance.
    Off,
    /// Hogs with inheritance.
    On,
    /// Hogs, and a server that already runs at its caller's priority: the result of perfect inheritance.
    Raised,
}

impl Setting {
    /// All settings.
    pub const ALL: [Setting; 4] = [Setting::Quiet, Setting::Off, Setting::On, Setting::Raised];

    /// The word used in documents, names of cases and tables.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Quiet => "quiet",
            Setting::Off => "off",
            Setting::On => "on",
            Setting::Raised => "raised",
        }
    }
}

/// The calls of one setting over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InversionRow {
    /// The setting.
    pub setting: Setting,
    /// The name of the case with its times.
    pub case: String,
    /// How inheritance was turned on or off, e.g. `driver inherits rt`.
    pub means: String,
    /// Number of calls.
    pub calls: u64,
    /// Calls that took longer than the limit.
    pub late: u64,
    /// Late calls in which neither side ran on a CPU for more than half of the time.
    pub bubbles: u64,
    /// Calls served at a priority other than the caller's.
    pub not_inherited: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Scheduling of the serving thread and the number of calls for each, the most frequent first.
    #[serde(default)]
    pub served: Vec<ServedAs>,
    /// Whether this is inversion; for [`Setting::Raised`], whether something other than the server waits behind the
    /// hogs. `None` if undecided, and without hogs.
    #[serde(default)]
    pub inverted: Option<bool>,
}

/// The calls that were served under one scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedAs {
    /// Scheduling of the serving thread.
    pub sched: Sched,
    /// Number of calls.
    pub calls: u64,
}
