//! Room: the events of binder drivers, the same for each of them.
//! Not here: reading them; command and return words (`abi` knows what they mean).
//! Facts: `drivers/android/binder_trace.h` and `drivers/android/binder/rust_binder_events.h`, Linux 7.2;
//! contract TP-01 to TP-15. Android's kernels add `binder_set_priority`; old ones have the lock events.

use super::{Name, Prio};

/// Which driver wrote an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// The C driver: group `binder`. Text does not tell it from [`Flavour::Rust`].
    C,
    /// The Rust driver: group `rust_binder`. Fewer events, and some in another order (contract TP-07).
    Rust,
    /// binderperf's own driver, through `trace_marker`.
    Embedded,
}

/// What a binder driver did for the thread that the event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binder {
    /// `binder_transaction`: the sender's side. C: before buffer and queueing, which may still fail.
    /// Rust: at queueing.
    Transaction(Transaction),
    /// `binder_transaction_received`: this thread takes it, request or reply.
    Received {
        /// Which transaction.
        debug_id: i32,
    },
    /// `binder_transaction_alloc_buf`: the receiver's memory for it is there.
    AllocBuf(Buffer),
    /// `binder_transaction_buffer_release`: the receiver gave it back.
    BufferRelease(Buffer),
    /// `binder_transaction_failed_buffer_release`: given back because the transaction failed.
    FailedBufferRelease(Buffer),
    /// `binder_transaction_update_buffer_release`: an outdated oneway call was replaced.
    UpdateBufferRelease(Buffer),
    /// `binder_set_priority`: a thread gets, or gives back, a caller's priority.
    SetPriority {
        /// The process.
        proc: i32,
        /// The thread.
        thread: i32,
        /// Its priority before.
        old: Prio,
        /// Its priority now.
        new: Prio,
        /// What was wanted, before limits.
        desired: Prio,
    },
    /// `binder_lock`: wants the driver's global lock (kernels before 4.14).
    Lock {
        /// By which function; unknown in raw traces.
        tag: Name,
    },
    /// `binder_locked`: has it.
    Locked {
        /// By which function.
        tag: Name,
    },
    /// `binder_unlock`: gives it back.
    Unlock {
        /// By which function.
        tag: Name,
    },
    /// `binder_wait_for_work`: a read begins and may wait. Once per attempt, also if it does not wait.
    WaitForWork {
        /// It may take work of the whole process.
        proc_work: bool,
        /// It waits for a reply.
        transaction_stack: bool,
        /// It has work of its own already.
        thread_todo: bool,
    },
    /// `binder_ioctl`.
    Ioctl {
        /// The request.
        cmd: u32,
        /// Its argument.
        arg: u64,
    },
    /// `binder_ioctl_done`.
    IoctlDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_write_done`: the commands of this ioctl are taken.
    WriteDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_read_done`.
    ReadDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_command`: a `BC_` word is taken.
    Command {
        /// The word.
        cmd: u32,
    },
    /// `binder_return`: a `BR_` word is given.
    Return {
        /// The word.
        cmd: u32,
    },
    /// `binder_txn_latency_free`: the transaction's end in the C driver.
    LatencyFree(LatencyFree),
    /// `binder_transaction_fd_send`: a descriptor is in it.
    FdSend {
        /// Which transaction.
        debug_id: i32,
        /// The sender's number of it.
        fd: i32,
        /// Where in the data.
        offset: u64,
    },
    /// `binder_transaction_fd_recv`: and arrives.
    FdReceived {
        /// Which transaction.
        debug_id: i32,
        /// The receiver's number of it.
        fd: i32,
        /// Where in the data.
        offset: u64,
    },
}

impl Binder {
    /// The transaction that the event is about, where it is about one.
    #[must_use]
    pub fn debug_id(&self) -> Option<i32> {
        match self {
            Self::Transaction(Transaction { debug_id, .. })
            | Self::LatencyFree(LatencyFree { debug_id, .. })
            | Self::Received { debug_id }
            | Self::FdSend { debug_id, .. }
            | Self::FdReceived { debug_id, .. }
            | Self::AllocBuf(Buffer { debug_id, .. })
            | Self::BufferRelease(Buffer { debug_id, .. })
            | Self::FailedBufferRelease(Buffer { debug_id, .. })
            | Self::UpdateBufferRelease(Buffer { debug_id, .. }) => Some(*debug_id),
            _ => None,
        }
    }
}

/// `binder_transaction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, unique in the driver until it wraps. The reply has another.
    pub debug_id: i32,
    /// The node's number; 0 for a reply.
    pub target_node: i32,
    /// The receiving process.
    pub to_proc: i32,
    /// The receiving thread, for replies and calls back into a waiting thread; otherwise 0.
    pub to_thread: i32,
    /// Whether it is a reply.
    pub reply: bool,
    /// The call's code.
    pub code: u32,
    /// `TF_` bits.
    pub flags: u32,
}

impl Transaction {
    /// Whether nobody waits for an answer (`TF_ONE_WAY`, bit 0).
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        !self.reply && self.flags & 1 != 0
    }
}

/// A transaction's memory in the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Which transaction.
    pub debug_id: i32,
    /// Bytes of data.
    pub data_size: u64,
    /// Bytes of offsets.
    pub offsets_size: u64,
    /// Bytes of scattered buffers.
    pub extra_size: u64,
}

/// `binder_txn_latency_free`, with `code` and `flags` as they are: the kernel's text has the two labels
/// swapped (contract TP-09), which readers of text undo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyFree {
    /// Which transaction.
    pub debug_id: i32,
    /// The sending process, 0 once the driver forgot it.
    pub from_proc: i32,
    /// The sending thread, 0 likewise.
    pub from_thread: i32,
    /// The receiving process.
    pub to_proc: i32,
    /// The receiving thread, 0 for oneway.
    pub to_thread: i32,
    /// The call's code.
    pub code: u32,
    /// `TF_` bits.
    pub flags: u32,
}
