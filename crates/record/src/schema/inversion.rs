//! Room: what the priority-inversion experiment found: who ran where, and what became of the calls with and
//! without inheritance.
//! Not here: whether that is inversion (`crate::inversion`).
//! Facts: Android's page on Binder performance testing, "Priority inversion".

use serde::{Deserialize, Serialize};

use super::latency::{Percentiles, Sched};

/// The experiment: a real-time caller, its server and processes that hog the CPU, all on the same one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inversion {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// The CPU that all of them share.
    pub cpu: u32,
    /// How many processes hog it.
    pub hogs: u32,
    /// How they are scheduled, as typed, e.g. `other` or `fifo10`.
    pub hog_class: String,
    /// How the caller was found to be scheduled.
    pub caller: Sched,
    /// Calls of each row in each round.
    pub iterations: u64,
    /// Rounds, in each of which every row had its turn.
    pub rounds: u32,
    /// A call that took longer is late, in clock units; `None` without calls to tell it by.
    #[serde(default)]
    pub limit: Option<u64>,
    /// What became of the calls in each setting, in the order of [`Setting::ALL`].
    pub rows: Vec<InversionRow>,
}

impl Inversion {
    /// What was found in this setting.
    pub fn row(&self, setting: Setting) -> Option<&InversionRow> {
        self.rows.iter().find(|row| row.setting == setting)
    }
}

/// In which setting calls were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// Nobody hogs the CPU.
    Quiet,
    /// Hogs, and no inheritance.
    Off,
    /// Hogs and inheritance.
    On,
    /// Hogs, and a server that was made as urgent as its caller before: what perfect inheritance would give.
    Raised,
}

impl Setting {
    /// All of them.
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

/// The calls of one setting, of all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InversionRow {
    /// In which setting.
    pub setting: Setting,
    /// The case with its times.
    pub case: String,
    /// How inheritance was turned on or off, e.g. `driver inherits rt`.
    pub means: String,
    /// Calls that were made.
    pub calls: u64,
    /// Those of them that took longer than the limit.
    pub late: u64,
    /// Late ones in which, for more than half of the time, neither side ran on a CPU.
    pub bubbles: u64,
    /// Calls that were served at another priority than the caller's.
    pub not_inherited: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// How the server was scheduled while it served, and how many calls so; the most frequent first.
    #[serde(default)]
    pub served: Vec<ServedAs>,
    /// Whether this is inversion; of [`Setting::Raised`], whether somebody else than the server waits behind the
    /// hogs. `None` when it cannot be told, and without hogs.
    #[serde(default)]
    pub inverted: Option<bool>,
}

/// Calls that were served so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedAs {
    /// How the serving thread was scheduled.
    pub sched: Sched,
    /// In how many calls.
    pub calls: u64,
}
