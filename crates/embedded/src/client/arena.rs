//! The receiving area from its owner's side: a read-only mapping, from which deliveries are read, and a
//! writable one, into which payloads from call slots are copied so that no peer can change them.
//! Not here: where a buffer lies (`placements`), what the broker writes (`broker::memory`).
//! Facts: contract BUF-01, BUF-07, TX-24, OPN-03, OBJ-01, OBJ-15 to OBJ-18.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use sys::sealed_memory::{LentMemory, SealedMemory};
use zerocopy::{FromBytes, IntoBytes};

use crate::payload::packed::Vector;
use crate::payload::scatter::{Layout, View, Walk};
use crate::payload::shape::behind_head;
use crate::shm::Corrupt;
use crate::shm::call_slot::{PayloadRange, Shape};
use crate::shm::lease::{self, Lease};

/// A payload on its way from a call slot into the area.
pub(super) struct Arriving {
    shape: Shape,
    /// Layout of the payload's parts in the area.
    pub(super) layout: Layout,
}

impl Arriving {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, layout: shape.layout() }
    }
}

/// Memory for a receiving area that is not in use yet.
#[derive(Debug)]
pub struct Area {
    pub(super) memory: SealedMemory,
    /// Bytes of the area, in front of its lease.
    pub(super) size: usize,
    pub(super) size_asked_for: usize,
}

impl AsFd for Area {
    /// The memory, to be mapped read-only from its start.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.descriptor()
    }
}

/// The receiving area. Only the broker and this process map it.
#[derive(Debug)]
pub(super) struct Arena {
    /// The whole memory object: the area, then its lease.
    memory: SealedMemory,
    lent: LentMemory,
    /// First address of the area for the program: a supervised one maps the area itself, elsewhere.
    base: u64,
    lease_at: usize,
    size_asked_for: usize,
    /// The program gave up the area. The mappings stay, because a reader may still use them.
    given_up: AtomicBool,
}

impl Arena {
    /// Maps the area, the first `size` bytes of the broker's memory object.
    ///
    /// # Errors
    /// `ENOMEM`; `EINVAL`: the memory has no room for its lease.
    pub(super) fn map(area: Area, base: Option<u64>) -> io::Result<Self> {
        let Area { memory, size, size_asked_for } = area;
        let lease_at = lease::offset(size);
        if memory.len() != lease::arena_memory(size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let lent = memory.lend(size)?;
        let base = base.unwrap_or(lent.base());
        Ok(Self { memory, lent, base, lease_at, size_asked_for, given_up: AtomicBool::new(false) })
    }

    /// Size that the program asked for, in bytes; at most [`super::MAP_MAX`] of them are used (contract
    /// OPN-06).
    pub(super) fn size_asked_for(&self) -> usize {
        self.size_asked_for
    }

    /// Stops receiving (contract OPN-10).
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// First address of the area, in the terms of delivered buffer addresses.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The lease under which this process places buffers.
    pub(super) fn lease(&self) -> Lease<&SealedMemory> {
        Lease::at(&self.memory, self.lease_at)
    }

    /// Copies a payload from a channel's memory into its buffer. A packed payload is unpacked.
    pub(super) fn take_in(
        &self,
        channel: &SealedMemory,
        from: PayloadRange,
        offset: u64,
        arriving: &Arriving,
    ) {
        match arriving.shape.vector() {
            Some(vector) => {
                unpack((&self.memory, self.base), (channel, from.at), offset, arriving.layout, vector);
            }
            _ => self.memory.copy_from(offset as usize, channel, from.at, from.len),
        }
    }

    /// Writes the addresses of a copied payload's scattered buffers into its objects.
    ///
    /// # Errors
    /// [`Corrupt::Objects`]: an object that an honest sender would have sent through the broker.
    pub(super) fn settle(&self, offset: u64, arriving: &Arriving) -> Result<(), Corrupt> {
        if arriving.shape.objects == 0 || arriving.shape.is_packed() {
            return Ok(());
        }
        self.settle_objects(offset, arriving.layout).ok_or(Corrupt::Objects)
    }

    fn settle_objects(&self, offset: u64, layout: Layout) -> Option<()> {
        let mut arrived = Arrived { memory: &self.memory, start: offset, layout };
        let base = self.base() + offset;
        let mut walk = Walk::new(&layout);
        while let Some(pointer) = walk.next_pointer(&arrived) {
            walk.place(&mut arrived, pointer.ok()?, base).ok()?;
        }
        Some(())
    }

    pub(super) fn zero(&self, offset: u64, len: u64) {
        self.memory.zero(offset as usize, len as usize);
    }

    /// The offset of an address, if it lies in the area.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.base()).filter(|offset| *offset < self.lent.len() as u64)
    }

    /// The bytes at an address, if they lie in the area.
    pub(super) fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.lent.lent(address.checked_sub(self.base)?, len)
    }

    /// Reads a value at an offset; `None` if it lies outside the area.
    pub(super) fn peek<T: FromBytes + IntoBytes>(&self, at: u64) -> Option<T> {
        let mut value = T::new_zeroed();
        self.memory.copy_out(self.inside(at, size_of::<T>())?, value.as_mut_bytes());
        Some(value)
    }

    /// Writes bytes at an offset; ignored if they lie outside the area.
    pub(super) fn poke(&self, at: u64, bytes: &[u8]) {
        if let Some(at) = self.inside(at, bytes.len()) {
            self.memory.copy_in(at, bytes);
        }
    }

    fn inside(&self, at: u64, len: usize) -> Option<usize> {
        let end = at.checked_add(len as u64)?;
        (end <= self.lent.len() as u64).then_some(at as usize)
    }
}

/// Unpacks a packed payload. The objects and offsets are made here; the structure's second word and the
/// elements are adjacent in the call slot as well as here.
fn unpack(
    (memory, base): (&SealedMemory, u64),
    (channel, from): (&SealedMemory, usize),
    offset: u64,
    layout: Layout,
    vector: Vector,
) {
    let to = offset as usize;
    let structure = base + offset + layout.scattered;
    memory.copy_from(to, channel, from, vector.head);
    memory.put_words(to + vector.head, vector.objects_at(structure));
    memory.put_words(to + layout.offsets as usize, vector.offsets_at(structure));
    let second = to + layout.scattered as usize + size_of::<u64>();
    let rest = size_of::<u64>() + vector.elements as usize;
    memory.copy_from(second, channel, from + behind_head(vector.head) + size_of::<u64>(), rest);
}

/// A payload copied into the area. Only this thread accesses it until it is delivered.
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
}

impl View for Arrived<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.copy_out(self.place(at, N)?, &mut bytes);
        Some(bytes)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        self.memory.copy_in(self.place(at, bytes.len())?, bytes);
        Some(())
    }
}
