//! Payloads with objects: their builder, and calls that carry them, delivered or refused.

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject};
use abi::{Handle, Payload};
use zerocopy::{FromZeros, Immutable, IntoBytes};

/// Data, object offsets, and size of the scatter-gather area. The memory of PTR objects belongs to the test and
/// outlives the call.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers_size: Option<u64>,
}

impl Draft {
    /// Starts with plain bytes.
    pub(super) fn with(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Starts with an object.
    pub(super) fn of(object: &(impl IntoBytes + Immutable)) -> Self {
        Self::default().object(object)
    }

    /// Appends plain bytes.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Appends an object and its offset.
    pub(super) fn object(mut self, object: &(impl IntoBytes + Immutable)) -> Self {
        self.offsets.push(self.data.len() as u64);
        self.bytes(object.as_bytes())
    }

    /// Replaces the list of offsets.
    pub(super) fn listing(mut self, offsets: &[u64]) -> Self {
        self.offsets = offsets.to_vec();
        self
    }

    /// Sets the size of scatter-gather buffers, which selects the `_SG` commands.
    pub(super) fn room(mut self, bytes: u64) -> Self {
        self.buffers_size = Some(bytes);
        self
    }

    /// Removes the last bytes.
    pub(super) fn cut(mut self, bytes: usize) -> Self {
        self.data.truncate(self.data.len() - bytes);
        self
    }

    pub(super) fn payload(&self) -> Payload<'_> {
        Payload {
            data: &self.data,
            offsets: &self.offsets,
            buffers_size: self.buffers_size,
            ..Payload::default()
        }
    }
}

/// A node or handle object; `binder` is the ptr or the handle.
pub(super) fn flat_object(kind: u32, binder: u64, cookie: u64) -> FlatBinderObject {
    FlatBinderObject { kind, flags: 0x113, binder, cookie }
}

/// A strong handle as an object.
pub(super) fn handle_object(handle: Handle) -> FlatBinderObject {
    flat_object(object::HANDLE, handle.0.into(), 0)
}

/// A descriptor object.
pub(super) fn fd(number: u64) -> FdObject {
    FdObject { kind: object::FD, fd: number, ..FdObject::new_zeroed() }
}

/// A scatter-gather buffer without parent.
pub(super) fn ptr<T: IntoBytes + Immutable + ?Sized>(memory: &T) -> BufferObject {
    let bytes = memory.as_bytes();
    BufferObject {
        kind: object::PTR,
        buffer: bytes.as_ptr() as u64,
        length: bytes.len() as u64,
        ..BufferObject::new_zeroed()
    }
}

/// A scatter-gather buffer whose address is stored in the `parent`th listed object, at `offset`.
pub(super) fn child<T: IntoBytes + Immutable + ?Sized>(memory: &T, parent: u64, offset: u64) -> BufferObject {
    BufferObject { flags: object::BUFFER_FLAG_HAS_PARENT, parent, parent_offset: offset, ..ptr(memory) }
}

/// An array of `count` descriptors in the `parent`th listed buffer, from `offset` on.
pub(super) fn fda(count: u64, parent: u64, offset: u64) -> FdArrayObject {
    FdArrayObject { kind: object::FDA, pad: 0, num_fds: count, parent, parent_offset: offset }
}
