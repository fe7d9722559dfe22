//! Room: a scatter-gather payload being built: its bytes, its objects, and the buffers they describe.
//! Not here: the values (`writer`, `reader`), received payloads (`crate::received`).
//! Facts: contract OBJ-15 to OBJ-19; libhwbinder's `Parcel.cpp` for what is listed and what counts.
//!
//! Large arguments are not copied: the parcel borrows them and the driver reads them in place. Small
//! structures (a vector's 16 bytes) lie in memory of the parcel's own, which grows while it is
//! written; so no address is filled in before [`HwParcel::with_payload`] hands the payload out.
//!
//! Parcels are recycled: dropping one keeps its memory for the thread's next, so that a steady
//! stream of calls allocates nothing, unless they lend more than [`FEW`] vectors at once.

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
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that a PTR object describes.
#[derive(Clone, Copy)]
enum Bytes {
    /// In the parcel's own memory.
    Own { start: usize, len: usize },
    /// The caller's, by their number in [`Lent`].
    Lent { number: usize, len: usize },
}

/// One PTR object.
#[derive(Clone, Copy)]
struct Buffer {
    bytes: Bytes,
    /// Its index among the parcel's objects.
    object: usize,
    /// Where its address is stored as well: a position in the own memory.
    pointer: Option<usize>,
}

/// So many lent slices, and so many buffers of a payload, need no list on the heap. A list of borrowed
/// slices cannot be kept for the next parcel, which borrows others.
const FEW: usize = 4;

/// The caller's bytes, in the order they were lent.
#[derive(Default)]
struct Lent<'a> {
    few: [&'a [u8]; FEW],
    count: usize,
    /// From number [`FEW`] on.
    more: Vec<&'a [u8]>,
}

impl<'a> Lent<'a> {
    #[inline]
    fn push(&mut self, bytes: &'a [u8]) -> usize {
        let number = self.count;
        match self.few.get_mut(number) {
            Some(place) => *place = bytes,
            None => self.more.push(bytes),
        }
        self.count += 1;
        number
    }

    #[inline]
    fn get(&self, number: usize) -> &'a [u8] {
        match self.few.get(number) {
            Some(bytes) => bytes,
            None => self.more.get(number - FEW).copied().unwrap_or_default(),
        }
    }
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

/// All of a parcel that borrows nothing, and so can be kept.
#[derive(Default)]
struct Memory {
    data: Vec<u8>,
    offsets: Vec<u64>,
    /// Structures, each from an 8-byte boundary on.
    own: Vec<u64>,
    buffers: Vec<Buffer>,
    buffers_size: u64,
    /// Binders and descriptors, by the position of their object.
    held: Vec<(u64, Held)>,
}

/// The arguments or results of a HIDL call, with the objects that travel along.
pub struct HwParcel<'a> {
    memory: Memory,
    lent: Lent<'a>,
}

impl Memory {
    #[inline]
    fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        self.own.clear();
        self.buffers.clear();
        self.buffers_size = 0;
        // May run the last drop of a proxy or node.
        self.held.clear();
    }

    fn size(&self) -> usize {
        self.data.capacity() + 8 * self.own.capacity()
    }

    /// What a buffer holds, its lent bytes being these.
    #[inline]
    fn bytes<'m>(&'m self, lent: &Lent<'m>, buffer: &Buffer) -> &'m [u8] {
        match buffer.bytes {
            // A part that is there was cut out of this memory.
            Bytes::Own { start, len } => self.own.as_bytes().get(start..start + len).unwrap_or_default(),
            Bytes::Lent { number, .. } => lent.get(number),
        }
    }
}

impl Bytes {
    #[inline]
    fn len(self) -> usize {
        match self {
            Self::Own { len, .. } | Self::Lent { len, .. } => len,
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
        Self { memory: memory.unwrap_or_default(), lent: Lent::default() }
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
        self.memory.buffers.iter().map(|buffer| self.memory.bytes(&self.lent, buffer))
    }

    /// Starts over: bytes and objects go.
    pub fn clear(&mut self) {
        self.memory.clear();
        self.lent = Lent::default();
    }

    /// Hands the payload out, with every address where it belongs. What is borrowed stays borrowed
    /// until `send` returns, when the driver must have it.
    #[inline]
    pub fn with_payload<R>(&mut self, send: impl FnOnce(Payload<'_>) -> R) -> R {
        self.seal();
        let Memory { data, offsets, buffers, buffers_size, .. } = &self.memory;
        let bytes = |buffer| self.memory.bytes(&self.lent, buffer);
        let (mut few, many): ([&[u8]; 2 * FEW], Vec<&[u8]>);
        let named = if buffers.len() <= 2 * FEW {
            few = [&[]; 2 * FEW];
            few.iter_mut().zip(buffers).for_each(|(place, buffer)| *place = bytes(buffer));
            &few[..buffers.len()]
        } else {
            many = buffers.iter().map(bytes).collect();
            &many[..]
        };
        send(Payload { data, offsets, buffers_size: Some(*buffers_size), buffers: named })
    }

    /// Fills in every address, in the objects and in the structures that point to others. Nothing
    /// may be written afterwards that makes the own memory grow.
    #[inline]
    pub(crate) fn seal(&mut self) {
        let Self { memory: Memory { data, offsets, own, buffers, .. }, lent } = self;
        let base = own.as_ptr() as u64;
        let own = own.as_mut_bytes();
        for buffer in buffers.iter() {
            let address = match buffer.bytes {
                Bytes::Own { start, .. } => base + start as u64,
                Bytes::Lent { number, .. } => lent.get(number).as_ptr() as u64,
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
        for index in 0..self.memory.buffers.len() {
            if let Bytes::Lent { number, len } = self.memory.buffers[index].bytes {
                let start = self.reserve(len);
                put(self.memory.own.as_mut_bytes(), start, self.lent.get(number));
                self.memory.buffers[index].bytes = Bytes::Own { start, len };
            }
        }
        let mut owned = HwParcel { memory: std::mem::take(&mut self.memory), lent: Lent::default() };
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
        let number = self.lent.push(bytes);
        self.push_buffer(Bytes::Lent { number, len: bytes.len() }, parent);
    }

    #[inline]
    fn push_buffer(&mut self, bytes: Bytes, parent: Option<(Part, usize)>) {
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
        Some(self.memory.bytes(&self.lent, self.memory.buffers.get(at)?))
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
        let mut memory = std::mem::take(&mut self.memory);
        // Before the spare list is borrowed: what it held may be dropped here, and make calls.
        memory.clear();
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
