//! The chaos test: processes that are clients and servers at once exchange random traffic while some are killed, paused
//! and frozen at random, and others open the context once more for a moment. Nothing may be lost, duplicated, leaked or hung.
//!
//! - [`controller`], [`ending`]: the test from outside; [`child`]: the controller's handle of one process.
//! - [`member`]: a process from inside. - [`messages`]: messages between controller and processes.
//! - [`account`], [`driver_state`]: checks of the driver's state text.
//! - [`freezes`]: members frozen through the driver. - [`monitored`]: checks of death notifications.
//! - [`fault`]: faults that prove the checks can fail. - [`instance`], [`tally`]: process identity, counters.
//!
//! Checks: every call of a survivor is answered in time, with the right bytes, by the right process; it is refused
//! only if the callee was killed; oneway calls of each thread to each object arrive in order, exactly once; objects
//! have the announced owner, descriptors the announced content; each registered death is reported exactly once if it
//! happened; at the end no process has more descriptors than at the start, the driver holds no buffer, call,
//! reference or object, the kernel reports no fault of itself, and an embedded driver of the test's own is empty and its broker ends.
//!
//! Not here: tests of single promises (`conformance`), terminal output.
#![forbid(unsafe_code)]

mod account;
mod child;
mod content;
mod controller;
mod driver_state;
mod ending;
mod fault;
mod freezes;
mod instance;
mod member;
mod messages;
mod monitored;
mod tally;

use std::fmt;
use std::io;
use std::time::Duration;

use backend::AnyContext;

pub use fault::Fault;
pub use tally::Tally;

/// Worker roles of this crate.
pub const ROLES: [procgroup::RoleEntry; 1] = [procgroup::RoleEntry::of::<member::ChaosRole>()];

/// Options of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of concurrent members, at least 2.
    pub processes: usize,
    /// Duration of the traffic.
    pub length: Duration,
    /// Seed of all random decisions, as far as scheduling permits repetition.
    pub seed: u64,
    /// Whether to kill members.
    pub kill: bool,
    /// Time after which a call counts as hung.
    pub patience: Duration,
    /// Fault of the first member.
    pub fault: Option<Fault>,
}

/// Summary of a test that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Counts of operations, including what killed members had reported.
    pub tally: Tally,
    /// Processes started.
    pub started: usize,
    /// Processes killed.
    pub kills: usize,
    /// Number of pauses.
    pub pauses: usize,
    /// Number of freezes.
    pub freezes: usize,
    /// Largest growth of a member's resident memory between half-time and end, in KiB; `None` if no member lived that
    /// long.
    pub growth_kib: Option<u64>,
    /// Further notes.
    pub notes: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; processes {}, kills {}, ", self.tally, self.started, self.kills)?;
        write!(f, "pauses {}, freezes {}", self.pauses, self.freezes)?;
        match self.growth_kib {
            Some(kib) => write!(f, "; memory grew by at most {kib} KiB from the middle to the end")?,
            None => write!(f, "; no process lived long enough to compare its memory")?,
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

/// Why the test did not pass.
#[derive(Debug)]
pub enum ChaosError {
    /// It cannot run here; the text says why.
    Unable(String),
    /// A signal stopped it before any failure; the counts so far.
    Stopped(&'static str, Tally),
    /// It failed: the first failures, then the driver's state.
    Failed(Vec<String>),
}

impl ChaosError {
    fn starting(error: io::Error) -> Self {
        Self::Unable(format!("a process of the test cannot be started: {}", sys::errno::describe(&error)))
    }
}

/// Runs the test in a context without manager. SIGINT and SIGTERM stop it.
///
/// # Errors
/// See [`ChaosError`].
pub fn run(context: &AnyContext, options: &Options) -> Result<Summary, ChaosError> {
    sys::stop_signal::catch().map_err(ChaosError::starting)?;
    let mut controller = controller::Controller::begin(context, options)?;
    controller.run()?;
    controller.finish()
}
