//! Every structure of the UAPI, byte for byte. Sizes and offsets are compared with the
//! system's C header by `tests/uapi.rs`.
//! Not here: what the fields mean to a caller (`command`, `returns`).
//! Facts: `linux/android/binder.h`, `linux/android/binderfs.h` (Linux 7.2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Declares UAPI structures with the derives that make them plain bytes.
macro_rules! uapi {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    )*};
}

uapi! {
    /// `struct binder_write_read`: the argument of `BINDER_WRITE_READ`.
    /// Both `*_consumed` are inputs as well (contract WR-01).
    WriteRead {
        /// Bytes of commands at `write_buffer`.
        write_size: u64,
        /// Bytes already, and on return additionally, consumed by the driver.
        write_consumed: u64,
        /// Address of the commands.
        write_buffer: u64,
        /// Bytes of room at `read_buffer`.
        read_size: u64,
        /// Bytes already, and on return additionally, filled by the driver.
        read_consumed: u64,
        /// Address of the room for returns.
        read_buffer: u64,
    }

    /// `struct binder_version`: the argument of `BINDER_VERSION`.
    Version {
        /// 8 on every 64-bit driver.
        protocol_version: i32,
    }

    /// `struct binder_transaction_data`: the payload of `BC_TRANSACTION`, `BC_REPLY`,
    /// `BR_TRANSACTION` and `BR_REPLY`.
    TransactionData {
        /// Union: a handle (low 32 bits) in a command, the node's ptr in a return.
        target: u64,
        /// The node's cookie (returns only).
        cookie: u64,
        /// The callee's method number.
        code: u32,
        /// `TF_*` bits.
        flags: u32,
        /// Process id of the sender (returns only; 0 for oneway and replies).
        sender_pid: i32,
        /// Effective uid of the sending thread (returns only).
        sender_euid: u32,
        /// Bytes of data.
        data_size: u64,
        /// Bytes of offsets (8 per object).
        offsets_size: u64,
        /// Address of the data.
        buffer: u64,
        /// Address of the offsets.
        offsets: u64,
    }

    /// `struct binder_transaction_data_sg`: `BC_TRANSACTION_SG`, `BC_REPLY_SG`.
    TransactionDataSg {
        /// The plain part.
        transaction_data: TransactionData,
        /// Total bytes of the scattered buffers, each rounded up to 8.
        buffers_size: u64,
    }

    /// `struct binder_transaction_data_secctx`: `BR_TRANSACTION_SEC_CTX`.
    TransactionDataSecctx {
        /// The plain part.
        transaction_data: TransactionData,
        /// Address of the sender's NUL-terminated security context, inside the same buffer.
        secctx: u64,
    }

    /// `struct flat_binder_object`: a node or a handle inside a payload.
    FlatBinderObject {
        /// One of the `object::*` types (BINDER, WEAK_BINDER, HANDLE, WEAK_HANDLE).
        kind: u32,
        /// `flat::*` bits.
        flags: u32,
        /// Union: the node's ptr, or a handle in the low 32 bits.
        binder: u64,
        /// The node's cookie; 0 for a handle.
        cookie: u64,
    }

    /// `struct binder_fd_object`: a file descriptor inside a payload.
    FdObject {
        /// `object::FD`.
        kind: u32,
        /// Ignored by the driver.
        pad_flags: u32,
        /// Union: the descriptor in the low 32 bits.
        fd: u64,
        /// Kept by the driver.
        cookie: u64,
    }

    /// `struct binder_buffer_object`: a scattered buffer (PTR).
    BufferObject {
        /// `object::PTR`.
        kind: u32,
        /// `BUFFER_FLAG_HAS_PARENT` or 0.
        flags: u32,
        /// Address of the bytes; rewritten to the receiver's address.
        buffer: u64,
        /// Bytes at `buffer`.
        length: u64,
        /// Index, in the offsets array, of the buffer that points to this one.
        parent: u64,
        /// Where in the parent that pointer stands.
        parent_offset: u64,
    }

    /// `struct binder_fd_array_object`: descriptors inside a scattered buffer (FDA).
    FdArrayObject {
        /// `object::FDA`.
        kind: u32,
        /// Padding.
        pad: u32,
        /// Number of descriptors.
        num_fds: u64,
        /// Index, in the offsets array, of the buffer that holds them.
        parent: u64,
        /// Where in that buffer they start.
        parent_offset: u64,
    }

    /// `struct binder_ptr_cookie`: names a node to its owner.
    PtrCookie {
        /// The node's ptr.
        ptr: u64,
        /// The node's cookie.
        cookie: u64,
    }

    /// `struct binder_pri_desc`: unused by every driver (`BC_ATTEMPT_ACQUIRE`).
    PriDesc {
        /// Priority.
        priority: i32,
        /// Handle.
        desc: u32,
    }

    /// `struct binder_node_debug_info`: `BINDER_GET_NODE_DEBUG_INFO`.
    NodeDebugInfo {
        /// In: list nodes above this ptr. Out: the node found, 0 for none.
        ptr: u64,
        /// The node's cookie.
        cookie: u64,
        /// Non-zero when strongly referenced.
        has_strong_ref: u32,
        /// Non-zero when weakly referenced.
        has_weak_ref: u32,
    }

    /// `struct binder_node_info_for_ref`: `BINDER_GET_NODE_INFO_FOR_REF`.
    NodeInfoForRef {
        /// The handle asked for.
        handle: u32,
        /// Strong references of the node, over all processes.
        strong_count: u32,
        /// Weak references.
        weak_count: u32,
        /// Must be 0.
        reserved1: u32,
        /// Must be 0.
        reserved2: u32,
        /// Must be 0.
        reserved3: u32,
    }

    /// `struct binder_freeze_info`: `BINDER_FREEZE`.
    FreezeInfo {
        /// Process to freeze.
        pid: u32,
        /// 1 freezes, 0 thaws.
        enable: u32,
        /// How long to wait for pending transactions, in milliseconds.
        timeout_ms: u32,
    }

    /// `struct binder_frozen_status_info`: `BINDER_GET_FROZEN_INFO`.
    FrozenStatusInfo {
        /// Process asked for.
        pid: u32,
        /// Bit 0: a sync call came since the freeze. Bit 1: transactions are pending.
        sync_recv: u32,
        /// A oneway call came since the freeze.
        async_recv: u32,
    }

    /// `struct binder_frozen_state_info`: payload of `BR_FROZEN_BINDER`.
    FrozenStateInfo {
        /// The cookie of the registration.
        cookie: u64,
        /// 1 when frozen.
        is_frozen: u32,
        /// Padding.
        reserved: u32,
    }

    /// `struct binder_extended_error`: `BINDER_GET_EXTENDED_ERROR`.
    ExtendedError {
        /// Debug id of the failed transaction.
        id: u32,
        /// The `BR_*` word of the failure, or `BR_OK`.
        command: u32,
        /// Negative errno, driver specific.
        param: i32,
    }
}

/// `struct binder_handle_cookie`: names a handle's registration. **12 bytes, packed**: a naturally
/// aligned struct of the same fields has 16 and changes four `BC_*` words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed)]
pub struct HandleCookie {
    /// The handle.
    pub handle: u32,
    /// The registration's cookie.
    pub cookie: u64,
}

/// `struct binder_pri_ptr_cookie`: unused by every driver (`BR_ATTEMPT_ACQUIRE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PriPtrCookie {
    /// Priority.
    pub priority: i32,
    /// The hole that C leaves before an 8-byte field.
    pub hole: u32,
    /// The node's ptr.
    pub ptr: u64,
    /// The node's cookie.
    pub cookie: u64,
}

/// Longest name of a binderfs device, in bytes (`BINDERFS_MAX_NAME`).
pub const BINDERFS_MAX_NAME: usize = 255;

/// `struct binderfs_device`: the argument of `BINDER_CTL_ADD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BinderfsDevice {
    /// NUL-terminated name.
    pub name: [u8; BINDERFS_MAX_NAME + 1],
    /// Out: the device's major number.
    pub major: u32,
    /// Out: the device's minor number.
    pub minor: u32,
}

impl BinderfsDevice {
    /// A request for a device of this name; `None` if the name does not fit or has a NUL or `/`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name.is_empty() || name.len() > BINDERFS_MAX_NAME || name.contains(['\0', '/']) {
            return None;
        }
        let mut device = Self { name: [0; BINDERFS_MAX_NAME + 1], major: 0, minor: 0 };
        device.name[..name.len()].copy_from_slice(name.as_bytes());
        Some(device)
    }
}
