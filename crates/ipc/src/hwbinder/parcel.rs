//! A scatter-gather payload under construction: its bytes, its objects, and the buffers they describe.
//! Not here: the values (`writer`, `reader`), received payloads (`runtime::received`).
//! Facts: contract OBJ-15 to OBJ-19; libhwbinder's `Parcel.cpp` for what is listed and what counts.
//!
//! Large arguments are not copied: the parcel borrows them and the driver reads them in place. Small
//! structures (a vector's 16 bytes) lie in memory of the parcel's own, which grows while it is
//! written; so no address is filled in before [`HwParcel::with_payload`] hands the payload out.
//!
//! Parcels are recycled (`memory`): a thread keeps the memory of four, so that a steady stream of calls
//! allocates nothing once they have grown, however many vectors and strings they carry. What does
//! allocate every time: more than four parcels at once on one thread (a call within a call within a
//! call: the third request is the fifth), one of more than 1 MiB of bytes and structures, and calls to
//! objects of the own process, whose results are copied.

mod memory;

use std::fmt;
use std::os::fd::OwnedFd;

use abi::Payload;
use abi::codes::object;
use abi::layout::BufferObject;
use zerocopy::IntoBytes;

use crate::runtime::target::Binder;
use memory::{Buffer, Own, Recycled, emptied};

/// Where the address stands in a PTR object.
const ADDRESS: usize = 8;

/// A resource that an object in a parcel keeps alive.
pub(crate) enum Held {
    Binder(Binder),
    /// A handle's descriptor, named by number in its structure.
    Fd {
        _open: OwnedFd,
    },
}

/// `native_handle`: descriptors and integers that belong together.
#[derive(Debug, Default)]
pub struct NativeHandle {
    /// The descriptors, owned by the handle.
    pub fds: Vec<OwnedFd>,
    /// The integers.
    pub ints: Vec<i32>,
}

/// A structure in a parcel's own memory, for what is embedded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    object: usize,
    own: Own,
}

/// The arguments or results of a HIDL call, with the objects that travel along.
pub struct HwParcel<'a> {
    memory: Recycled,
    /// For each buffer the caller's bytes; nothing, yet, for one in the own memory.
    lent: Vec<&'a [u8]>,
}

impl Default for HwParcel<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> HwParcel<'a> {
    /// An empty parcel.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        let mut memory = Recycled::take();
        let lent = std::mem::take(&mut memory.lent);
        Self { memory, lent }
    }

    /// The bytes so far; addresses in them are filled in when the parcel is sent.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.memory.data
    }

    /// Where each listed object stands in them.
    #[must_use]
    pub fn offsets(&self) -> &[u64] {
        &self.memory.offsets
    }

    /// Bytes that the described buffers take at the receiver, each rounded up to 8.
    #[must_use]
    pub fn buffers_size(&self) -> u64 {
        self.memory.buffers_size
    }

    /// The bytes of each PTR object, in order.
    pub fn buffers(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.lent.len()).map(|slot| self.bytes_of(slot))
    }

    fn bytes_of(&self, slot: usize) -> &[u8] {
        match self.memory.buffers.binary_search_by_key(&slot, |buffer| buffer.slot) {
            Ok(index) => self.memory.buffers[index].own.of(&self.memory.own),
            Err(_) => self.lent.get(slot).copied().unwrap_or_default(),
        }
    }

    /// Removes all bytes and objects.
    pub fn clear(&mut self) {
        self.memory.clear();
        self.lent.clear();
    }

    /// Hands the payload out, with every address where it belongs. What is borrowed stays borrowed
    /// until `send` returns, when the driver must have it.
    #[inline]
    pub fn with_payload<R>(mut self, send: impl FnOnce(Payload<'_>) -> R) -> R {
        self.seal();
        let mut named: Vec<&[u8]> = std::mem::take(&mut self.lent);
        let memory = &*self.memory;
        for buffer in &memory.buffers {
            if let Some(bytes) = named.get_mut(buffer.slot) {
                *bytes = buffer.own.of(&memory.own);
            }
        }
        let result = send(Payload {
            data: &memory.data,
            offsets: &memory.offsets,
            buffers_size: Some(memory.buffers_size),
            buffers: &named,
        });
        self.memory.lent = emptied(named);
        result
    }

    /// Fills in the addresses of what is in the own memory, in the objects and in the structures that
    /// point to them. Nothing may be written afterwards that makes that memory grow.
    #[inline]
    pub(crate) fn seal(&mut self) {
        let memory = &mut *self.memory;
        let base = memory.own.as_ptr() as u64;
        let own = memory.own.as_mut_bytes();
        for buffer in &memory.buffers {
            let address = (base + buffer.own.start as u64).to_le_bytes();
            put(&mut memory.data, buffer.at + ADDRESS, &address);
            if let Some(at) = buffer.pointer {
                put(own, at, &address);
            }
        }
    }

    /// A parcel of the same content that borrows nothing, sealed.
    pub(crate) fn into_owned(mut self) -> HwParcel<'static> {
        let lent = std::mem::take(&mut self.lent);
        let mut memory = std::mem::replace(&mut self.memory, Recycled::take());
        memory.adopt(&lent);
        let mut owned = HwParcel { memory, lent: lent.into_iter().map(|_| &[][..]).collect() };
        owned.seal();
        owned
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.memory.data
    }

    /// Appends an object that is listed in the offsets.
    #[inline]
    pub(crate) fn push_object(&mut self, object: &[u8]) {
        let memory = &mut *self.memory;
        memory.offsets.push(memory.data.len() as u64);
        memory.data.extend_from_slice(object);
    }

    /// Keeps something alive for the object that was appended last.
    pub(crate) fn hold(&mut self, held: Held) {
        if let Some(offset) = self.memory.offsets.last().copied() {
            self.memory.held.push((offset, held));
        }
    }

    /// Appends a PTR object for zeros in the own memory.
    pub(crate) fn push_own(&mut self, len: usize, parent: Option<(Part, usize)>) -> Part {
        let own = self.memory.reserve(len);
        let object = self.memory.offsets.len();
        let (ptr, pointer) = described_by(parent, len);
        let (slot, at) = (self.lent.len(), self.memory.data.len());
        self.memory.buffers.push(Buffer { slot, object, at, own, pointer });
        self.memory.buffers_size += (len as u64).next_multiple_of(8);
        self.lent.push(&[]);
        self.push_object(ptr.as_bytes());
        Part { object, own }
    }

    /// Appends a PTR object for the caller's bytes.
    pub(crate) fn push_lent(&mut self, bytes: &'a [u8], parent: Option<(Part, usize)>) {
        let (mut ptr, pointer) = described_by(parent, bytes.len());
        ptr.buffer = bytes.as_ptr() as u64;
        if let Some(at) = pointer {
            put(self.memory.own.as_mut_bytes(), at, &ptr.buffer.to_le_bytes());
        }
        self.memory.buffers_size += (bytes.len() as u64).next_multiple_of(8);
        self.lent.push(bytes);
        self.push_object(ptr.as_bytes());
    }

    /// [`Self::push_own`] and [`Self::push_lent`] at once, for what most calls carry: a structure of
    /// two words, of which the first points to the caller's bytes.
    #[inline]
    pub(crate) fn push_vec(&mut self, count: u64, bytes: &'a [u8]) {
        let memory = &mut *self.memory;
        let (object, at) = (memory.offsets.len(), memory.data.len());
        let own = Own { start: size_of_val(memory.own.as_slice()), len: size_of::<[u64; 2]>() };
        let buffer = bytes.as_ptr() as u64;
        let parent = BufferObject { kind: object::PTR, length: own.len as u64, ..Default::default() };
        let child = BufferObject {
            kind: object::PTR,
            flags: object::BUFFER_FLAG_HAS_PARENT,
            buffer,
            length: bytes.len() as u64,
            parent: object as u64,
            parent_offset: 0,
        };
        memory.own.extend_from_slice(&[buffer.to_le(), count]);
        memory.buffers.push(Buffer { slot: self.lent.len(), object, at, own, pointer: None });
        memory.buffers_size += (own.len as u64) + (bytes.len() as u64).next_multiple_of(8);
        memory.offsets.extend_from_slice(&[at as u64, (at + size_of_val(&parent)) as u64]);
        memory.data.extend_from_slice([parent, child].as_bytes());
        self.lent.extend_from_slice(&[&[], bytes]);
    }

    /// Writes bytes into a structure; what does not fit into it is left out.
    #[inline]
    pub(crate) fn put_own(&mut self, part: Part, offset: usize, bytes: &[u8]) {
        if offset.saturating_add(bytes.len()) <= part.own.len {
            put(self.memory.own.as_mut_bytes(), part.own.start + offset, bytes);
        }
    }

    /// The bytes that a PTR object describes, by its index.
    pub(crate) fn described(&self, object: usize) -> Option<&[u8]> {
        let before = self.memory.offsets.get(..object)?;
        let is_ptr =
            |offset: &&u64| self.memory.object_at(**offset).is_some_and(|ptr| ptr.kind == object::PTR);
        Some(self.bytes_of(before.iter().filter(is_ptr).count()))
    }

    /// The binder that stands at a position.
    pub(crate) fn held_binder(&self, at: u64) -> Option<&Binder> {
        self.memory.held.iter().find_map(|(offset, held)| match held {
            Held::Binder(binder) if *offset == at => Some(binder),
            _ => None,
        })
    }
}

impl Part {
    /// Its index among the parcel's objects.
    pub(crate) fn object(self) -> usize {
        self.object
    }
}

/// A PTR object without its address, and where that is stored as well. A pointer that is outside its
/// parent is for the driver to refuse.
#[inline]
fn described_by(parent: Option<(Part, usize)>, len: usize) -> (BufferObject, Option<usize>) {
    let mut ptr = BufferObject { kind: object::PTR, length: len as u64, ..Default::default() };
    let mut pointer = None;
    if let Some((part, offset)) = parent {
        ptr.flags = object::BUFFER_FLAG_HAS_PARENT;
        ptr.parent = part.object as u64;
        ptr.parent_offset = offset as u64;
        pointer = part.own.pointer(offset);
    }
    (ptr, pointer)
}

#[inline]
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..value.len())) {
        place.copy_from_slice(value);
    }
}

impl Drop for HwParcel<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.lent.capacity() != 0 {
            self.memory.lent = emptied(std::mem::take(&mut self.lent));
        }
    }
}

impl fmt::Debug for HwParcel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HwParcel")
            .field("bytes", &self.memory.data.len())
            .field("objects", &self.memory.offsets.len())
            .field("buffers_size", &self.memory.buffers_size)
            .finish()
    }
}
