//! Room: the private memory into which calls and replies from lanes are copied, so that nobody can
//! change them any more when they are looked at.
//! Not here: the arena, which the broker fills; whose buffer lies where (`state`).
//! Facts: contract BUF-01, BUF-07, TX-24, OBJ-01, OBJ-15 to OBJ-18.

use std::io;

use abi::codes::tf;
use abi::layout::{BufferObject, TransactionData};
use sys::sealed_memory::{LentMemory, SealedMemory};

use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane::{self, Shape, behind_head};
use crate::embedded::objects::{ALIGN, FEW, Layout, Piece, STRUCTURE, Vector, View, Walk, few};

/// How a payload from a lane arrives.
pub(super) struct Arriving {
    shape: Shape,
    /// Its parts once it is there.
    pub(super) layout: Layout,
    /// Bytes of the vector that it ends with, if that stays without objects.
    pub(super) vector: Option<u64>,
}

impl Arriving {
    /// At a reader that takes vectors without objects, or does not.
    #[inline]
    pub(super) fn new(shape: Shape, takes_vectors: bool) -> Self {
        match shape.bare().filter(|_| takes_vectors) {
            Some((vector, layout)) => Self { shape, layout, vector: Some(vector.elements) },
            None => Self { shape, layout: shape.layout(), vector: None },
        }
    }

    /// Bytes that the lane holds of it.
    pub(super) fn sent(&self) -> usize {
        self.shape.sent()
    }
}

/// The memory; none if there are no lanes.
#[derive(Debug)]
pub(super) struct Area {
    memory: Option<(SealedMemory, LentMemory)>,
}

impl Area {
    /// An area as large as the arena, so that lanes never hold more than that would.
    pub(super) fn new(size: usize) -> io::Result<Self> {
        if size == 0 {
            return Ok(Self { memory: None });
        }
        let memory = SealedMemory::create(size)?;
        let lent = memory.lend()?;
        Ok(Self { memory: Some((memory, lent)) })
    }

    pub(super) fn size(&self) -> u64 {
        self.memory.as_ref().map_or(0, |(memory, _)| memory.len() as u64)
    }

    pub(super) fn base(&self) -> u64 {
        self.memory.as_ref().map_or(0, |(_, lent)| lent.base())
    }

    /// Takes in a payload without objects that is all there, and lends it; its place and address. `None`: it is for
    /// [`take_in`](Self::take_in), or there is no room.
    #[inline(always)]
    pub(super) fn take_in_plain(
        &self,
        live: &mut Live,
        (channel, piece): (&SealedMemory, lane::Piece),
        lent: Lent,
    ) -> Option<(u64, TransactionData)> {
        let (memory, mapped) = self.memory.as_ref()?;
        let len = piece.len as u64;
        let offset = live.alloc_lent(len, memory.len() as u64, lent)?;
        memory.copy_from(offset as usize, channel, piece.from, piece.len);
        take_over(channel, piece);
        let buffer = mapped.base() + offset;
        let offsets = buffer + len.next_multiple_of(ALIGN);
        Some((offset, TransactionData { data_size: len, buffer, offsets, ..TransactionData::default() }))
    }

    /// Copies a piece of a payload from a channel's memory to its allocated place. One that is packed comes
    /// as one piece, and is unpacked if its reader wants that.
    #[inline(always)]
    pub(super) fn take_in(
        &self,
        channel: &SealedMemory,
        piece: lane::Piece,
        offset: u64,
        arriving: &Arriving,
    ) {
        let Some((memory, lent)) = &self.memory else { return };
        match arriving.shape.vector() {
            Some(vector) if arriving.vector.is_none() => {
                unpack((memory, lent), (channel, piece.from), offset, arriving.layout, vector);
            }
            _ => memory.copy_from(offset as usize + piece.at, channel, piece.from, piece.len),
        }
        take_over(channel, piece);
    }

    /// Gives the scattered buffers of a payload that was copied here their addresses.
    ///
    /// # Errors
    /// [`Corrupt::Objects`]: something that the sender's library would have left to the broker.
    #[inline(always)]
    pub(super) fn settle(&self, offset: u64, arriving: &Arriving) -> Result<(), Corrupt> {
        if arriving.vector.is_some() {
            self.point_behind(offset + arriving.layout.scattered);
            return Ok(());
        }
        if arriving.shape.objects == 0 || arriving.shape.is_packed() {
            return Ok(());
        }
        self.settle_objects(offset, arriving.layout).ok_or(Corrupt::Objects)
    }

    /// Makes a structure at this place point to what is behind it.
    #[inline]
    fn point_behind(&self, structure: u64) {
        if let Some((memory, lent)) = &self.memory {
            let elements: [u32; 2] = zerocopy::transmute!(lent.base() + structure + STRUCTURE);
            memory.put_words(structure as usize, elements);
        }
    }

    fn settle_objects(&self, offset: u64, layout: Layout) -> Option<()> {
        let (memory, lent) = self.memory.as_ref()?;
        let mut arrived = Arrived { memory, start: offset, layout };
        let base = lent.base() + offset;
        let mut pieces = [Piece::default(); FEW];
        // Looked at first and written to afterwards.
        let (data, offsets) =
            lent.lent(offset, layout.scattered)?.split_at_checked(layout.offsets as usize)?;
        if few(&layout, data.get(..layout.data_size as usize)?, offsets, &mut pieces).is_some() {
            for piece in pieces.iter().take((layout.offsets_size / ALIGN) as usize) {
                arrived.settle(piece, base + piece.place);
            }
            return Some(());
        }
        let mut walk = Walk::new(&layout);
        while let Some(pointer) = walk.next_pointer(&arrived) {
            walk.place(&mut arrived, pointer.ok()?, base).ok()?;
        }
        Some(())
    }

    pub(super) fn zero(&self, offset: u64, len: u64) {
        if let Some((memory, _)) = &self.memory {
            memory.zero(offset as usize, len as usize);
        }
    }

    /// The offset of an address, if it lies in this area.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.base()).filter(|offset| *offset < self.size())
    }

    /// The bytes at an address, if they lie in this area.
    pub(super) fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        let (_, lent) = self.memory.as_ref()?;
        lent.lent(address.checked_sub(lent.base())?, len)
    }
}

/// From so many bytes on, what a sender saves is more than what taking its lines over costs.
const TAKEN_OVER: usize = 1024;

/// Leaves the bytes of a piece that was read where its sender, which writes there again in its next call but one at the
/// earliest, and not before this one is over, gets them quickest.
#[inline]
fn take_over(channel: &SealedMemory, piece: lane::Piece) {
    if piece.len >= TAKEN_OVER {
        channel.take_over(piece.from, piece.len);
    }
}

/// Makes the whole of a packed payload: objects and offsets are this side's own. The structure's second word
/// and the elements follow one another in the lane as here.
#[inline(never)]
fn unpack(
    (memory, lent): (&SealedMemory, &LentMemory),
    (channel, from): (&SealedMemory, usize),
    offset: u64,
    layout: Layout,
    vector: Vector,
) {
    let to = offset as usize;
    let structure = lent.base() + offset + layout.scattered;
    memory.copy_from(to, channel, from, vector.head);
    memory.put_words(to + vector.head, vector.objects_at(structure));
    memory.put_words(to + layout.offsets as usize, vector.offsets_at(structure));
    let second = to + layout.scattered as usize + size_of::<u64>();
    let rest = size_of::<u64>() + vector.elements as usize;
    memory.copy_from(second, channel, from + behind_head(vector.head) + size_of::<u64>(), rest);
}

/// Where a PTR object has its address.
const ADDRESS: u64 = std::mem::offset_of!(BufferObject, buffer) as u64;

/// A payload that was copied into an area. Until it is delivered nobody else writes or reads there.
struct Arrived<'a> {
    memory: &'a SealedMemory,
    start: u64,
    layout: Layout,
}

impl Arrived<'_> {
    fn place(&self, at: u64, len: usize) -> Option<usize> {
        let end = at.checked_add(len as u64)?;
        (end <= self.layout.end).then_some((self.start + at) as usize)
    }

    /// Writes a buffer's address into its object and into what points to it.
    #[inline]
    fn settle(&self, piece: &Piece, address: u64) {
        let address: [u32; 2] = zerocopy::transmute!(address);
        self.memory.put_words((self.start + piece.at + ADDRESS) as usize, address);
        if piece.pointer != 0 {
            self.memory.put_words((self.start + piece.pointer) as usize, address);
        }
    }
}

impl View for Arrived<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.copy_out(self.place(at, N)?, &mut bytes);
        Some(bytes)
    }

    #[inline]
    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        self.memory.copy_in(self.place(at, bytes.len())?, bytes);
        Some(())
    }
}

/// A buffer in the area.
#[derive(Clone, Copy, Debug)]
struct Part {
    at: u64,
    len: u64,
    /// What its end brings, once it was delivered.
    lent: Option<Lent>,
}

/// What is to be done when a delivered buffer comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lent {
    /// Overwrite it (contract BUF-07).
    pub(super) clear: bool,
    /// The place of the node that the call in it holds (contract REF-13).
    pub(super) node: Option<u32>,
}

impl Lent {
    /// Of a transaction with these `TF_*` bits.
    #[inline(always)]
    pub(super) fn of(flags: u32, node: Option<u32>) -> Self {
        Self { clear: flags & tf::CLEAR_BUF != 0, node }
    }
}

/// Which parts of an area are in use: few at a time, so a list in order is quickest.
#[derive(Debug)]
pub(super) struct Live {
    parts: Vec<Part>,
}

impl Live {
    pub(super) fn new() -> Self {
        Self { parts: Vec::with_capacity(32) }
    }

    /// The lowest free place for `len` bytes (at least 8, rounded up to 8); `None` if there is none.
    #[inline]
    pub(super) fn alloc(&mut self, len: u64, size: u64) -> Option<u64> {
        self.put(len, size, None)
    }

    /// The same for what is as good as delivered.
    #[inline]
    pub(super) fn alloc_lent(&mut self, len: u64, size: u64, lent: Lent) -> Option<u64> {
        self.put(len, size, Some(lent))
    }

    #[inline]
    fn put(&mut self, len: u64, size: u64, lent: Option<Lent>) -> Option<u64> {
        let len = len.max(8).checked_next_multiple_of(8)?;
        if self.parts.is_empty() && len <= size {
            self.parts.push(Part { at: 0, len, lent });
            return Some(0);
        }
        self.put_among(len, size, lent)
    }

    /// [`put`](Self::put) of a length that is rounded up.
    #[inline(never)]
    fn put_among(&mut self, len: u64, size: u64, lent: Option<Lent>) -> Option<u64> {
        let mut start = 0;
        let mut index = 0;
        for part in &self.parts {
            if part.at - start >= len {
                break;
            }
            start = part.at + part.len;
            index += 1;
        }
        if start.checked_add(len)? > size {
            return None;
        }
        self.parts.insert(index, Part { at: start, len, lent });
        Some(start)
    }

    /// Most often it is the last one.
    #[inline]
    fn find(&self, offset: u64) -> Option<usize> {
        match self.parts.last() {
            Some(part) if part.at == offset => Some(self.parts.len() - 1),
            _ => self.find_among(offset),
        }
    }

    #[inline(never)]
    fn find_among(&self, offset: u64) -> Option<usize> {
        self.parts.binary_search_by_key(&offset, |part| part.at).ok()
    }

    /// Notes that the part at `offset` is delivered.
    #[inline]
    pub(super) fn lend(&mut self, offset: u64, lent: Lent) {
        if let Some(index) = self.find(offset) {
            self.parts[index].lent = Some(lent);
        }
    }

    /// Frees the part at `offset` that is not delivered.
    pub(super) fn free(&mut self, offset: u64) {
        if let Some(index) = self.find(offset) {
            self.parts.remove(index);
        }
    }

    /// Frees the part at `offset` if it was delivered; returns its length and what is to be done.
    #[inline]
    pub(super) fn take_back(&mut self, offset: u64) -> Option<(u64, Lent)> {
        let index = self.find(offset)?;
        let Part { len, lent: Some(lent), .. } = self.parts[index] else { return None };
        if index + 1 == self.parts.len() {
            self.parts.pop();
        } else {
            self.parts.remove(index);
        }
        Some((len, lent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_lowest_first_aligned_and_apart() {
        let mut live = Live::new();
        assert_eq!(live.alloc(0, 64), Some(0));
        assert_eq!(live.alloc(9, 64), Some(8));
        assert_eq!(live.alloc(40, 64), Some(24));
        assert_eq!(live.alloc(1, 64), None, "full");
        assert_eq!(live.take_back(8), None, "nobody has it");
        let lent = Lent { clear: true, node: Some(3) };
        live.lend(8, lent);
        assert_eq!(live.take_back(8), Some((16, lent)));
        assert_eq!(live.take_back(8), None, "not twice");
        assert_eq!(live.alloc(24, 64), None, "the gap is 16");
        assert_eq!(live.alloc(16, 64), Some(8));
        assert_eq!(live.alloc(u64::MAX, 64), None);
    }
}
