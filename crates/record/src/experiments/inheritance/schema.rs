//! Results of the inheritance scenes: the scheduling of caller and server in each situation.
//! Not here: the verdict (`verdict`).
//! Facts: levels of inheritance: contract section 14.

use serde::{Deserialize, Serialize};

use crate::schema::{Sched, same_urgency};

/// The level of priority inheritance: how much of the caller's priority a serving thread takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing, as with the kernel driver in Rust.
    None,
    /// Nice values, as with the kernel driver in C.
    Nice,
    /// Nice values and real-time policies, as on Android.
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

/// Priority inheritance: the measured and the expected level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inheritance {
    /// Calls of the test itself that were examined.
    pub calls: u64,
    /// Calls served at a priority other than the caller's.
    pub not_inherited: u64,
    /// The highest level at which every direct call of the scenes was served; `None` if undecided.
    #[serde(default)]
    pub measured: Option<Level>,
    /// The level expected of this driver with this kind of node; `None` if unknown.
    #[serde(default)]
    pub expected: Option<Level>,
    /// The reason for the expected level.
    #[serde(default)]
    pub expected_reason: String,
    /// The reason why less is expected than Android's tools require; `None` if as much is, or if unknown.
    #[serde(default)]
    pub below_android: Option<Limit>,
    /// The examined situations, one by one.
    #[serde(default)]
    pub hops: Vec<Hop>,
}

/// The reason why a driver promises less than to serve each call at its caller's priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The node does not ask for real-time policies, on a driver that would pass them on.
    Node,
    /// The embedded driver's setting.
    Setting,
    /// The kernel's driver in C, without Android's changes.
    Mainline,
    /// The kernel's driver in Rust.
    Rust,
    /// The servers have no right to change their priority.
    Rights,
}

/// One hop of a call in one situation (scene).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Name of the situation: `call`, `queued`, `nested-1`, `nested-2`, `callback`, `oneway`, `minimum`, `restored`,
    /// `after`.
    pub scene: String,
    /// Scheduling of the caller.
    pub caller: Sched,
    /// Scheduling of the serving thread before the call.
    pub idle: Sched,
    /// Scheduling while it served (in `restored`: after its reply).
    #[serde(default)]
    pub served: Option<Sched>,
    /// The scheduling expected of this driver; `None` if unknown or not tried.
    #[serde(default)]
    pub expected: Option<Sched>,
    /// The reason why it was not examined, or another remark.
    #[serde(default)]
    pub note: String,
}

impl Hop {
    /// Whether it was as expected; `None` if either is unknown.
    pub fn as_expected(&self) -> Option<bool> {
        Some(same_urgency(self.served?, self.expected?))
    }

    /// Whether it was tried and failed; `note` then holds the reason.
    pub fn is_broken(&self) -> bool {
        self.served.is_none() && self.expected.is_some()
    }
}
