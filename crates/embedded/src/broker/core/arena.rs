//! Allocator of buffers in a process's receiving area: best fit with coalescing, the budget of oneway calls, and
//! detection of senders that flood it.
//! Not here: content of the buffers (`buffer`), the memory (`broker::memory`).
//! Facts: contract BUF-01 to BUF-04, OW-06 to OW-08. Every operation takes O(log n).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::shm::lease::{self, Range};

/// All offsets and lengths are multiples of this.
pub const ALIGN: u64 = 8;

/// Most bytes of an area that are used (contract OPN-06).
pub const SIZE_MAX: usize = lease::AREA_MAX;

/// Unfreed oneway buffers above which a sender is suspected once the budget is low.
const SUSPECT_BUFFERS: u64 = 50;

/// Error: no gap of that length, or the oneway budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace;

/// An allocated buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Offset of the buffer.
    pub offset: u64,
    /// The sender floods the area, and has not been reported since the budget was last sufficient.
    pub suspect: bool,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    len: u64,
    /// The sender's pid if it is charged to the budget of oneway calls.
    oneway_of: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    buffers: u64,
    bytes: u64,
}

/// Allocator of one receiving area.
#[derive(Clone, Debug)]
pub struct Arena {
    size: u64,
    used: BTreeMap<u64, Used>,
    gaps: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    oneway_free: u64,
    shares: HashMap<u32, Share>,
    reported: bool,
    /// Highest end of any buffer so far.
    high: u64,
    /// Buffers that the owner placed itself, by entry of its lease.
    placed: Vec<Range>,
}

impl Arena {
    /// An area of `size` bytes, of which at most [`SIZE_MAX`] are used.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let size = size.min(SIZE_MAX) as u64 / ALIGN * ALIGN;
        let mut arena = Self {
            size,
            used: BTreeMap::new(),
            gaps: BTreeMap::new(),
            by_length: BTreeSet::new(),
            oneway_free: size / 2,
            shares: HashMap::new(),
            reported: false,
            high: 0,
            placed: Vec::new(),
        };
        if size > 0 {
            arena.add_gap(0, size);
        }
        arena
    }

    /// Allocates at the low end of the smallest gap that fits. An empty buffer takes [`ALIGN`] bytes, so that its
    /// offset is unique (contract TX-24).
    ///
    /// # Errors
    /// [`NoSpace`]; nothing is changed.
    pub fn alloc(&mut self, len: u64, oneway: bool, sender: u32) -> Result<Taken, NoSpace> {
        let (len, gap, offset) = self.gap_for(len, oneway)?;
        self.remove_gap(offset, gap);
        if gap > len {
            self.add_gap(offset + len, gap - len);
        }
        self.high = self.high.max(offset + len);
        self.used.insert(offset, Used { len, oneway_of: oneway.then_some(sender) });
        let suspect = oneway && self.charge(len, sender);
        Ok(Taken { offset, suspect })
    }

    /// Whether [`Self::alloc`] would succeed now.
    #[must_use]
    pub fn fits(&self, len: u64, oneway: bool) -> bool {
        self.gap_for(len, oneway).is_ok()
    }

    /// The rounded length, and the gap's length and offset.
    fn gap_for(&self, len: u64, oneway: bool) -> Result<(u64, u64, u64), NoSpace> {
        let len = len.max(1).checked_next_multiple_of(ALIGN).ok_or(NoSpace)?;
        if oneway && self.oneway_free < len {
            return Err(NoSpace);
        }
        let (gap, offset) = self.by_length.range((len, 0)..).next().copied().ok_or(NoSpace)?;
        Ok((len, gap, offset))
    }

    /// Frees a buffer and returns its length; `None` if no buffer begins there.
    pub fn free(&mut self, offset: u64) -> Option<u64> {
        let Used { len, oneway_of } = self.used.remove(&offset)?;
        if let Some(sender) = oneway_of {
            self.refund(len, sender);
        }
        let (mut start, mut end) = (offset, offset + len);
        if let Some((&before, &length)) = self.gaps.range(..offset).next_back()
            && before + length == offset
        {
            self.remove_gap(before, length);
            start = before;
        }
        if let Some(&length) = self.gaps.get(&end) {
            self.remove_gap(end, length);
            end += length;
        }
        self.add_gap(start, end - start);
        Some(len)
    }

    /// Length of the buffer that begins at this offset.
    #[must_use]
    pub fn len_of(&self, offset: u64) -> Option<u64> {
        self.used.get(&offset).map(|used| used.len)
    }

    /// Size of the usable area, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes left in the oneway budget.
    #[must_use]
    pub fn oneway_free(&self) -> u64 {
        self.oneway_free
    }

    /// Number of pages with buffers, pages that had buffers before, and other pages.
    #[must_use]
    pub fn pages(&self) -> (u64, u64, u64) {
        let page = sys::page::size() as u64;
        let (mut active, mut counted) = (0, 0);
        for (offset, used) in &self.used {
            let (first, end) = ((offset / page).max(counted), (offset + used.len).div_ceil(page));
            active += end.saturating_sub(first);
            counted = counted.max(end);
        }
        let touched = self.high.div_ceil(page);
        (active, touched - active, self.size.div_ceil(page) - touched)
    }

    /// Number of buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.used.len()
    }

    /// Charges a oneway buffer to the budget. Returns whether to report its sender for earlier buffers. The first
    /// buffer taken while the budget is sufficient permits a new report.
    fn charge(&mut self, len: u64, sender: u32) -> bool {
        self.oneway_free -= len;
        let share = self.shares.entry(sender).or_default();
        let floods = share.buffers > SUSPECT_BUFFERS || share.bytes > self.size / 4;
        share.buffers += 1;
        share.bytes += len;
        if self.oneway_free >= self.size / 10 {
            self.reported = false;
            return false;
        }
        floods && !std::mem::replace(&mut self.reported, true)
    }

    fn refund(&mut self, len: u64, sender: u32) {
        self.oneway_free += len;
        if let Some(share) = self.shares.get_mut(&sender) {
            share.buffers -= 1;
            share.bytes -= len;
            if share.buffers == 0 {
                self.shares.remove(&sender);
            }
        }
    }

    /// Counts ranges that the owner has placed itself as used, by entry of its lease, and ranges that it has
    /// released as free. A range that overlaps anything is not counted: the owner is reclaiming it at this moment.
    pub fn count_placed(&mut self, placed: &[Range]) {
        let before = std::mem::take(&mut self.placed);
        for (entry, range) in before.iter().enumerate().filter(|(_, range)| range.len > 0) {
            if placed.get(entry) != Some(range) {
                self.free(range.start.into());
            }
        }
        let mut counted = Vec::with_capacity(placed.len());
        for (entry, range) in placed.iter().enumerate() {
            let known = before.get(entry) == Some(range);
            let there = range.len > 0 && (known || self.reserve(range.start.into(), range.len.into()));
            counted.push(if there { *range } else { Range::default() });
        }
        self.placed = counted;
    }

    /// Ranges that count as placed by the owner, by entry of its lease.
    #[must_use]
    pub fn placed(&self) -> &[Range] {
        &self.placed
    }

    /// The gaps, or the largest of them.
    pub fn largest_gaps(&self, most: usize) -> impl Iterator<Item = Range> {
        let range = |(len, start): &(u64, u64)| Range { start: *start as u32, len: *len as u32 };
        self.by_length.iter().rev().take(most).map(range)
    }

    /// Allocates a given range; false if a part of it is used.
    fn reserve(&mut self, offset: u64, len: u64) -> bool {
        let aligned = offset.is_multiple_of(ALIGN) && len.is_multiple_of(ALIGN);
        let Some((&start, &gap)) = self.gaps.range(..=offset).next_back().filter(|_| aligned) else {
            return false;
        };
        let (end, behind) = (offset + len, start + gap);
        if end > behind {
            return false;
        }
        self.remove_gap(start, gap);
        if offset > start {
            self.add_gap(start, offset - start);
        }
        if behind > end {
            self.add_gap(end, behind - end);
        }
        self.high = self.high.max(end);
        self.used.insert(offset, Used { len, oneway_of: None });
        true
    }

    fn add_gap(&mut self, offset: u64, len: u64) {
        self.gaps.insert(offset, len);
        self.by_length.insert((len, offset));
    }

    fn remove_gap(&mut self, offset: u64, len: u64) {
        self.gaps.remove(&offset);
        self.by_length.remove(&(len, offset));
    }
}
