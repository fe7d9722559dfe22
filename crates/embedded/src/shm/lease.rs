//! The lease: lets the owner of a receiving area place buffers in it without asking the broker.
//! Not here: choosing a gap (`broker::core::arena`, `client::placements`), the buffers' bytes.
//! Facts: contract BUF-02 to BUF-05.
//!
//! The broker allocates in a receiving area. It leases all free space to the owner, who places calls and
//! replies from call slots there and announces each buffer here. Before the broker takes or frees space
//! itself, it suspends the lease and reads the announcements; afterwards it resumes the lease with the
//! remaining gaps. It never waits for the owner.
//!
//! Race rule: the owner announces a buffer, passes a full fence, and reads the turn. If the turn has changed,
//! it withdraws the announcement, and nothing was placed. The broker changes the turn, passes a full fence,
//! and reads the announcements. One of the two sees the other. The broker may count an announcement that is
//! being withdrawn, or a buffer that is being given back: it reports what it counted, so that the owner knows
//! which space is free in addition to the gaps.
//!
//! An announcement also says which node a buffer's call is to ([`Tag`]), for the broker to count the calls that hold a
//! node (contract IOC-04). It costs no store: offsets leave bits of the first word unused.
//!
//! Only the broker and the owner map this memory. The owner trusts the broker; the broker checks every
//! announcement, and a wrong one harms only the owner.
//!
//! Layout: 0: the turn, odd while suspended. 4: number of gaps. 8: entries ever used (owner). From 64:
//! [`GAPS`] gaps. Then [`ENTRIES`] announcements, and as many ranges counted by the broker. Each is two
//! words: first byte and length; an announcement's first word also has the buffer's tag, whose bit 0 is set.

use std::time::Duration;

use sys::sync::{Ordering, full_fence, spin_loop};

use super::Memory;

/// Most buffers that the owner has placed at a time.
pub const ENTRIES: usize = 224;

/// With fewer free entries than this, senders see no room in call slots and go through the broker.
pub const FEW_ENTRIES: usize = 32;

/// Most gaps in a lease; of more gaps, the largest ones.
pub const GAPS: usize = 48;

/// Size of a lease in bytes: one page.
pub const SIZE: usize = 4096;

/// Offset of the lease behind a receiving area of `arena` bytes.
pub(crate) fn offset(arena: usize) -> usize {
    arena.next_multiple_of(SIZE)
}

/// Bytes of a receiving area and its lease.
pub(crate) fn arena_memory(arena: usize) -> usize {
    offset(arena) + SIZE
}

const TURN: usize = 0;
const GAP_COUNT: usize = 4;
const USED: usize = 8;
const GAP: usize = 64;
const ANNOUNCED: usize = GAP + GAPS * 8;
const COUNTED: usize = ANNOUNCED + ENTRIES * 8;
const _: () = assert!(COUNTED + ENTRIES * 8 <= SIZE);

/// Bits of an announcement's first word that are the first byte: a multiple of 8 in an area of at most [`AREA_MAX`].
const START: u32 = AREA_MAX as u32 - 8;

/// Largest receiving area, in bytes.
pub const AREA_MAX: usize = 4 << 20;

/// Flag in the first word of an announcement.
const LIVE: u32 = 1;

/// The place above those bits, and how many there are between them and [`LIVE`].
const ABOVE: u32 = AREA_MAX.ilog2();
const BETWEEN: u32 = 2;

/// A mark of placed buffers: those of calls to one node, or those of no known node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u32);

impl Tag {
    /// Most nodes of a process with a tag of their own.
    pub const NODES: u32 = (1 << (u32::BITS - ABOVE + BETWEEN)) - 1;

    /// The tag of the buffers of calls to the node with this number, from 1 to [`Self::NODES`]; any other number is no
    /// node's.
    #[must_use]
    pub fn of_node(number: u32) -> Self {
        let number = if number > Self::NODES { 0 } else { number };
        Self((number >> BETWEEN) << ABOVE | (number & ((1 << BETWEEN) - 1)) << 1 | LIVE)
    }
}

/// The tag of no node.
impl Default for Tag {
    fn default() -> Self {
        Self(LIVE)
    }
}

const SPINS: u32 = 200;
const YIELDS: u32 = 20;
const NAP: Duration = Duration::from_micros(50);
/// Naps before giving up, about 5 s: a live broker has resumed by then.
const NAPS: u32 = 100_000;

/// A range of bytes; empty if `len` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// Offset in the receiving area.
    pub start: u32,
    /// Length in bytes, a multiple of 8.
    pub len: u32,
}

impl Range {
    /// The first byte after the range. Saturates.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.start.saturating_add(self.len)
    }
}

/// A lease in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Lease<M> {
    memory: M,
    base: usize,
}

/// Operations of both sides.
impl<M: Memory> Lease<M> {
    /// The lease that begins at `base`. An access panics if the memory does not hold [`SIZE`] bytes from there.
    pub fn at(memory: M, base: usize) -> Self {
        Self { memory, base }
    }

    fn load(&self, at: usize) -> u32 {
        self.memory.word(self.base + at).load(Ordering::Relaxed)
    }

    fn store(&self, at: usize, value: u32) {
        self.memory.word(self.base + at).store(value, Ordering::Relaxed);
    }

    fn load_range(&self, at: usize) -> Range {
        Range { start: self.load(at), len: self.load(at + 4) }
    }

    fn store_range(&self, at: usize, range: Range) {
        self.store(at, range.start);
        self.store(at + 4, range.len);
    }
}

/// Operations of the owner.
impl<M: Memory> Lease<M> {
    /// Places a buffer under a free entry; false if the lease is at another turn, and nothing was placed.
    #[inline] // 170 of 7,320 instructions of a round trip less
    pub fn place(&self, entry: u8, range: Range, tag: Tag, turn: u32) -> bool {
        let at = ANNOUNCED + usize::from(entry) * 8;
        self.store(at + 4, range.len);
        self.store(at, range.start | tag.0);
        // Pairs with the fence in `suspend`. Guarded by loom_no_byte_is_placed_twice.
        full_fence();
        if self.load(TURN) == turn {
            return true;
        }
        self.give_back(entry);
        false
    }

    /// Frees the buffer of an entry.
    pub fn give_back(&self, entry: u8) {
        let word = self.memory.word(self.base + ANNOUNCED + usize::from(entry) * 8);
        // Release: a reader that sees this store comes after all use of the buffer.
        word.store(0, Ordering::Release);
    }

    /// Publishes the bound of the entries in use, before the first buffer is placed under them.
    pub fn set_used(&self, entries: usize) {
        self.store(USED, entries as u32);
    }

    /// Whether the lease is still at that turn.
    pub fn is_of(&self, turn: u32) -> bool {
        self.load(TURN) == turn
    }

    /// Reads the lease. Appends its gaps to `gaps` and, for the first `used` entries, the ranges that the
    /// broker counted as placed to `counted`. Returns the turn; `None` if the broker has suspended the lease
    /// and does not resume it.
    pub fn read(&self, used: usize, gaps: &mut Vec<Range>, counted: &mut Vec<Range>) -> Option<u32> {
        loop {
            // Acquire: pairs with the Release in `resume`.
            let turn = self.wait_until_resumed()?;
            gaps.clear();
            counted.clear();
            let count = (self.load(GAP_COUNT) as usize).min(GAPS);
            gaps.extend((0..count).map(|index| self.load_range(GAP + index * 8)));
            counted.extend((0..used.min(ENTRIES)).map(|entry| self.load_range(COUNTED + entry * 8)));
            // The gaps belong to this turn if the turn is unchanged after reading them.
            full_fence();
            if self.load(TURN) == turn {
                return Some(turn);
            }
        }
    }

    fn wait_until_resumed(&self) -> Option<u32> {
        let mut waited = 0;
        loop {
            let turn = self.memory.word(self.base + TURN).load(Ordering::Acquire);
            if turn.is_multiple_of(2) {
                return Some(turn);
            }
            // Yields and sleeps: the broker may need this CPU to go on.
            match waited {
                0..SPINS => spin_loop(),
                SPINS.. if waited < SPINS + YIELDS => std::thread::yield_now(),
                _ if waited < SPINS + YIELDS + NAPS => std::thread::sleep(NAP),
                _ => return None,
            }
            waited += 1;
        }
    }
}

/// Operations of the broker.
impl<M: Memory> Lease<M> {
    /// Suspends the lease, and replaces the content of `placed` by the ranges that the owner has placed, by
    /// entry.
    pub fn suspend(&self, placed: &mut Vec<Range>) {
        self.store(TURN, self.load(TURN) | 1);
        // Pairs with the fence in `place`. Guarded by loom_no_byte_is_placed_twice.
        full_fence();
        self.placed(placed);
    }

    /// Reads the ranges that the owner has placed, which may change meanwhile.
    pub fn placed(&self, placed: &mut Vec<Range>) {
        placed.clear();
        let used = (self.load(USED) as usize).min(ENTRIES);
        placed.extend((0..used).map(|entry| {
            let at = ANNOUNCED + entry * 8;
            // Acquire: pairs with the Release in `give_back`.
            let start = self.memory.word(self.base + at).load(Ordering::Acquire);
            match start & LIVE {
                0 => Range::default(),
                _ => Range { start: start & START, len: self.load(at + 4) },
            }
        }));
    }

    /// Number of buffers with this tag that the owner has placed, which may change meanwhile.
    pub fn tagged(&self, tag: Tag) -> usize {
        // Pairs with the fence in `place`: the buffer of a call that was seen to be read is seen, too.
        full_fence();
        let used = (self.load(USED) as usize).min(ENTRIES);
        (0..used).filter(|entry| self.load(ANNOUNCED + entry * 8) & !START == tag.0).count()
    }

    /// Resumes the lease with all free space in `gaps`. `counted`: the ranges counted as placed, by entry.
    pub fn resume(&self, gaps: impl Iterator<Item = Range>, counted: &[Range]) {
        let mut count = 0;
        for gap in gaps.take(GAPS) {
            self.store_range(GAP + count * 8, gap);
            count += 1;
        }
        self.store(GAP_COUNT, count as u32);
        for (entry, range) in counted.iter().take(ENTRIES).enumerate() {
            let at = COUNTED + entry * 8;
            if self.load_range(at) != *range {
                self.store_range(at, *range);
            }
        }
        let turn = (self.load(TURN) | 1).wrapping_add(1);
        // Release: a reader that sees this turn sees its gaps and counts.
        self.memory.word(self.base + TURN).store(turn, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models;
