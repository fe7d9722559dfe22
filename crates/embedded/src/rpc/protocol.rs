//! Messages between the broker and the library of a process, as types.
//! Not here: their bytes (`codec`), sockets and rings (`connection`, `shm`), the handlers (`broker`, `client`).
//!
//! A *request* goes to the broker as one message on the process's socket; unless it says otherwise
//! it is answered by an [`Item::Answer`]. *Items* come back through the process's inbox, a ring in
//! shared memory, in the order in which the broker made them. File descriptors and texts are
//! fetched by requests that are answered on the socket itself ([`Request::TakeFds`],
//! [`Request::State`]).
//!
//! Each side treats messages of the other as untrusted input: a message that decodes may still be invalid.

use abi::layout::{ExtendedError, FlatBinderObject, NodeInfoForRef};

pub use driver::kernel_state::StateFile;

pub use super::codec::{Malformed, RECORD_SIZE};
use super::codec::{Message, variants};
pub use super::objects::{Lineage, Link, ProcId, Returns, Sched, ThreadKey};

/// Version of this module and of the shared layouts; both sides must agree. Each change of either needs the next
/// number: the test `the_layouts_are_those_of_this_version` fails otherwise.
pub const VERSION: u32 = 21;

/// The lowest number of a direct call in a state file; other calls have lower ones.
pub const DIRECT_CALLS: u32 = 1 << 30;

/// Numbers that a process reserves at a time: enough for a second of calls at full speed, and a small share of all
/// numbers.
pub(crate) const NUMBERS: u32 = 1 << 16;

/// Most descriptors that one transaction may carry: what one message of a unix socket takes
/// (`SCM_MAX_FD`).
pub const MAX_FDS: usize = 253;

/// Bytes of a process's outbox: room for one transaction of the largest receiving area (4 MiB,
/// contract OPN-06) with its offsets.
pub const OUTBOX_SIZE: usize = (4 << 20) + (64 << 10);

variants! {
    /// Kind of a transaction.
    pub enum TransactKind {
        /// A call to this handle of the sender; oneway if the flags contain `TF_ONE_WAY`.
        0 Call { handle: u32 },
        /// A reply to the call that the broker delivered with this number.
        1 Reply { transaction: u32 },
        /// A reply with objects to a call that came through a channel. The caller's thread and the call's flags
        /// (`TF_ACCEPT_FDS` matters) are from the call slot.
        2 SlotReply { channel: u32, call_slot: u32, thread: ThreadKey, call_flags: u32 },
    }
}

/// A transaction on its way to the broker. Its bytes lie in the sender's outbox, from offset 0 and
/// each part rounded up to 8: data, offsets, then the bytes of each PTR object in the order of the
/// offsets. Its descriptors (FD objects and FDA contents, in that order too) travel with the message.
///
/// The sender walks its own objects only to gather bytes and descriptors, and stops at the first invalid one. The
/// broker checks everything and stops at the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transact {
    /// Call or reply.
    pub kind: TransactKind,
    /// Method number.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// Bytes of data.
    pub data_size: u64,
    /// Bytes of offsets.
    pub offsets_size: u64,
    /// Bytes of scattered buffers that the command declared (`_SG` commands; else 0).
    pub buffers_size: u64,
    /// Bytes of scattered buffers that were gathered.
    pub gathered: u64,
    /// The object (index into the offsets) that could not be gathered and the errno for it
    /// (`EFAULT`, `EBADF`, `EMFILE`); `u32::MAX` and 0 if all were. `fault_object` 0 with
    /// `data_fault` set in [`Self::data_fault`] means the data or offsets themselves.
    pub fault_object: u32,
    /// See `fault_object`.
    pub fault_errno: i32,
    /// Errno if data or offsets could not be read, or do not fit the outbox (`EFAULT`, `ENOSPC`);
    /// else 0. Checked where the kernel would copy them: after the buffer was allocated.
    pub data_fault: i32,
    /// Offset of the buffer that the sender's next command, directly behind a reply, frees. The broker frees it
    /// before the caller can call again, so that the next call finds room. A failed reply frees nothing.
    pub frees: Option<u64>,
    /// Whether the thread may not call now (contract TX-13, TX-15): the call fails behind the checks of its target, and has
    /// no bytes.
    pub out_of_turn: bool,
    /// Scheduling of the sending thread.
    pub sched: Sched,
    /// Threads that wait for the call that this thread serves, nearest first.
    pub lineage: Lineage,
}

variants! {
    /// Request of a process to the broker.
    pub enum Request {
        /// The receiving area is mapped at this address; 0: it is unmapped. Not answered.
        1 Mapped { base: u64 },
        /// `BC_TRANSACTION(_SG)`, `BC_REPLY(_SG)`.
        2 Transact { transact: Transact },
        /// `BC_FREE_BUFFER` of a delivered buffer in the arena.
        3 FreeBuffer { offset: u64 },
        /// `BC_INCREFS`, `BC_ACQUIRE`, `BC_RELEASE`, `BC_DECREFS`: the `bc` word says which.
        4 Count { command: u32, handle: u32 },
        /// `BC_INCREFS_DONE`, `BC_ACQUIRE_DONE`.
        5 CountDone { command: u32, ptr: u64, cookie: u64 },
        /// `BC_REQUEST_DEATH_NOTIFICATION`.
        6 RequestDeath { handle: u32, cookie: u64 },
        /// `BC_CLEAR_DEATH_NOTIFICATION`; whether the thread is a looper (contract DTH-06).
        7 ClearDeath { handle: u32, cookie: u64, looper: bool },
        /// `BC_DEAD_BINDER_DONE`.
        8 DeathDone { cookie: u64, looper: bool },
        /// `BC_REQUEST_FREEZE_NOTIFICATION`.
        9 RequestFreeze { handle: u32, cookie: u64 },
        /// `BC_CLEAR_FREEZE_NOTIFICATION`.
        10 ClearFreeze { handle: u32, cookie: u64 },
        /// `BC_FREEZE_NOTIFICATION_DONE`.
        11 FreezeDone { cookie: u64 },
        /// A thread reads an [`Item::Work`] and asks for its present meaning: the answer's `returns` (contract
        /// REF-10).
        12 TakeWork { work: u64 },
        /// A thread took a delivery with descriptors; they are answered on the socket.
        13 TakeFds { transaction: u32 },
        /// A delivery could not be given to its thread (no room for descriptors): free its buffer,
        /// fail the caller with this errno (contract OBJ-12).
        14 Undeliverable { transaction: u32, errno: i32 },
        /// The thread that serves this call, or was to serve it, exits: the caller gets a dead reply.
        15 Abandon { transaction: u32 },
        /// `BINDER_SET_CONTEXT_MGR(_EXT)`.
        16 BecomeManager { node: FlatBinderObject },
        /// `BINDER_GET_NODE_DEBUG_INFO`: answer words ptr, cookie, has_strong, has_weak.
        17 NodeDebugInfo { above: u64 },
        /// `BINDER_GET_NODE_INFO_FOR_REF`: answer words strong, weak.
        18 NodeInfoForRef { info: NodeInfoForRef },
        /// `BINDER_FREEZE`, one step (contract FRZ-01, FRZ-02): 0 thaw, 1 freeze or look again
        /// (errno `EAGAIN` in the answer while something is pending), 2 freeze afresh (resets what
        /// was received), 3 give up and thaw.
        19 Freeze { pid: u32, step: u32 },
        /// `BINDER_GET_FROZEN_INFO`: answer words sync_recv, async_recv.
        20 FrozenInfo { pid: u32 },
        /// `BINDER_ENABLE_ONEWAY_SPAM_DETECTION`.
        21 SpamDetection { enable: bool },
        /// `BINDER_SET_MAX_THREADS`, for the state files. Not answered.
        22 MaxThreads { max: u32 },
        /// The text of a state file (a [`StateFile`] number), answered on the socket with a memfd.
        23 State { which: u32 },
        /// The inbox had overflowed and has room again. Not answered.
        24 More { },
        /// Fetches the descriptors of a channel that an item announced: answered on the socket with
        /// the call slots' memory and the peer's doorbells.
        25 TakeChannel { channel: u32 },
        /// The library is done with a channel whose peer is gone. Not answered.
        26 DropChannel { channel: u32 },
        /// Number and route of the transaction that this process sends next, for a sender that traces. Answer words:
        /// the transaction's number; the called node's number (0 for a reply); the receiver's pid, with the thread's
        /// tid in the upper half (0: any thread); the bytes behind the offsets. `sender_stops`: the receiver has no
        /// room. An errno: the transaction has no receiver. The process's next transaction gets this number.
        27 PreassignRoute { transact: Transact },
        /// Reserves numbers, at most [`NUMBERS`], for calls and failures that the broker does not see. Answer words:
        /// the first number, the count.
        28 Numbers { count: u32 },
        /// Makes the receiving area, once (contract OPN-04): answered on the socket with its memory, in which its lease
        /// lies behind it. `EBUSY`: there was one. [`Self::Mapped`] follows.
        29 Map { size: u64 },
    }
}

variants! {
    /// Message of the broker to a process.
    pub enum Item {
        /// Answers a request of a thread. `outcome`: for transactions the `BR_*` word that the sender
        /// gets (see `sender_stops`), else 0. `errno`: positive, 0 for none; an ioctl or command that
        /// the driver refuses as a whole.
        1 Answer {
            thread: ThreadKey,
            seq: u32,
            errno: i32,
            outcome: u32,
            /// The write loop stops after this command (contract WR-12, TX-17).
            sender_stops: bool,
            /// Number of an accepted transaction.
            transaction: u32,
            error: ExtendedError,
            words: [u64; 4],
            returns: Returns,
        },
        /// A call or oneway call for this process; its bytes are in the arena.
        2 Deliver { delivery: Delivery },
        /// The reply to a call of this thread. `answers` names the call: by transaction, or by call slot.
        3 Reply {
            thread: ThreadKey,
            answers: Answers,
            code: u32,
            flags: u32,
            euid: u32,
            buffer: u64,
            data_size: u64,
            offsets_size: u64,
            /// Bytes behind the offsets.
            extra_size: u64,
            /// Number of the reply; [`Request::TakeFds`] takes it to fetch the descriptors.
            number: u32,
            fds: u32,
        },
        /// The call gets no reply: `BR_DEAD_REPLY`, `BR_FAILED_REPLY` (contract TX-10, TX-17).
        4 Refused { thread: ThreadKey, answers: Answers, outcome: u32, error: ExtendedError },
        /// Work whose meaning a thread asks for when it reads it ([`Request::TakeWork`]). It is queued on this
        /// thread (deferred like a COMPLETE if `deferred`), or on the process.
        5 Work { work: u64, thread: Option<ThreadKey>, deferred: bool },
        /// A channel exists for calls from this process to another (`caller`) or the other way round. `bit` is the
        /// channel's index in the callee's ready bits.
        6 Channel { channel: u32, caller: bool, bit: u32, peer: ProcId, peer_pid: u32, peer_euid: u32 },
        /// For the callee: calls with this binding in that channel go to this node. `tag` marks the buffers of calls to it
        /// in the lease ([`Tag`](crate::shm::lease::Tag)).
        7 BindNode { channel: u32, binding: u32, ptr: u64, cookie: u64, flags: u32, tag: u32 },
        /// For the caller: calls to this handle may use that binding; `flags` are the node's flags, `node` is its
        /// number.
        8 BindHandle { channel: u32, binding: u32, handle: u32, flags: u32, node: u32 },
        /// The binding ends: no call may begin with it (caller), no call will come with it (callee).
        9 Unbind { channel: u32, binding: u32 },
        /// The other process of these channels is gone, and all its unanswered calls with it.
        10 PeerGone { peer: ProcId },
    }
}

/// A call or oneway call on its way to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the transaction.
    pub transaction: u32,
    /// The thread in this process that waits further out in the same chain of calls (contract TX-06); `None`: any
    /// idle thread.
    pub to_thread: Option<ThreadKey>,
    /// The sender.
    pub from: Link,
    /// The node.
    pub ptr: u64,
    /// Cookie of the node.
    pub cookie: u64,
    /// Flags of the node (priority bits).
    pub node_flags: u32,
    /// Method number.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// Pid of the sending process; 0 for a oneway call.
    pub sender_pid: u32,
    /// Effective uid of the sending process when it opened its connection.
    pub sender_euid: u32,
    /// Offset in the arena.
    pub buffer: u64,
    /// Bytes of data.
    pub data_size: u64,
    /// Bytes of offsets; the offsets begin behind the data, rounded up to 8.
    pub offsets_size: u64,
    /// Bytes behind the offsets: scattered buffers, the security context.
    pub extra_size: u64,
    /// Offset in the arena of the sender's security context, if the node asked for it.
    pub security_context: Option<u64>,
    /// Number of descriptors to fetch before the delivery is returned.
    pub fds: u32,
    /// The caller's scheduling.
    pub sched: Sched,
    /// Threads that wait for this call, the caller first; empty for a oneway call.
    pub lineage: Lineage,
}

variants! {
    /// The call that a reply or refusal answers.
    pub enum Answers {
        /// A call that went through the broker.
        0 Transaction { number: u32 },
        /// A call that went through this call slot of a channel.
        1 CallSlot { channel: u32, call_slot: u32 },
    }
}

impl Message for Request {}
impl Message for Item {}
