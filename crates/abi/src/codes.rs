//! The words of the protocol: ioctl numbers, `BC_*`, `BR_*`, object types, flag bits.
//! Not here: the payloads behind them (`layout`), their meaning (`command`, `returns`).
//! Facts: `linux/android/binder.h` (Linux 7.2); Android-only bits: the Android common kernel's copy
//! of the same header. A flat table; `tests/uapi.rs` compares it with the system's C header.

use crate::layout;

const NONE: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;

/// The kernel's `_IOC`: direction, type, number, payload size in one word.
const fn ioc(direction: u32, kind: u8, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (kind as u32) << 8 | number
}

const fn io(kind: u8, number: u32) -> u32 {
    ioc(NONE, kind, number, 0)
}

const fn iow<T>(kind: u8, number: u32) -> u32 {
    ioc(WRITE, kind, number, size_of::<T>())
}

const fn ior<T>(kind: u8, number: u32) -> u32 {
    ioc(READ, kind, number, size_of::<T>())
}

const fn iowr<T>(kind: u8, number: u32) -> u32 {
    ioc(READ | WRITE, kind, number, size_of::<T>())
}

/// Declares words together with a table of their names, so that no list can miss one.
macro_rules! words {
    ($(#[$doc:meta])* $table:ident { $($(#[$wdoc:meta])* $name:ident = $value:expr, $c_name:literal;)* }) => {
        $($(#[$wdoc])* pub const $name: u32 = $value;)*
        $(#[$doc])*
        pub const $table: &[(&str, u32)] = &[$(($c_name, $name)),*];
    };
}

/// `ioctl` requests of a binder device and of `binder-control`.
pub mod ioctl {
    use super::*;
    words! {
        /// Every request with its C name.
        ALL {
            /// Write commands, then read returns.
            WRITE_READ = iowr::<layout::WriteRead>(b'b', 1), "BINDER_WRITE_READ";
            /// Refused by every driver (`EINVAL`).
            SET_IDLE_TIMEOUT = iow::<i64>(b'b', 3), "BINDER_SET_IDLE_TIMEOUT";
            /// How many loopers the driver may ask for.
            SET_MAX_THREADS = iow::<u32>(b'b', 5), "BINDER_SET_MAX_THREADS";
            /// Refused by every driver (`EINVAL`).
            SET_IDLE_PRIORITY = iow::<i32>(b'b', 6), "BINDER_SET_IDLE_PRIORITY";
            /// Become the context manager.
            SET_CONTEXT_MGR = iow::<i32>(b'b', 7), "BINDER_SET_CONTEXT_MGR";
            /// Forget the calling thread.
            THREAD_EXIT = iow::<i32>(b'b', 8), "BINDER_THREAD_EXIT";
            /// Ask for the protocol version.
            VERSION = iowr::<layout::Version>(b'b', 9), "BINDER_VERSION";
            /// Walk the caller's own nodes.
            GET_NODE_DEBUG_INFO = iowr::<layout::NodeDebugInfo>(b'b', 11), "BINDER_GET_NODE_DEBUG_INFO";
            /// Count the references of a node (context manager only).
            GET_NODE_INFO_FOR_REF = iowr::<layout::NodeInfoForRef>(b'b', 12), "BINDER_GET_NODE_INFO_FOR_REF";
            /// Become the context manager with node flags.
            SET_CONTEXT_MGR_EXT = iow::<layout::FlatBinderObject>(b'b', 13), "BINDER_SET_CONTEXT_MGR_EXT";
            /// Freeze or thaw a process.
            FREEZE = iow::<layout::FreezeInfo>(b'b', 14), "BINDER_FREEZE";
            /// Ask what a frozen process missed.
            GET_FROZEN_INFO = iowr::<layout::FrozenStatusInfo>(b'b', 15), "BINDER_GET_FROZEN_INFO";
            /// Turn `BR_ONEWAY_SPAM_SUSPECT` on or off.
            ENABLE_ONEWAY_SPAM_DETECTION = iow::<u32>(b'b', 16), "BINDER_ENABLE_ONEWAY_SPAM_DETECTION";
            /// Read and clear the calling thread's last error.
            GET_EXTENDED_ERROR = iowr::<layout::ExtendedError>(b'b', 17), "BINDER_GET_EXTENDED_ERROR";
            /// binderfs: allocate a device (on `binder-control`).
            CTL_ADD = iowr::<layout::BinderfsDevice>(b'b', 1), "BINDER_CTL_ADD";
        }
    }
}

/// `BC_*`: commands to the driver.
pub mod bc {
    use super::*;
    words! {
        /// Every command with its C name.
        ALL {
            /// Call a handle.
            TRANSACTION = iow::<layout::TransactionData>(b'c', 0), "BC_TRANSACTION";
            /// Answer the call being served.
            REPLY = iow::<layout::TransactionData>(b'c', 1), "BC_REPLY";
            /// Unsupported by every driver.
            ACQUIRE_RESULT = iow::<i32>(b'c', 2), "BC_ACQUIRE_RESULT";
            /// Give a delivered buffer back.
            FREE_BUFFER = iow::<u64>(b'c', 3), "BC_FREE_BUFFER";
            /// Weak count of a handle up.
            INCREFS = iow::<u32>(b'c', 4), "BC_INCREFS";
            /// Strong count of a handle up.
            ACQUIRE = iow::<u32>(b'c', 5), "BC_ACQUIRE";
            /// Strong count of a handle down.
            RELEASE = iow::<u32>(b'c', 6), "BC_RELEASE";
            /// Weak count of a handle down.
            DECREFS = iow::<u32>(b'c', 7), "BC_DECREFS";
            /// Acknowledge `BR_INCREFS`.
            INCREFS_DONE = iow::<layout::PtrCookie>(b'c', 8), "BC_INCREFS_DONE";
            /// Acknowledge `BR_ACQUIRE`.
            ACQUIRE_DONE = iow::<layout::PtrCookie>(b'c', 9), "BC_ACQUIRE_DONE";
            /// Unsupported by every driver.
            ATTEMPT_ACQUIRE = iow::<layout::PriDesc>(b'c', 10), "BC_ATTEMPT_ACQUIRE";
            /// A thread that was asked for joins the pool.
            REGISTER_LOOPER = io(b'c', 11), "BC_REGISTER_LOOPER";
            /// A thread of the process's own joins the pool.
            ENTER_LOOPER = io(b'c', 12), "BC_ENTER_LOOPER";
            /// The thread leaves the pool.
            EXIT_LOOPER = io(b'c', 13), "BC_EXIT_LOOPER";
            /// Ask to hear of a node's death.
            REQUEST_DEATH_NOTIFICATION = iow::<layout::HandleCookie>(b'c', 14), "BC_REQUEST_DEATH_NOTIFICATION";
            /// Take that back.
            CLEAR_DEATH_NOTIFICATION = iow::<layout::HandleCookie>(b'c', 15), "BC_CLEAR_DEATH_NOTIFICATION";
            /// Acknowledge `BR_DEAD_BINDER`.
            DEAD_BINDER_DONE = iow::<u64>(b'c', 16), "BC_DEAD_BINDER_DONE";
            /// Call with scattered buffers.
            TRANSACTION_SG = iow::<layout::TransactionDataSg>(b'c', 17), "BC_TRANSACTION_SG";
            /// Answer with scattered buffers.
            REPLY_SG = iow::<layout::TransactionDataSg>(b'c', 18), "BC_REPLY_SG";
            /// Ask to hear of a node's freezing.
            REQUEST_FREEZE_NOTIFICATION = iow::<layout::HandleCookie>(b'c', 19), "BC_REQUEST_FREEZE_NOTIFICATION";
            /// Take that back.
            CLEAR_FREEZE_NOTIFICATION = iow::<layout::HandleCookie>(b'c', 20), "BC_CLEAR_FREEZE_NOTIFICATION";
            /// Acknowledge `BR_FROZEN_BINDER`.
            FREEZE_NOTIFICATION_DONE = iow::<u64>(b'c', 21), "BC_FREEZE_NOTIFICATION_DONE";
        }
    }
}

/// `BR_*`: returns from the driver.
pub mod br {
    use super::*;
    words! {
        /// Every return with its C name.
        ALL {
            /// An errno; sent by no current driver in normal work.
            ERROR = ior::<i32>(b'r', 0), "BR_ERROR";
            /// Only seen as "no error" in `ExtendedError::command`.
            OK = io(b'r', 1), "BR_OK";
            /// A call for a node that asked for security contexts.
            TRANSACTION_SEC_CTX = ior::<layout::TransactionDataSecctx>(b'r', 2), "BR_TRANSACTION_SEC_CTX";
            /// A call.
            TRANSACTION = ior::<layout::TransactionData>(b'r', 2), "BR_TRANSACTION";
            /// The reply to one's own call.
            REPLY = ior::<layout::TransactionData>(b'r', 3), "BR_REPLY";
            /// Never sent.
            ACQUIRE_RESULT = ior::<i32>(b'r', 4), "BR_ACQUIRE_RESULT";
            /// The callee is dead.
            DEAD_REPLY = io(b'r', 5), "BR_DEAD_REPLY";
            /// The last transaction or reply was accepted.
            TRANSACTION_COMPLETE = io(b'r', 6), "BR_TRANSACTION_COMPLETE";
            /// First weak reference from elsewhere.
            INCREFS = ior::<layout::PtrCookie>(b'r', 7), "BR_INCREFS";
            /// First strong reference from elsewhere.
            ACQUIRE = ior::<layout::PtrCookie>(b'r', 8), "BR_ACQUIRE";
            /// Last strong reference gone.
            RELEASE = ior::<layout::PtrCookie>(b'r', 9), "BR_RELEASE";
            /// Last weak reference gone.
            DECREFS = ior::<layout::PtrCookie>(b'r', 10), "BR_DECREFS";
            /// Never sent.
            ATTEMPT_ACQUIRE = ior::<layout::PriPtrCookie>(b'r', 11), "BR_ATTEMPT_ACQUIRE";
            /// Filler at the head of each read.
            NOOP = io(b'r', 12), "BR_NOOP";
            /// The pool wants another thread.
            SPAWN_LOOPER = io(b'r', 13), "BR_SPAWN_LOOPER";
            /// Never sent.
            FINISHED = io(b'r', 14), "BR_FINISHED";
            /// A watched node's owner died.
            DEAD_BINDER = ior::<u64>(b'r', 15), "BR_DEAD_BINDER";
            /// The death registration is gone.
            CLEAR_DEATH_NOTIFICATION_DONE = ior::<u64>(b'r', 16), "BR_CLEAR_DEATH_NOTIFICATION_DONE";
            /// The transaction was refused.
            FAILED_REPLY = io(b'r', 17), "BR_FAILED_REPLY";
            /// The callee is frozen.
            FROZEN_REPLY = io(b'r', 18), "BR_FROZEN_REPLY";
            /// Accepted, but the sender floods the receiver.
            ONEWAY_SPAM_SUSPECT = io(b'r', 19), "BR_ONEWAY_SPAM_SUSPECT";
            /// Oneway accepted, but the receiver is frozen.
            TRANSACTION_PENDING_FROZEN = io(b'r', 20), "BR_TRANSACTION_PENDING_FROZEN";
            /// A watched node's owner froze or thawed.
            FROZEN_BINDER = ior::<layout::FrozenStateInfo>(b'r', 21), "BR_FROZEN_BINDER";
            /// The freeze registration is gone.
            CLEAR_FREEZE_NOTIFICATION_DONE = ior::<u64>(b'r', 22), "BR_CLEAR_FREEZE_NOTIFICATION_DONE";
        }
    }
}

const fn object_type(name: [u8; 3], last: u8) -> u32 {
    u32::from_be_bytes([name[0], name[1], name[2], last])
}

/// Types of the objects inside a payload (`BINDER_TYPE_*`).
pub mod object {
    use super::object_type;
    const LARGE: u8 = 0x85;
    words! {
        /// Every type with its C name.
        ALL {
            /// A node of the sender's.
            BINDER = object_type(*b"sb*", LARGE), "BINDER_TYPE_BINDER";
            /// The same, weakly.
            WEAK_BINDER = object_type(*b"wb*", LARGE), "BINDER_TYPE_WEAK_BINDER";
            /// A node of someone else's.
            HANDLE = object_type(*b"sh*", LARGE), "BINDER_TYPE_HANDLE";
            /// The same, weakly.
            WEAK_HANDLE = object_type(*b"wh*", LARGE), "BINDER_TYPE_WEAK_HANDLE";
            /// A file descriptor.
            FD = object_type(*b"fd*", LARGE), "BINDER_TYPE_FD";
            /// An array of file descriptors in a scattered buffer.
            FDA = object_type(*b"fda", LARGE), "BINDER_TYPE_FDA";
            /// A scattered buffer.
            PTR = object_type(*b"pt*", LARGE), "BINDER_TYPE_PTR";
        }
    }
    /// Flag of a scattered buffer: it has a parent.
    pub const BUFFER_FLAG_HAS_PARENT: u32 = 1;
}

/// Flag bits of a [`layout::FlatBinderObject`] (`FLAT_BINDER_FLAG_*`), fixed at the node's first
/// send (contract OBJ-04).
pub mod flat {
    words! {
        /// Every mainline bit with its C name.
        ALL {
            /// Minimum priority (nice) of a thread that serves the node.
            PRIORITY_MASK = 0xff, "FLAT_BINDER_FLAG_PRIORITY_MASK";
            /// Calls may carry file descriptors.
            ACCEPTS_FDS = 0x100, "FLAT_BINDER_FLAG_ACCEPTS_FDS";
            /// Calls carry the caller's security context.
            TXN_SECURITY_CTX = 0x1000, "FLAT_BINDER_FLAG_TXN_SECURITY_CTX";
        }
    }
    /// Android kernels only: how far the scheduling policy is shifted.
    pub const ANDROID_SCHED_POLICY_SHIFT: u32 = 9;
    /// Android kernels only: minimum scheduling policy (0 NORMAL, 1 FIFO, 2 RR, 3 BATCH).
    pub const ANDROID_SCHED_POLICY_MASK: u32 = 3 << ANDROID_SCHED_POLICY_SHIFT;
    /// Android kernels only: a real-time caller's policy passes to the server.
    pub const ANDROID_INHERIT_RT: u32 = 0x800;
}

/// Transaction flag bits (`TF_*`).
pub mod tf {
    words! {
        /// Every bit with its C name.
        ALL {
            /// No reply is expected.
            ONE_WAY = 0x01, "TF_ONE_WAY";
            /// Historic, ignored by drivers.
            ROOT_OBJECT = 0x04, "TF_ROOT_OBJECT";
            /// The payload is one status word.
            STATUS_CODE = 0x08, "TF_STATUS_CODE";
            /// The reply may carry file descriptors.
            ACCEPT_FDS = 0x10, "TF_ACCEPT_FDS";
            /// Zero the buffer when it is freed.
            CLEAR_BUF = 0x20, "TF_CLEAR_BUF";
            /// Replace an equal oneway that is still queued at a frozen receiver.
            UPDATE_TXN = 0x40, "TF_UPDATE_TXN";
        }
    }
}

/// Bytes of payload that follow a protocol word: its ioctl size field.
const fn payload_len(word: u32) -> usize {
    (word >> 16 & 0x3fff) as usize
}

/// A `BC_*` word as it stands in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandWord(pub u32);

/// A `BR_*` word as it stands in a stream; unknown ones survive and reach the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReturnWord(pub u32);

macro_rules! named_word {
    ($type:ident, $table:path) => {
        impl $type {
            /// Bytes of payload after the word.
            #[must_use]
            pub const fn payload_len(self) -> usize {
                payload_len(self.0)
            }

            /// The C name, `None` for a word this table does not know.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                $table.iter().find(|(_, word)| *word == self.0).map(|(name, _)| *name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "unknown word {:#x}", self.0),
                }
            }
        }
    };
}

named_word!(CommandWord, bc::ALL);
named_word!(ReturnWord, br::ALL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_0_packed_handle_cookie_is_12_bytes() {
        assert_eq!(size_of::<layout::HandleCookie>(), 12);
        assert_eq!(bc::REQUEST_DEATH_NOTIFICATION, 0x400c_630e);
        assert_eq!(bc::CLEAR_DEATH_NOTIFICATION, 0x400c_630f);
        assert_eq!(bc::REQUEST_FREEZE_NOTIFICATION, 0x400c_6313);
        assert_eq!(bc::CLEAR_FREEZE_NOTIFICATION, 0x400c_6314);
    }

    #[test]
    fn words_tell_their_payload_and_name() {
        assert_eq!(ReturnWord(br::TRANSACTION).payload_len(), 64);
        assert_eq!(ReturnWord(br::TRANSACTION_SEC_CTX).payload_len(), 72);
        assert_eq!(CommandWord(bc::FREE_BUFFER).to_string(), "BC_FREE_BUFFER");
        assert_eq!(ReturnWord(0x1234).to_string(), "unknown word 0x1234");
    }
}
