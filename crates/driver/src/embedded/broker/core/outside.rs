//! Room: what the core is told of a client and what it needs of the world around it.
//! Not here: who provides it (the broker's shell with shared memory, tests with vectors).

use std::collections::BTreeMap;

use crate::embedded::protocol::{Item, ProcId, ThreadKey};

/// Who opens a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The opening process's pid, from the kernel.
    pub pid: u32,
    /// Its effective uid, from the kernel.
    pub euid: u32,
    /// Name of the context.
    pub context: String,
    /// Bytes of its receiving area; 0 if it will not map one.
    pub map_size: usize,
    /// What the security module says of it; `None` without such a module.
    pub security_context: Option<Vec<u8>>,
    /// Whether it takes part in channels.
    pub lanes: bool,
}

/// A thread of a process as its doorbell shows it. Hints only: the process itself wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLine {
    /// Its name in messages.
    pub key: ThreadKey,
    /// Its kernel thread id.
    pub tid: u32,
    /// Its looper bits as the kernel's C driver has them (contract DBG-01).
    pub looper: u32,
    /// Its next read returns at once (contract WR-05).
    pub need_return: bool,
    /// Transactions on its stack, and an unread reply.
    pub depth: u32,
    /// It waits for its process's work.
    pub ready: bool,
    /// The sync calls that it serves and that came through the broker, outermost first, 0 for none.
    pub serving: [u32; 6],
}

/// What a process shows of itself. Hints only, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Loopers that were asked for and have not come yet.
    pub requested: u32,
    /// Loopers that came.
    pub started: u32,
    /// Calls that wait for any thread and are none of the broker's sync calls.
    pub untaken: u32,
    /// Threads that it ever had.
    pub threads_ever: u64,
    /// How often each `BC_*` and `BR_*` word passed, those that did.
    pub words: BTreeMap<u32, u64>,
}

/// The world as the core needs it. Nothing here fails: what cannot be done for a process ends that
/// process's connection, outside.
pub trait Outside {
    /// Writes into a process's receiving area.
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]);
    /// Zeroes a part of it (`TF_CLEAR_BUF`).
    fn zero(&mut self, proc: ProcId, offset: u64, len: u64);
    /// Whether a thread of it has a transaction stack or an unread reply, an item of its inbox or a
    /// taken one is not yet read, or a lane from or to it is not idle (contract FRZ-03).
    fn busy(&self, proc: ProcId) -> bool;
    /// Whether it is not [busy](Self::busy), and takes no call through a lane until its gates open again: they are
    /// frozen already.
    fn settle(&mut self, proc: ProcId) -> bool;
    /// Milliseconds of a clock that does not go back.
    fn now_ms(&self) -> u64;
    /// Its threads, for the state files.
    fn threads(&self, proc: ProcId) -> Vec<ThreadLine>;
    /// What it shows of itself, for the state files.
    fn shown(&self, proc: ProcId) -> Shown;
    /// Puts an item at the end of a process's inbox.
    fn item(&mut self, to: ProcId, item: Item);
    /// Makes the memory of a channel, which has that place in the callee's ready bits; whether that was possible.
    fn make_channel(&mut self, channel: u32, bit: u32, caller: ProcId, callee: ProcId) -> bool;
    /// Writes a channel's gate: [`GATE_FROZEN`], [`GATE_CLOSED`]; 0 ends a freeze, and lets calls of this channel that
    /// were held back go on.
    fn set_gate(&mut self, channel: u32, gate: u32);
    /// Wakes every thread of a process that sleeps, to look for what its channels hold.
    fn wake_all(&mut self, proc: ProcId);
    /// Nobody uses a channel any more: its memory may go.
    fn drop_channel(&mut self, channel: u32);
}

/// Gate bit: the callee is frozen.
pub const GATE_FROZEN: u32 = 1;

/// Gate bit: one side is gone.
pub const GATE_CLOSED: u32 = 2;
