//! Buffers that this process placed in its receiving area, and the free space that the broker leased to it.
//! Not here: the buffers' bytes (`arena`), the lease in shared memory (`shm::lease`).
//! Facts: contract BUF-01 to BUF-05, TX-24. Sorted lists are fastest, because few buffers exist at a time.

use abi::codes::tf;

use crate::shm::Memory;
use crate::shm::call_slot::LARGEST;
use crate::shm::lease::{ENTRIES, FEW_ENTRIES, Lease, Range, Tag};

/// Room for any payload of a call slot, in bytes; larger values are not published.
const PLENTY: u32 = LARGEST as u32;

const _: () = assert!(ENTRIES <= u8::MAX as usize);

/// Work to do when a delivered buffer is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lent {
    /// Overwrite the buffer (contract BUF-07).
    pub(super) clear: bool,
    /// Pin of the node that the buffer's call holds (contract REF-13).
    pub(super) node: Option<u32>,
}

impl Lent {
    /// Derives the work from a transaction's `TF_*` bits and its node's pin.
    pub(super) fn of(flags: u32, node: Option<u32>) -> Self {
        Self { clear: flags & tf::CLEAR_BUF != 0, node }
    }
}

/// A placed buffer.
#[derive(Clone, Copy, Debug)]
struct Part {
    range: Range,
    /// The buffer's entry in the lease.
    entry: u8,
    /// Work when it is given back; `None` before it is delivered.
    lent: Option<Lent>,
}

/// The placed buffers and the free space.
#[derive(Debug)]
pub(super) struct Placements {
    /// Turn of the lease at which the gaps were read. Odd before the first read, unlike any lease in force.
    turn: u32,
    /// Free ranges in order of address; no two are adjacent.
    gaps: Vec<Range>,
    /// Placed buffers in order of address.
    parts: Vec<Part>,
    /// Free entries of the lease, the lowest last.
    entries: Vec<u8>,
    /// Bound of the entries used so far.
    used: usize,
    /// Ranges that the broker counted as placed; scratch space while the lease is read.
    counted: Vec<Range>,
}

impl Placements {
    pub(super) fn new() -> Self {
        Self {
            turn: u32::MAX,
            gaps: Vec::with_capacity(16),
            parts: Vec::with_capacity(32),
            entries: (0..ENTRIES as u8).rev().collect(),
            used: 0,
            counted: Vec::new(),
        }
    }

    /// Places a buffer of `len` bytes (at least 8, rounded up to 8) in the smallest gap that fits; returns
    /// its offset, or `None` without room.
    pub(super) fn place<M: Memory>(&mut self, lease: &Lease<M>, len: u64, tag: Tag) -> Option<u64> {
        let len = u32::try_from(len.max(8).checked_next_multiple_of(8)?).ok()?;
        loop {
            let gap = match self.gaps[..] {
                [gap] => (gap.len >= len).then_some(0),
                _ => self.smallest_gap(len),
            };
            let Some(gap) = gap else {
                if lease.is_of(self.turn) || !self.renew(lease) {
                    return None;
                }
                continue;
            };
            let &entry = self.entries.last()?;
            if usize::from(entry) >= self.used {
                self.used = usize::from(entry) + 1;
                lease.set_used(self.used);
            }
            let range = Range { start: self.gaps[gap].start, len };
            if lease.place(entry, range, tag, self.turn) {
                self.entries.pop();
                self.fill(gap, Part { range, entry, lent: None });
                return Some(range.start.into());
            }
            if !self.renew(lease) {
                return None;
            }
        }
    }

    fn smallest_gap(&self, len: u32) -> Option<usize> {
        let fits = self.gaps.iter().enumerate().filter(|(_, gap)| gap.len >= len);
        fits.min_by_key(|(_, gap)| gap.len).map(|(index, _)| index)
    }

    fn fill(&mut self, gap: usize, part: Part) {
        let left = &mut self.gaps[gap];
        left.start += part.range.len;
        left.len -= part.range.len;
        if left.len == 0 {
            self.gaps.remove(gap);
        }
        match self.parts.last() {
            Some(last) if last.range.start > part.range.start => {
                let index = self.parts.partition_point(|other| other.range.start < part.range.start);
                self.parts.insert(index, part);
            }
            _ => self.parts.push(part),
        }
    }

    /// Reads the lease again; returns false if the broker is gone.
    fn renew<M: Memory>(&mut self, lease: &Lease<M>) -> bool {
        let Some(turn) = lease.read(self.used, &mut self.gaps, &mut self.counted) else { return false };
        self.turn = turn;
        // Ranges that the broker counted as placed, and that are not placed now, are free in addition to the
        // gaps.
        for part in &self.parts {
            if let Some(counted) = self.counted.get_mut(usize::from(part.entry))
                && *counted == part.range
            {
                *counted = Range::default();
            }
        }
        self.gaps.extend(self.counted.iter().filter(|range| range.len > 0));
        self.gaps.sort_unstable();
        self.gaps.dedup_by(|next, before| {
            let touches = next.start <= before.end();
            if touches {
                before.len = before.end().max(next.end()) - before.start;
            }
            touches
        });
        true
    }

    /// Finds a placed buffer by offset, from the last one: most often that is the one.
    fn find(&self, offset: u64) -> Option<usize> {
        match self.parts.last() {
            Some(part) if u64::from(part.range.start) == offset => Some(self.parts.len() - 1),
            _ => self.parts.binary_search_by_key(&offset, |part| part.range.start.into()).ok(),
        }
    }

    /// Marks the buffer at `offset` as delivered.
    pub(super) fn lend(&mut self, offset: u64, lent: Lent) {
        if let Some(index) = self.find(offset) {
            self.parts[index].lent = Some(lent);
        }
    }

    /// Length of the delivered buffer at `offset` and its work on return; `None` without such a buffer.
    pub(super) fn delivered(&self, offset: u64) -> Option<(u64, Lent)> {
        let part = &self.parts[self.find(offset)?];
        Some((part.range.len.into(), part.lent?))
    }

    /// Frees the buffer at `offset`. Nobody may read its bytes any more.
    pub(super) fn free<M: Memory>(&mut self, lease: &Lease<M>, offset: u64) {
        let Some(index) = self.find(offset) else { return };
        let Part { range, entry, .. } = self.parts[index];
        match index + 1 == self.parts.len() {
            true => drop(self.parts.pop()),
            false => drop(self.parts.remove(index)),
        }
        lease.give_back(entry);
        self.entries.push(entry);
        match &mut self.gaps[..] {
            [gap] if gap.start == range.end() => {
                gap.start = range.start;
                gap.len += range.len;
            }
            _ => self.add_gap(range),
        }
    }

    fn add_gap(&mut self, range: Range) {
        let index = self.gaps.partition_point(|gap| gap.start < range.start);
        let behind = self.gaps.get(index).is_some_and(|next| next.start == range.end());
        let before = index.checked_sub(1).filter(|before| self.gaps[*before].end() == range.start);
        match (before, behind) {
            (Some(before), true) => {
                self.gaps[before].len += range.len + self.gaps[index].len;
                self.gaps.remove(index);
            }
            (Some(before), false) => self.gaps[before].len += range.len,
            (None, true) => {
                self.gaps[index].start = range.start;
                self.gaps[index].len += range.len;
            }
            (None, false) => self.gaps.insert(index, range),
        }
    }

    /// Whether any payload of a call slot finds room, without reading the lease.
    pub(super) fn has_plenty(&self) -> bool {
        self.gaps.last().is_some_and(|gap| gap.len >= PLENTY) && self.entries.len() >= FEW_ENTRIES
    }

    /// Largest payload of a call slot that finds room, in bytes; at most [`PLENTY`].
    pub(super) fn room<M: Memory>(&mut self, lease: &Lease<M>) -> u32 {
        if !lease.is_of(self.turn) {
            self.renew(lease);
        }
        if self.entries.len() < FEW_ENTRIES {
            return 0;
        }
        self.gaps.iter().map(|gap| gap.len).max().unwrap_or(0).min(PLENTY)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::heap::HeapMemory;
    use crate::shm::lease::{self, AREA_MAX};

    /// A lease of the first 64 bytes.
    fn leased() -> (Lease<HeapMemory>, Placements) {
        let lease = Lease::at(HeapMemory::new(lease::SIZE), 0);
        lease.resume([Range { start: 0, len: 64 }].into_iter(), &[]);
        (lease, Placements::new())
    }

    #[test]
    fn buffers_take_the_smallest_gap_aligned_and_apart() {
        let (lease, mut placements) = leased();
        let place = |placements: &mut Placements, len| placements.place(&lease, len, Tag::default());
        assert_eq!(place(&mut placements, 0), Some(0));
        assert_eq!(place(&mut placements, 9), Some(8));
        assert_eq!(place(&mut placements, 32), Some(24));
        assert_eq!(place(&mut placements, 9), None, "8 bytes are left");
        assert_eq!(placements.delivered(8), None, "nobody has it");
        let lent = Lent { clear: true, node: Some(3) };
        placements.lend(8, lent);
        assert_eq!(placements.delivered(8), Some((16, lent)));
        placements.free(&lease, 8);
        assert_eq!(placements.delivered(8), None, "not twice");
        assert_eq!(place(&mut placements, 24), None, "the gaps have 16 and 8");
        assert_eq!(place(&mut placements, 8), Some(56), "the smallest gap");
        assert_eq!(place(&mut placements, 16), Some(8));
        assert_eq!(place(&mut placements, u64::MAX), None);
        for offset in [24, 0, 56, 8] {
            placements.free(&lease, offset);
        }
        assert_eq!(place(&mut placements, 64), Some(0), "all gaps are one again");
    }

    #[test]
    fn buffers_of_calls_to_a_node_are_found_by_its_tag() {
        let lease = Lease::at(HeapMemory::new(lease::SIZE), 0);
        let end = AREA_MAX as u32 - 8;
        lease.resume([Range { start: end, len: 8 }, Range { start: 0, len: 16 }].into_iter(), &[]);
        let mut placements = Placements::new();
        let count = |number| lease.tagged(Tag::of_node(number));
        for (number, offset) in [(Tag::NODES, end.into()), (6, 0), (0, 8)] {
            assert_eq!((count(number), count(1)), (0, 0), "{number}");
            assert_eq!(placements.place(&lease, 8, Tag::of_node(number)), Some(offset));
            assert_eq!((count(number), count(1)), (1, 0), "{number}");
        }
        assert_eq!(Tag::of_node(Tag::NODES + 1), Tag::default(), "no node has that");
        let mut placed = Vec::new();
        lease.placed(&mut placed);
        assert_eq!(placed, [end, 0, 8].map(|start| Range { start, len: 8 }));
        placements.free(&lease, 0);
        assert_eq!([Tag::NODES, 6, 0].map(count), [1, 0, 1]);
    }

    #[test]
    fn what_the_broker_takes_and_frees_changes_the_gaps() {
        let (lease, mut placements) = leased();
        let mut placed = Vec::new();
        assert_eq!(placements.place(&lease, 8, Tag::default()), Some(0));
        lease.suspend(&mut placed);
        assert_eq!(placed, [Range { start: 0, len: 8 }]);
        // Freed after the broker counted it.
        placements.free(&lease, 0);
        lease.resume([Range { start: 32, len: 32 }].into_iter(), &placed);
        assert_eq!(placements.place(&lease, 40, Tag::default()), None);
        assert_eq!(placements.room(&lease), 32);
        assert_eq!(placements.place(&lease, 8, Tag::default()), Some(0), "what it counted is free");
        assert_eq!(placements.place(&lease, 8, Tag::default()), Some(32));
        lease.suspend(&mut placed);
        assert_eq!(placed, [Range { start: 0, len: 8 }, Range { start: 32, len: 8 }]);
        lease.resume([Range { start: 8, len: 24 }, Range { start: 40, len: 24 }].into_iter(), &placed);
        placements.free(&lease, 0);
        assert_eq!(placements.place(&lease, 32, Tag::default()), Some(0));
    }

    #[test]
    fn without_an_entry_there_is_no_room() {
        let lease = Lease::at(HeapMemory::new(lease::SIZE), 0);
        lease.resume([Range { start: 0, len: 1 << 20 }].into_iter(), &[]);
        let mut placements = Placements::new();
        let mut placed = 0;
        while placements.place(&lease, 8, Tag::default()).is_some() {
            placed += 1;
            assert_eq!(placements.has_plenty(), placed <= ENTRIES - FEW_ENTRIES);
        }
        assert_eq!((placed, placements.room(&lease)), (ENTRIES, 0));
    }
}
