//! Messages between controller and processes: one JSON value per line of a pipe.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::tally::Tally;

/// To a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Stop the traffic.
    Stop,
    /// Release everything; these processes are dead.
    Settle(BTreeSet<Instance>),
    /// Begin no calls, until the other order: who has calls under way cannot be frozen.
    Rest(bool),
    /// Report what you wait for.
    Waits,
    /// Report your memory.
    Memory,
    /// End.
    Leave,
}

/// From a process. A line that is none of these is the error that ended it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// It has reached this phase.
    Reached(Phase),
    /// Its counts so far.
    Count(Tally),
    /// Its resident memory in KiB.
    Memory(u64),
    /// A call was refused: by whom, and the details.
    Refused(Target, String),
    /// It was notified of the death of this process.
    Died(Instance),
    /// A thread waits for this.
    Wait(String),
    /// A thread has waited too long.
    Hang(String),
    /// A check failed.
    Fail(String),
}

/// Progress of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    Starting,
    /// It serves.
    Ready,
    /// Its traffic has stopped and arrived.
    Stopped,
    /// It holds nothing any more.
    Settled,
    Ended,
}

/// The process that a call goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Target {
    /// The service manager.
    Manager,
    /// The process that has this index now.
    Index(usize),
    Member(Instance),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manager => f.write_str("manager"),
            Self::Index(index) => write!(f, "index-{index}"),
            Self::Member(instance) => instance.fmt(f),
        }
    }
}
