//! Room: a scatter-gather payload being built: its bytes, its objects, and the buffers they describe.
//! Not here: the values (`writer`, `reader`), received payloads (`crate::received`).
//! Facts: contract OBJ-15 to OBJ-19; libhwbinder's `Parcel.cpp` for what is listed and what counts.
//!
//! Large arguments are not copied: the parcel borrows them and the driver reads them in place. Small
//! structures (a vector's 16 bytes) lie in memory of the parcel's own, which grows while it is
//! written; so no address is filled in before [`HwParcel::with_payload`] hands the payload out.
//!
//! Parcels are recycled: dropping one keeps its memory for the thread's next, so that a steady
//! stream of calls allocates nothing.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::OwnedFd;

use abi::Payload;
use abi::codes::object;
use abi::layout::BufferObject;
use zerocopy::IntoBytes;

use crate::hwbinder::reader::Reader;
use crate::target::Binder;

/// Parcels whose memory a thread keeps; a nested call needs two at a time.
const KEPT: usize = 4;
/// More than any payload that a driver delivers is not kept.
const LARGEST_KEPT: usize = 1 << 20;
/// Where the address stands in a PTR object.
const ADDRESS: usize = 8;

thread_local! {
    static SPARE: RefCell<Vec<Memory<'static>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that a PTR object describes.
#[derive(Clone, Copy)]
enum Bytes<'a> {
    /// In the parcel's own memory.
    Own { start: usize, len: usize },
    /// The caller's.
    Lent(&'a [u8]),
}

/// One PTR object.
#[derive(Clone, Copy)]
struct Buffer<'a> {
    bytes: Bytes<'a>,
    /// Its index among the parcel's objects.
    object: usize,
    /// Where its address is stored as well: a position in the own memory.
    pointer: Option<usize>,
}

/// What an object in a parcel keeps alive.
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
    /// The descriptors; whoever has the handle owns them.
    pub fds: Vec<OwnedFd>,
    /// The integers.
    pub ints: Vec<i32>,
}

/// A structure in a parcel's own memory, for what is embedded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    object: usize,
    start: usize,
    len: usize,
}

#[derive(Default)]
struct Memory<'a> {
    data: Vec<u8>,
    offsets: Vec<u64>,
    /// Structures, each from an 8-byte boundary on.
    own: Vec<u64>,
    buffers: Vec<Buffer<'a>>,
    buffers_size: u64,
    /// Binders and descriptors, by the position of their object.
    held: Vec<(u64, Held)>,
    /// Empty; filled while a payload is out.
    named: Vec<&'a [u8]>,
}

/// The arguments or results of a HIDL call, with the objects that travel along.
pub struct HwParcel<'a> {
    memory: Memory<'a>,
}

/// Another lifetime for an empty list, in the same memory (the collection is in place).
fn emptied<'b>(mut list: Vec<&[u8]>) -> Vec<&'b [u8]> {
    list.clear();
    list.into_iter().map(|_| &[][..]).collect()
}

impl<'a> Memory<'a> {
    fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        self.own.clear();
        self.buffers.clear();
        self.buffers_size = 0;
        self.held.clear();
    }

    /// The same memory with nothing in it, free of what it borrowed.
    fn unborrowed(mut self) -> Memory<'static> {
        // May run the last drop of a proxy or node.
        self.clear();
        let forget = |buffer: Buffer<'a>| Buffer { bytes: Bytes::Lent(&[]), ..buffer };
        Memory {
            data: self.data,
            offsets: self.offsets,
            own: self.own,
            buffers: self.buffers.into_iter().map(forget).collect(),
            buffers_size: 0,
            held: self.held,
            named: emptied(self.named),
        }
    }

    fn size(&self) -> usize {
        self.data.capacity() + 8 * self.own.capacity()
    }
}

impl Bytes<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Own { len, .. } => *len,
            Self::Lent(bytes) => bytes.len(),
        }
    }

    fn of<'m>(&'m self, own: &'m [u64]) -> &'m [u8] {
        match self {
            // A part that is there was cut out of this memory.
            Self::Own { start, len } => own.as_bytes().get(*start..start + len).unwrap_or_default(),
            Self::Lent(bytes) => bytes,
        }
    }
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
        let memory = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        Self { memory: memory.unwrap_or_default() }
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
        self.memory.buffers.iter().map(|buffer| buffer.bytes.of(&self.memory.own))
    }

    /// Starts over: bytes and objects go.
    pub fn clear(&mut self) {
        self.memory.clear();
    }

    /// Hands the payload out, with every address where it belongs. What is borrowed stays borrowed
    /// until `send` returns, when the driver must have it.
    #[inline]
    pub fn with_payload<R>(&mut self, send: impl FnOnce(Payload<'_>) -> R) -> R {
        self.seal();
        let mut named: Vec<&[u8]> = std::mem::take(&mut self.memory.named);
        let Memory { data, offsets, own, buffers, buffers_size, .. } = &self.memory;
        named.extend(buffers.iter().map(|buffer| buffer.bytes.of(own)));
        let result = send(Payload { data, offsets, buffers_size: Some(*buffers_size), buffers: &named });
        let named = emptied(named);
        self.memory.named = named;
        result
    }

    /// Fills in every address, in the objects and in the structures that point to others. Nothing
    /// may be written afterwards that makes the own memory grow.
    #[inline]
    pub(crate) fn seal(&mut self) {
        let Memory { data, offsets, own, buffers, .. } = &mut self.memory;
        let base = own.as_ptr() as u64;
        let own = own.as_mut_bytes();
        for buffer in buffers.iter() {
            let address = match buffer.bytes {
                Bytes::Own { start, .. } => base + start as u64,
                Bytes::Lent(bytes) => bytes.as_ptr() as u64,
            }
            .to_le_bytes();
            let at = offsets.get(buffer.object).map_or(usize::MAX, |offset| *offset as usize);
            put(data, at.saturating_add(ADDRESS), &address);
            if let Some(at) = buffer.pointer {
                put(own, at, &address);
            }
        }
    }

    /// Reads it from its beginning, as its receiver in this process will.
    pub(crate) fn sealed_reader(&self) -> Reader<'_> {
        Reader::of_parcel(self)
    }

    /// A parcel of the same content that borrows nothing, sealed.
    pub(crate) fn into_owned(mut self) -> HwParcel<'static> {
        let mut buffers = std::mem::take(&mut self.memory.buffers);
        for buffer in &mut buffers {
            if let Bytes::Lent(bytes) = buffer.bytes {
                let start = self.reserve(bytes.len());
                put(self.memory.own.as_mut_bytes(), start, bytes);
                buffer.bytes = Bytes::Own { start, len: bytes.len() };
            }
        }
        let own = buffers.into_iter().map(|buffer| match buffer.bytes {
            Bytes::Own { start, len } => Buffer { bytes: Bytes::Own { start, len }, ..buffer },
            Bytes::Lent(_) => Buffer { bytes: Bytes::Lent(&[]), ..buffer },
        });
        let buffers: Vec<Buffer<'static>> = own.collect();
        let memory = std::mem::take(&mut self.memory);
        let mut owned =
            HwParcel { memory: Memory { buffers, named: emptied(memory.named), ..Memory::default() } };
        owned.memory.data = memory.data;
        owned.memory.offsets = memory.offsets;
        owned.memory.own = memory.own;
        owned.memory.buffers_size = memory.buffers_size;
        owned.memory.held = memory.held;
        owned.seal();
        owned
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.memory.data
    }

    /// The object that is appended next.
    pub(crate) fn next_object(&self) -> usize {
        self.memory.offsets.len()
    }

    /// Appends an object that is listed in the offsets.
    #[inline]
    pub(crate) fn push_object(&mut self, object: &[u8]) {
        self.memory.offsets.push(self.memory.data.len() as u64);
        self.memory.data.extend_from_slice(object);
    }

    /// Keeps something alive for the object that was appended last.
    pub(crate) fn hold(&mut self, held: Held) {
        if let Some(offset) = self.memory.offsets.last() {
            self.memory.held.push((*offset, held));
        }
    }

    /// Zeros in the own memory, from an 8-byte boundary on.
    #[inline]
    fn reserve(&mut self, len: usize) -> usize {
        let start = self.memory.own.len();
        self.memory.own.resize(start + len.div_ceil(8), 0);
        8 * start
    }

    /// Appends a PTR object for zeros in the own memory.
    #[inline]
    pub(crate) fn push_own(&mut self, len: usize, parent: Option<(Part, usize)>) -> Part {
        let object = self.next_object();
        let start = self.reserve(len);
        self.push_buffer(Bytes::Own { start, len }, parent);
        Part { object, start, len }
    }

    /// Appends a PTR object for the caller's bytes.
    #[inline]
    pub(crate) fn push_lent(&mut self, bytes: &'a [u8], parent: Option<(Part, usize)>) {
        self.push_buffer(Bytes::Lent(bytes), parent);
    }

    #[inline]
    fn push_buffer(&mut self, bytes: Bytes<'a>, parent: Option<(Part, usize)>) {
        let object = self.next_object();
        let mut ptr = BufferObject { kind: object::PTR, length: bytes.len() as u64, ..Default::default() };
        let mut pointer = None;
        if let Some((part, offset)) = parent {
            ptr.flags = object::BUFFER_FLAG_HAS_PARENT;
            ptr.parent = part.object as u64;
            ptr.parent_offset = offset as u64;
            // One that is outside the parent is for the driver to refuse.
            pointer = (offset.saturating_add(8) <= part.len).then(|| part.start + offset);
        }
        self.memory.buffers.push(Buffer { bytes, object, pointer });
        self.memory.buffers_size += (bytes.len() as u64).next_multiple_of(8);
        self.push_object(ptr.as_bytes());
    }

    /// Writes bytes into a structure; what does not fit into it is left out.
    #[inline]
    pub(crate) fn put_own(&mut self, part: Part, offset: usize, bytes: &[u8]) {
        if offset.saturating_add(bytes.len()) <= part.len {
            put(self.memory.own.as_mut_bytes(), part.start + offset, bytes);
        }
    }

    /// The bytes that an object describes.
    pub(crate) fn described(&self, object: usize) -> Option<&[u8]> {
        let at = self.memory.buffers.binary_search_by_key(&object, |buffer| buffer.object).ok()?;
        Some(self.memory.buffers.get(at)?.bytes.of(&self.memory.own))
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

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..value.len())) {
        place.copy_from_slice(value);
    }
}

impl Drop for HwParcel<'_> {
    #[inline]
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        // Before the spare list is borrowed: what it held may be dropped here, and make calls.
        let memory = memory.unborrowed();
        if memory.size() > LARGEST_KEPT || memory.data.capacity() == 0 {
            return;
        }
        // Without local storage, at a thread's end, the memory is simply given back.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(memory);
            }
        });
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
