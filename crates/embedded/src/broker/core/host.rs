//! Interface between the core and its surroundings: facts about clients, and the operations that the core calls.
//! Not here: the implementations (`broker::memory`; vectors in tests).

use std::collections::BTreeMap;

use super::arena::Arena;
use crate::rpc::protocol::{Item, Link, ProcId, ThreadKey};
use crate::shm::call_slot::look::UnderWay;
use crate::shm::lease::Range;

/// Process that opens a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The opening process's pid, from the kernel.
    pub pid: u32,
    /// The process's effective uid, from the kernel.
    pub euid: u32,
    /// Name of the context.
    pub context: String,
    /// Bytes of the receiving area.
    pub map_size: usize,
    /// The process's security context; `None` without a security module.
    pub security_context: Option<Vec<u8>>,
    /// Whether the process uses channels.
    pub call_slots: bool,
}

/// Snapshot of a thread from its doorbell. Only hints: the process itself wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSnapshot {
    /// Key of the thread.
    pub key: ThreadKey,
    /// Kernel thread id.
    pub tid: u32,
    /// Looper bits, with the values of the kernel's C driver (contract DBG-01).
    pub looper: u32,
    /// The thread's next read returns at once (contract WR-05).
    pub need_return: bool,
    /// Transactions on its stack, and an unread reply.
    pub depth: u32,
    /// The thread waits for process work.
    pub ready: bool,
    /// Sync calls through the broker that the thread serves, outermost first, 0 for none.
    pub serving: [u32; 6],
}

/// Snapshot of a process from its doorbells. Only hints: the process itself wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcSnapshot {
    /// Loopers that were requested and have not started yet.
    pub requested: u32,
    /// Loopers that started.
    pub started: u32,
    /// Calls that wait for any thread, without the broker's sync calls.
    pub untaken: u32,
    /// Number of threads that ever existed.
    pub threads_ever: u64,
    /// Count of each `BC_*` and `BR_*` word that occurred.
    pub words: BTreeMap<u32, u64>,
}

/// A call through a call slot that is not answered, for the state files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectCall {
    /// Number of the channel.
    pub channel: u32,
    /// The process that called.
    pub caller: ProcId,
    /// The called process.
    pub callee: ProcId,
    /// The call as its slot shows it.
    pub call: UnderWay,
    /// Milliseconds since it was first seen: by how much it is older nobody knows.
    pub elapsed_ms: u64,
}

/// Operations that the core needs of its surroundings. None fails: if an operation cannot be done for a process, the
/// implementation ends that process's connection.
pub trait Host {
    /// Writes into a process's receiving area.
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]);
    /// Zeroes a range of a process's receiving area (`TF_CLEAR_BUF`).
    fn zero(&mut self, proc: ProcId, offset: u64, len: u64);
    /// Suspends the lease by which a process places buffers in its receiving area. Returns the ranges that it has
    /// placed, by entry; `None` without a lease.
    fn suspend_lease(&mut self, proc: ProcId) -> Option<&[Range]>;
    /// Resumes a lease with the gaps and counted buffers of `arena`.
    fn resume_lease(&mut self, proc: ProcId, arena: &Arena);
    /// Ranges that a process has placed by itself, for the state files.
    fn placed(&self, proc: ProcId) -> Vec<Range>;
    /// Whether a transaction is pending at a process: a thread has a call that has not failed or an unread reply, a
    /// call, oneway call or reply is unread, or a call slot from or to it is not idle (contract FRZ-03).
    fn busy(&self, proc: ProcId) -> bool;
    /// Whether a process is not [busy](Self::busy), and takes no call through a call slot until its gates open
    /// again. Its gates are frozen already.
    fn settle(&mut self, proc: ProcId) -> bool;
    /// Milliseconds of a monotonic clock.
    fn now_ms(&self) -> u64;
    /// Whether a thread has not exited, as far as its process shows.
    fn has_thread(&self, link: Link) -> bool;
    /// Threads of a process, for the state files.
    fn threads(&self, proc: ProcId) -> Vec<ThreadSnapshot>;
    /// Snapshot of a process, for the state files.
    fn snapshot(&self, proc: ProcId) -> ProcSnapshot;
    /// Channel and binding of each call through a call slot to a process that no thread has read.
    fn unread_calls(&self, callee: ProcId) -> Vec<(u32, u32)>;
    /// Number of buffers with a node's tag that a process has placed by itself.
    fn tagged(&self, proc: ProcId, tag: u32) -> u64;
    /// Calls through call slots that are not answered, for the state files.
    fn direct_calls(&mut self) -> Vec<DirectCall>;
    /// Puts an item at the end of a process's inbox.
    fn item(&mut self, to: ProcId, item: Item);
    /// Creates the memory of a channel with index `bit` in the callee's ready bits; false if that is impossible.
    fn make_channel(&mut self, channel: u32, bit: u32, caller: ProcId, callee: ProcId) -> bool;
    /// Shuts a channel's gate for these reasons ([`FROZEN`](crate::shm::call_slot::FROZEN),
    /// [`CLOSED`](crate::shm::call_slot::CLOSED)); 0 ends a freeze and releases calls that the gate
    /// held.
    fn set_gate(&mut self, channel: u32, gate: u32);
    /// Wakes every sleeping thread of a process, to check its channels.
    fn wake_all(&mut self, proc: ProcId);
    /// Frees the memory of a channel that no process uses.
    fn drop_channel(&mut self, channel: u32);
}
