//! Events of binder drivers, in one form for all drivers.
//! Not here: reading them; the meaning of command and return words (`abi`).
//! Facts: `drivers/android/binder_trace.h` and `drivers/android/binder/rust_binder_events.h`, Linux 7.2; contract
//! TP-01 to TP-15. Android kernels add `binder_set_priority`; old kernels have the lock events.

use super::{Name, Prio};

/// Driver that wrote an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// C driver: group `binder`. Text traces cannot tell it from [`Flavour::Rust`].
    #[default]
    C,
    /// Rust driver: group `rust_binder`. Fewer events, some in another order (contract TP-07).
    Rust,
    /// Embedded driver, through `trace_marker`.
    Embedded,
}

/// Binder driver event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binder {
    /// `binder_transaction`: sender's side. C driver: before buffer allocation and queueing, which may still fail.
    /// Rust driver: at queueing.
    Transaction(Transaction),
    /// `binder_transaction_received`: this thread receives a request or reply.
    Received {
        /// `debug_id` of the transaction.
        debug_id: i32,
    },
    /// `binder_transaction_alloc_buf`: the receiver's buffer is allocated.
    AllocBuf(Buffer),
    /// `binder_transaction_buffer_release`: the receiver freed the buffer.
    BufferRelease(Buffer),
    /// `binder_transaction_failed_buffer_release`: freed because the transaction failed.
    FailedBufferRelease(Buffer),
    /// `binder_transaction_update_buffer_release`: an outdated oneway call was replaced.
    UpdateBufferRelease(Buffer),
    /// `binder_set_priority`: a thread inherits a caller's priority, or restores its own.
    SetPriority {
        /// Process ID.
        proc: i32,
        /// Thread ID.
        thread: i32,
        /// Old priority.
        old: Prio,
        /// New priority.
        new: Prio,
        /// Requested priority, before limits.
        desired: Prio,
    },
    /// `binder_lock`: waits for the driver's global lock (kernels before 4.14).
    Lock {
        /// Locking function; unknown in raw traces.
        tag: Name,
    },
    /// `binder_locked`: has the global lock.
    Locked {
        /// Locking function.
        tag: Name,
    },
    /// `binder_unlock`: releases the global lock.
    Unlock {
        /// Locking function.
        tag: Name,
    },
    /// `binder_wait_for_work`: a read begins and may wait. Emitted once per attempt, even if it does not wait.
    WaitForWork {
        /// Thread may take work of the process.
        proc_work: bool,
        /// Thread waits for a reply.
        transaction_stack: bool,
        /// Thread has work of its own.
        thread_todo: bool,
    },
    /// `binder_ioctl`.
    Ioctl {
        /// ioctl request.
        cmd: u32,
        /// ioctl argument.
        arg: u64,
    },
    /// `binder_ioctl_done`.
    IoctlDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_write_done`: the commands of this ioctl are processed.
    WriteDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_read_done`.
    ReadDone {
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `binder_command`: a `BC_` word is processed.
    Command {
        /// Command word.
        cmd: u32,
    },
    /// `binder_return`: a `BR_` word is returned.
    Return {
        /// Return word.
        cmd: u32,
    },
    /// `binder_txn_latency_free`: end of the transaction in the C driver.
    LatencyFree(LatencyFree),
    /// `binder_transaction_fd_send`: the transaction carries a descriptor.
    FdSend {
        /// `debug_id` of the transaction.
        debug_id: i32,
        /// Descriptor number in the sender.
        fd: i32,
        /// Offset in the data.
        offset: u64,
    },
    /// `binder_transaction_fd_recv`: a descriptor is installed in the receiver.
    FdReceived {
        /// `debug_id` of the transaction.
        debug_id: i32,
        /// Descriptor number in the receiver.
        fd: i32,
        /// Offset in the data.
        offset: u64,
    },
}

/// Fields of `binder_transaction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Transaction number, unique until it wraps. A reply has its own.
    pub debug_id: i32,
    /// Node number; 0 for a reply.
    pub target_node: i32,
    /// Receiving process.
    pub to_proc: i32,
    /// Receiving thread for a reply or a call back into a waiting thread; otherwise 0.
    pub to_thread: i32,
    /// Whether it is a reply.
    pub reply: bool,
    /// Transaction code.
    pub code: u32,
    /// `TF_` bits.
    pub flags: u32,
}

impl Transaction {
    /// Whether it is oneway (`TF_ONE_WAY`, bit 0).
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        !self.reply && self.flags & 1 != 0
    }
}

/// Transaction buffer in the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// `debug_id` of the transaction.
    pub debug_id: i32,
    /// Data size in bytes.
    pub data_size: u64,
    /// Offsets size in bytes.
    pub offsets_size: u64,
    /// Size of scatter-gather buffers in bytes.
    pub extra_size: u64,
}

impl Buffer {
    /// Size of all of it in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.data_size.saturating_add(self.offsets_size).saturating_add(self.extra_size)
    }
}

/// Fields of `binder_txn_latency_free`. The kernel's text swaps the labels of `code` and `flags` (contract TP-09);
/// readers of text swap them back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyFree {
    /// `debug_id` of the transaction.
    pub debug_id: i32,
    /// Sending process; 0 once the driver forgot it.
    pub from_proc: i32,
    /// Sending thread; 0 once the driver forgot it.
    pub from_thread: i32,
    /// Receiving process.
    pub to_proc: i32,
    /// Receiving thread; 0 for oneway.
    pub to_thread: i32,
    /// Transaction code.
    pub code: u32,
    /// `TF_` bits.
    pub flags: u32,
}
