//! Room: what the broker and the library of a process say to each other, as types.
//! Not here: their bytes (`codec`), sockets and rings (`link`, `channel`), what is done about them
//! (`broker`, `process`).
//!
//! A *request* goes to the broker as one message on the process's socket; unless it says otherwise
//! it is answered by an [`Item::Answer`]. *Items* come back through the process's inbox, a ring in
//! shared memory, in the order in which the broker made them. File descriptors and texts are
//! fetched by requests that are answered on the socket itself ([`Request::TakeFds`],
//! [`Request::State`]).
//!
//! Both sides treat what the other says as input: whatever decodes may still make no sense.

pub mod codec;
pub mod objects;

use abi::layout::{ExtendedError, FlatBinderObject, NodeInfoForRef};

pub use crate::kernel_state::StateFile;

use codec::messages;
pub use codec::{Malformed, RECORD_SIZE};
pub use objects::{Lineage, Link, Returns, Sched};

/// Version of everything in this module and of the shared layouts; both sides must agree. A change of
/// either needs the next number: `the_layouts_are_those_of_this_version` reminds of it.
pub const VERSION: u32 = 11;

/// Most descriptors that one transaction may carry: what one message of a unix socket takes
/// (`SCM_MAX_FD`).
pub const MAX_FDS: usize = 253;

/// Bytes of a process's outbox: room for one transaction of the largest receiving area (4 MiB,
/// contract OPN-06) with its offsets.
pub const OUTBOX_SIZE: usize = (4 << 20) + (64 << 10);

/// A process in the driver's sense: one open connection. Never given out twice by one broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId(pub u32);

/// A thread of a process: its slot in the process's table of doorbells, and which of the threads
/// that had that slot one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// Index of its doorbell.
    pub slot: u32,
    /// Counts the slot's users.
    pub generation: u32,
}

impl ThreadKey {
    /// Of no thread: the first user of a slot is its generation 1.
    pub const NOBODY: Self = Self { slot: 0, generation: 0 };
}

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactKind {
    /// A call of this handle; `TF_ONE_WAY` in the flags tells whether anybody answers.
    Call {
        /// The sender's handle.
        handle: u32,
    },
    /// The answer to a call that the broker delivered.
    Reply {
        /// Its [`Item::Deliver`]'s number.
        transaction: u32,
    },
    /// The answer, with objects, to a call that came through a channel.
    LaneReply {
        /// The channel.
        channel: u32,
        /// The lane in it.
        lane: u32,
        /// The caller's thread, as the lane says.
        thread: ThreadKey,
        /// Flags of the call, as the lane says (`TF_ACCEPT_FDS` counts).
        call_flags: u32,
    },
}

/// A transaction on its way to the broker. Its bytes lie in the sender's outbox, from offset 0 and
/// each part rounded up to 8: data, offsets, then the bytes of each PTR object in the order of the
/// offsets. Its descriptors (FD objects and FDA contents, in that order too) travel with the message.
///
/// The sender walks its own objects only to gather bytes and descriptors, and stops at the first
/// that makes no sense; the broker checks everything and comes to the same place.
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
    /// Where the buffer lies that the sender's next command gives back, directly behind a reply: the broker does so before
    /// the caller can call again, for whose next call there is room then. Nothing happens to it if the reply fails.
    pub frees: Option<u64>,
    /// How the sending thread is scheduled.
    pub sched: Sched,
    /// Threads that wait for what this thread serves, nearest first.
    pub lineage: Lineage,
}

messages! {
    /// What a process asks of the broker.
    pub enum Request {
        /// The receiving area is mapped at this address; 0: it is gone. Not answered.
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
        /// A thread reads an [`Item::Work`]: what is it now? The answer's `returns` (contract REF-10).
        12 TakeWork { work: u64 },
        /// A thread took a delivery with descriptors: answered on the socket with them.
        13 TakeFds { transaction: u32 },
        /// A delivery could not be given to its thread (no room for descriptors): free its buffer,
        /// fail the caller with this errno (contract OBJ-12).
        14 Undeliverable { transaction: u32, errno: i32 },
        /// The thread that serves this call, or would have, exits: its caller is dead-replied.
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
        /// the lanes' memory and the peer's doorbells.
        25 TakeChannel { channel: u32 },
        /// The library is done with a channel whose peer is gone. Not answered.
        26 DropChannel { channel: u32 },
        /// What becomes of this transaction if it comes next, for a sender that traces: answer words its
        /// number, the called node's (0 for a reply), the receiver's pid with the thread's tid above it
        /// (0: any thread), the bytes behind its offsets. `sender_stops`: there is no room for it. An
        /// errno: it reaches nobody. The process's next transaction has that number.
        27 Foretell { transact: Transact },
        /// Numbers for what the broker does not see, as many as nobody else has: answer words the first
        /// and how many.
        28 Numbers { },
    }
}

messages! {
    /// What the broker tells a process.
    pub enum Item {
        /// Answers a request of a thread. `outcome`: for transactions the `BR_*` word that the sender
        /// gets (see `sender_stops`), else 0. `errno`: positive, 0 for none; an ioctl or command that
        /// the driver refuses as a whole.
        1 Answer {
            thread: ThreadKey,
            seq: u32,
            errno: i32,
            outcome: u32,
            /// The write loop stops behind this command (contract WR-12, TX-17).
            sender_stops: bool,
            /// Of a transaction that was accepted: its number.
            transaction: u32,
            error: ExtendedError,
            words: [u64; 4],
            returns: Returns,
        },
        /// A call or oneway for this process, its bytes in the arena.
        2 Deliver { delivery: Delivery },
        /// The reply to a call of this thread; what it answers is `transaction`, or the lane for a
        /// call that went through a channel.
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
            /// Its number, which names the descriptors that it carries, too ([`Request::TakeFds`]).
            number: u32,
            fds: u32,
        },
        /// There will be no reply: `BR_DEAD_REPLY`, `BR_FAILED_REPLY` (contract TX-10, TX-17).
        4 Refused { thread: ThreadKey, answers: Answers, outcome: u32, error: ExtendedError },
        /// Something to ask about when a thread reads it ([`Request::TakeWork`]): on the queue of
        /// this thread (deferred like a COMPLETE if `deferred`), or of the process.
        5 Work { work: u64, thread: Option<ThreadKey>, deferred: bool },
        /// There is a channel for calls from this process to another (`caller`) or the other way
        /// round. `bit` is the channel's place in the callee's ready bits.
        6 Channel { channel: u32, caller: bool, bit: u32, peer: ProcId, peer_pid: u32, peer_euid: u32 },
        /// To the callee: calls with this binding in that channel mean this node.
        7 BindNode { channel: u32, binding: u32, ptr: u64, cookie: u64, flags: u32 },
        /// To the caller: calls of this handle may use that binding; `flags` are the node's, `node` is its
        /// number.
        8 BindHandle { channel: u32, binding: u32, handle: u32, flags: u32, node: u32 },
        /// The binding ends: no call may begin with it (caller), no call will come with it (callee).
        9 Unbind { channel: u32, binding: u32 },
        /// The other process of these channels is gone, and all its unanswered calls with it.
        10 PeerGone { peer: ProcId },
    }
}

/// A call or oneway on its way to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number.
    pub transaction: u32,
    /// The thread in this process that waits further out in the same chain of calls (contract
    /// TX-06); `None`: any idle one.
    pub to_thread: Option<ThreadKey>,
    /// The sender.
    pub from: Link,
    /// The node.
    pub ptr: u64,
    /// Its cookie.
    pub cookie: u64,
    /// Flags of the node (priority bits).
    pub node_flags: u32,
    /// Method number.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// 0 for oneway.
    pub sender_pid: u32,
    /// Effective uid of the sending process when it opened its connection.
    pub sender_euid: u32,
    /// Offset in the arena.
    pub buffer: u64,
    /// Bytes of data.
    pub data_size: u64,
    /// Bytes of offsets, which begin behind the data rounded up to 8.
    pub offsets_size: u64,
    /// Bytes behind them: scattered buffers, the security context.
    pub extra_size: u64,
    /// Offset in the arena of the sender's security context, if the node asked for it.
    pub security_context: Option<u64>,
    /// How many descriptors to fetch first.
    pub fds: u32,
    /// The caller's scheduling.
    pub sched: Sched,
    /// Threads that wait for it, the caller first; empty for oneway.
    pub lineage: Lineage,
}

/// Which call something answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// One that went through the broker.
    Transaction(u32),
    /// One that went through a lane.
    Lane {
        /// The channel.
        channel: u32,
        /// The lane in it.
        lane: u32,
    },
}
