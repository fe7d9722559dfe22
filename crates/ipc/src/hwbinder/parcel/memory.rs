//! The memory of HIDL parcels, which a thread recycles.
//! Not here: its contents (`super`).

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use abi::codes::object;
use abi::layout::BufferObject;
use zerocopy::{FromBytes, IntoBytes};

use super::Held;

/// Parcels whose memory a thread keeps; a nested call needs two at a time.
const KEPT: usize = 4;
/// More than any payload that a driver delivers is not kept.
const LARGEST_KEPT: usize = 1 << 20;

thread_local! {
    // Boxed: parcels are handed from function to function, which moves a pointer.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    static SPARE: RefCell<Vec<Box<Memory>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes in a parcel's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Own {
    #[inline]
    pub(super) fn of(self, memory: &[u64]) -> &[u8] {
        // Whatever is named was cut out of this memory.
        memory.as_bytes().get(self.start..).and_then(|rest| rest.get(..self.len)).unwrap_or_default()
    }

    /// The place of a pointer in it.
    #[inline]
    pub(super) fn pointer(self, offset: usize) -> Option<usize> {
        (offset.saturating_add(size_of::<u64>()) <= self.len).then(|| self.start + offset)
    }
}

/// One PTR object for something in the own memory, whose address is not known before the end.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    /// Its index among the PTR objects.
    pub(super) slot: usize,
    /// Its index among all objects.
    pub(super) object: usize,
    /// Where it stands in the data.
    pub(super) at: usize,
    /// The bytes that it describes.
    pub(super) own: Own,
    /// Where its address is stored as well: a position in the own memory.
    pub(super) pointer: Option<usize>,
}

#[derive(Default)]
pub(super) struct Memory {
    pub(super) data: Vec<u8>,
    pub(super) offsets: Vec<u64>,
    /// Structures, each from an 8-byte boundary on.
    pub(super) own: Vec<u64>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) buffers_size: u64,
    /// Binders and descriptors, by the position of their object.
    pub(super) held: Vec<(u64, Held)>,
    /// Room for what a parcel borrows, while it is none's.
    pub(super) lent: Vec<&'static [u8]>,
}

impl Memory {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        self.own.clear();
        self.buffers.clear();
        self.buffers_size = 0;
        self.held.clear();
    }

    /// Zeros in the own memory, from an 8-byte boundary on.
    pub(super) fn reserve(&mut self, len: usize) -> Own {
        let start = self.own.len();
        self.own.resize(start + len.div_ceil(8), 0);
        Own { start: 8 * start, len }
    }

    /// The object at a position, as a PTR object if it is one.
    pub(super) fn object_at(&self, offset: u64) -> Option<BufferObject> {
        let object = self.data.get(usize::try_from(offset).ok()?..)?;
        BufferObject::read_from_prefix(object).ok().map(|(object, _)| object)
    }

    /// Copies what is lent into the own memory: for each PTR object that has none there, its bytes.
    pub(super) fn adopt(&mut self, lent: &[&[u8]]) {
        let mut buffers: Vec<Buffer> = Vec::with_capacity(lent.len());
        let mut own = self.buffers.iter().copied().peekable();
        let mut copies = Vec::new();
        for (object, offset) in self.offsets.iter().enumerate() {
            let Some(ptr) = self.object_at(*offset).filter(|ptr| ptr.kind == object::PTR) else { continue };
            let slot = buffers.len();
            if let Some(buffer) = own.next_if(|buffer| buffer.slot == slot) {
                buffers.push(buffer);
                continue;
            }
            let bytes = lent.get(slot).copied().unwrap_or_default();
            let start = size_of_val(self.own.as_slice()) + copies.len();
            copies.extend_from_slice(bytes);
            copies.resize(copies.len().next_multiple_of(8), 0);
            let parent = buffers.iter().find(|parent| parent.object as u64 == ptr.parent);
            let parent = parent.filter(|_| ptr.flags == object::BUFFER_FLAG_HAS_PARENT);
            let pointer = parent.and_then(|parent| parent.own.pointer(ptr.parent_offset as usize));
            let own = Own { start, len: bytes.len() };
            buffers.push(Buffer { slot, object, at: *offset as usize, own, pointer });
        }
        let words = copies.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        self.own.extend(words);
        self.buffers = buffers;
    }

    fn size(&self) -> usize {
        self.data.capacity() + 8 * self.own.capacity()
    }
}

/// A parcel's memory; dropping it keeps it for the thread's next parcel.
pub(super) struct Recycled(Option<Box<Memory>>);

const THERE: &str = "only the drop takes it";

impl Recycled {
    /// The memory of a parcel that is no more, or new memory.
    #[inline]
    pub(super) fn take() -> Self {
        let memory = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        Self(Some(memory.unwrap_or_default()))
    }
}

impl Deref for Recycled {
    type Target = Memory;

    #[inline]
    fn deref(&self) -> &Memory {
        self.0.as_ref().expect(THERE)
    }
}

impl DerefMut for Recycled {
    #[inline]
    fn deref_mut(&mut self) -> &mut Memory {
        self.0.as_mut().expect(THERE)
    }
}

impl Drop for Recycled {
    #[inline]
    fn drop(&mut self) {
        let Some(mut memory) = self.0.take() else { return };
        // May run the last drop of a proxy or node, so before the spare list is borrowed.
        memory.clear();
        if memory.size() > LARGEST_KEPT {
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

/// Another lifetime for a list without its entries, in the same memory (the collection is in place).
#[inline]
pub(super) fn emptied<'b>(mut list: Vec<&[u8]>) -> Vec<&'b [u8]> {
    list.clear();
    list.into_iter().map(|_| &[][..]).collect()
}
