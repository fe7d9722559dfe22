//! Heirs of a player's driver process: a child that takes one action, or the program that a player becomes.
//! Not here: what they do (`player`).

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use driver::kernel::KernelConnection;
use driver::{AnyConnection, Connection};
use procgroup::{Role, Streams, WorkerProcess};
use serde::{Deserialize, Serialize};

use crate::state::State;

/// Longest time of a child.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest time in which a killed child ends.
const END: Duration = Duration::from_secs(2);

/// State of a process without what exec ends: its threads and its receiving area.
#[derive(Serialize, Deserialize)]
pub(crate) struct Heritage {
    /// Number of the device's descriptor; `None`: the driver has none, so that the connection ends.
    device: Option<RawFd>,
    nonblocking: bool,
    held: Vec<u64>,
    freed: u64,
    pids: Vec<u32>,
}

impl Heritage {
    /// Lends this state to a program that `run` runs, which inherits the descriptor meanwhile.
    pub(crate) fn lend<T>(state: &State, run: impl FnOnce(Self) -> T) -> T {
        let (held, pids) = (state.held.clone(), state.pids.clone());
        let (nonblocking, freed) = (state.nonblocking, state.freed);
        let made = |device| Self { device, nonblocking, held, freed, pids };
        match state.connection.as_ref().and_then(|connection| connection.descriptor()) {
            Some(device) => sys::descriptor::lend(device, || run(made(Some(device.as_raw_fd())))),
            None => run(made(None)),
        }
    }

    /// The state of the program that was run.
    pub(crate) fn into_state(self) -> std::io::Result<State> {
        let device = self.device.map(sys::descriptor::adopt).transpose()?;
        let connection = device.map(|fd| Arc::new(AnyConnection::new(KernelConnection::inherited(fd))));
        let (held, nonblocking) =
            if connection.is_some() { (self.held, self.nonblocking) } else { Default::default() };
        let mut state = State::default();
        (state.connection, state.nonblocking, state.held) = (connection, nonblocking, held);
        (state.freed, state.pids) = (self.freed, self.pids);
        Ok(state)
    }
}

/// Starts a child in the role that `role` makes, which takes one action; returns its outcome when the child has ended.
pub(crate) fn run_child<R: Role>(state: &State, role: impl FnOnce(Heritage) -> R) -> String {
    if state.connection.as_ref().is_none_or(|connection| connection.descriptor().is_none()) {
        return "nothing to inherit".to_owned();
    }
    let streams = Streams::of(std::process::Stdio::null(), std::process::Stdio::piped());
    let child = Heritage::lend(state, |heritage| WorkerProcess::start(&role(heritage), streams, None));
    let child = match child {
        Ok(child) => child,
        Err(error) => return format!("no child: {}", sys::errno::describe(&error)),
    };
    let outcome = child.ready(LONGEST).unwrap_or_else(|_| "hangs".to_owned());
    // Its end closes the descriptor, which the driver sees.
    if outcome != "hangs" && child.end_within(sys::patience::stretched(LONGEST)).is_some() {
        return outcome;
    }
    child.kill();
    if child.end_within(END).is_none() {
        // It cannot be killed, and its value would wait for it.
        std::mem::forget(child);
    }
    "hangs".to_owned()
}
