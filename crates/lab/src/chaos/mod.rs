//! Room: the chaos test: processes that are clients and servers at once, in random traffic, while some
//! are killed and paused at random instants. In the end nothing may be lost, duplicated, leaked or hung.
//!
//! - [`conductor`], [`ending`]: the test from outside; [`player`]: one process as seen from there.
//! - [`member`]: one process from inside. - [`words`]: what they say to each other.
//! - [`account`], [`driver_state`]: what the driver says of itself. - [`watched`]: its death notices.
//! - [`fault`]: what proves that the checks can fail. - [`instance`], [`tally`]: small parts.
//!
//! What is checked: every call of a survivor is answered in time, with the right bytes from the right
//! process; it is refused only if the process called was killed; oneway calls of each thread to each
//! object arrive in order, once, all of them; objects are whose they were said to be, descriptors hold
//! what they should; each death asked for is told once, if it happened; and in the end no process has
//! more descriptors than at first, no buffer, call, reference or object is left in the driver, and an
//! embedded driver of the test's own is empty and ends.
//!
//! Not here: single promises (`crate::conformance`), terminal output.

mod account;
mod conductor;
mod driver_state;
mod ending;
mod fault;
mod instance;
mod member;
mod player;
mod tally;
mod watched;
mod words;

use std::fmt;
use std::io;
use std::time::Duration;

use driver::AnyContext;

pub use fault::Fault;
pub use tally::Tally;

/// The hidden command under which this binary is one of the test's processes.
pub const COMMAND: &str = "__chaos-peer";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Processes at a time, at least 2.
    pub processes: usize,
    /// How long traffic goes on.
    pub length: Duration,
    /// Decides everything that is random, as far as threads and processes allow.
    pub seed: u64,
    /// Whether processes are killed.
    pub kill: bool,
    /// After how long a call counts as hanging.
    pub patience: Duration,
    /// What the first process does wrong.
    pub fault: Option<Fault>,
}

/// What happened in a test that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What was done, as far as those that were killed could still tell.
    pub tally: Tally,
    /// Processes started.
    pub started: usize,
    /// Processes killed.
    pub kills: usize,
    /// How often a process was stopped for a while.
    pub pauses: usize,
    /// The most that a process's resident memory grew from the middle to the end, in KiB; `None` if
    /// no process lived through both.
    pub growth_kib: Option<u64>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; processes {}, kills {}, ", self.tally, self.started, self.kills)?;
        write!(f, "pauses {}", self.pauses)?;
        match self.growth_kib {
            Some(kib) => write!(f, "; memory grew by at most {kib} KiB from the middle to the end")?,
            None => write!(f, "; no process lived long enough to compare its memory")?,
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

/// Why the test did not pass.
#[derive(Debug)]
pub enum Trouble {
    /// It cannot be run here; the text says why.
    Unable(String),
    /// This signal asked to stop; until then nothing had failed, and this was done.
    Stopped(&'static str, Tally),
    /// It failed: the first complaints, and at the end the driver's state.
    Failed(Vec<String>),
}

impl Trouble {
    fn starting(error: io::Error) -> Self {
        Self::Unable(format!("a process of the test cannot be started: {}", sys::errno::describe(&error)))
    }
}

/// Runs the test in a context that has no manager. SIGINT and SIGTERM stop it.
///
/// # Errors
/// See [`Trouble`].
pub fn run(context: &AnyContext, options: &Options) -> Result<Summary, Trouble> {
    sys::stop_signal::catch().map_err(Trouble::starting)?;
    let mut conductor = conductor::Conductor::begin(context, options)?;
    conductor.play()?;
    conductor.finish()
}

/// Is one of the test's processes, as the words behind [`COMMAND`] say. Returns the exit code.
#[must_use]
pub fn play(given: &[String]) -> u8 {
    match member::role::play(given) {
        Ok(()) => 0,
        Err(why) => {
            // The conductor hears it as this process's last words.
            println!("fail {why}");
            4
        }
    }
}
