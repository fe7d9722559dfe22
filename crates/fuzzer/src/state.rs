//! State that the threads of a player share: its process, as the driver and other players know it.
//! Not here: what they do with it (`player`).

use std::sync::Arc;

use driver::AnyConnection;
use serde::{Deserialize, Serialize};
use sys::interrupt::ThreadId;

use crate::program::THREADS;

/// Parts of a process's state that outlive exec.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Belongings {
    pub(crate) nonblocking: bool,
    /// Addresses of the buffers that it holds, oldest first.
    pub(crate) held: Vec<u64>,
    /// The one that it freed last.
    pub(crate) freed: u64,
    /// Process numbers of the players.
    pub(crate) pids: Vec<u32>,
}

/// The process, to the driver and to other players.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) connection: Option<Arc<AnyConnection>>,
    pub(crate) kept: Belongings,
    /// Threads that the driver knows.
    pub(crate) met: [bool; THREADS],
    pub(crate) threads: [Option<ThreadId>; THREADS],
}
