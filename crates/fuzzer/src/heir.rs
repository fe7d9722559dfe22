//! Heirs of a player's driver process: a child that takes one action, or the program that a player becomes.
//! Not here: what they do (`player`).

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use driver::kernel::KernelConnection;
use driver::{AnyConnection, Connection};
use procgroup::{Role, Streams, WorkerProcess};
use serde::{Deserialize, Serialize};

use crate::state::{Belongings, State};

/// Longest time of a child.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest time in which a killed child ends.
const END: Duration = Duration::from_secs(2);

/// Parts of a process that outlive exec: not its threads and its receiving area.
#[derive(Serialize, Deserialize)]
pub(crate) struct Heritage {
    /// Number of the device's descriptor; `None`: the driver has none, so that the connection ends.
    device: Option<RawFd>,
    kept: Belongings,
}

impl Heritage {
    /// Lends this state to a program that `run` runs, which inherits the descriptor meanwhile.
    pub(crate) fn lend<T>(state: &State, run: impl FnOnce(Self) -> T) -> T {
        let made = |device| Self { device, kept: state.kept.clone() };
        match state.connection.as_ref().and_then(|connection| connection.descriptor()) {
            Some(device) => sys::descriptor::lend(device, || run(made(Some(device.as_raw_fd())))),
            None => run(made(None)),
        }
    }

    /// The state of the program that was run.
    pub(crate) fn into_state(self) -> std::io::Result<State> {
        let device = self.device.map(sys::descriptor::adopt).transpose()?;
        let connection = device.map(|fd| Arc::new(AnyConnection::new(KernelConnection::inherited(fd))));
        let mut kept = self.kept;
        if connection.is_none() {
            (kept.held, kept.nonblocking) = Default::default();
        }
        Ok(State { connection, kept, ..State::default() })
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
