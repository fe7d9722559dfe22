//! The controller's handle of one process.
//! Not here: the process itself (`member`), starting and signalling processes (`procgroup`).

use std::io;
use std::process::Stdio;
use std::sync::mpsc::Sender;

use procgroup::{Streams, WorkerProcess};

use super::instance::Instance;
use super::member::ChaosRole;
use super::messages::{Order, Phase};
use super::tally::Tally;

/// A line of a process's output; `None`: the end of its output.
pub(super) type Heard = (Instance, Option<String>);

/// A child process, killed on drop.
pub(super) struct ChildProcess {
    pub(super) instance: Instance,
    pub(super) phase: Phase,
    pub(super) tally: Tally,
    /// Resident KiB that it last reported.
    pub(super) memory: Option<u64>,
    pub(super) process: WorkerProcess,
}

impl ChildProcess {
    /// Starts a process; its output goes to `heard`.
    ///
    /// # Errors
    /// The error of `fork(2)`.
    pub(super) fn start(instance: Instance, role: &ChaosRole, heard: &Sender<Heard>) -> io::Result<Self> {
        let process = WorkerProcess::start(role, Streams::of(Stdio::piped(), Stdio::piped()), None)?;
        let heard = heard.clone();
        // Sending fails only after the end of the test.
        process.listen(move |line| drop(heard.send((instance, line))))?;
        Ok(Self { instance, phase: Phase::Starting, tally: Tally::default(), memory: None, process })
    }

    /// Sends an order to the process. A failure means that it has ended, which its output shows.
    pub(super) fn tell(&self, order: &Order) {
        let line = serde_json::to_string(order).expect("an order is JSON");
        let _ = self.process.write_line(&line);
    }
}
