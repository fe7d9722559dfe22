//! Room: where in a process's receiving area each buffer lies: best fit, neighbours joined again,
//! the budget of oneway calls and the watch for senders that eat it up.
//! Not here: what is in the buffers (`buffer`), the memory (the shell).
//! Facts: contract BUF-01 to BUF-04, OW-06 to OW-08. Every operation takes O(log n).

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// All offsets and lengths are multiples of this.
pub const ALIGN: u64 = 8;

/// Most bytes of an area that are used (contract OPN-06).
pub const SIZE_MAX: usize = 4 << 20;

const PAGE: u64 = 4096;

/// A sender with more unfreed oneway buffers than this is suspected once the budget is low.
const SUSPECT_BUFFERS: u64 = 50;

/// There is no gap of that length, or the budget for oneway calls is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace;

/// A buffer that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where it begins.
    pub offset: u64,
    /// Its sender floods the area, and has not been reported since the budget was last fine.
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

/// The places of one area.
#[derive(Debug)]
pub struct Arena {
    size: u64,
    used: BTreeMap<u64, Used>,
    gaps: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    oneway_free: u64,
    shares: HashMap<u32, Share>,
    reported: bool,
    /// Where the furthest buffer ever ended.
    high: u64,
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
        };
        if size > 0 {
            arena.add_gap(0, size);
        }
        arena
    }

    /// Takes the smallest gap that fits, at its low end. An empty buffer takes [`ALIGN`] bytes, so
    /// that its place is its own (contract TX-24).
    ///
    /// # Errors
    /// [`NoSpace`]; nothing has changed then.
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

    /// Whether [`Self::alloc`] would find room now.
    #[must_use]
    pub fn fits(&self, len: u64, oneway: bool) -> bool {
        self.gap_for(len, oneway).is_ok()
    }

    /// The length in whole units, and the gap's length and place.
    fn gap_for(&self, len: u64, oneway: bool) -> Result<(u64, u64, u64), NoSpace> {
        let len = len.max(1).checked_next_multiple_of(ALIGN).ok_or(NoSpace)?;
        if oneway && self.oneway_free < len {
            return Err(NoSpace);
        }
        let (gap, offset) = self.by_length.range((len, 0)..).next().copied().ok_or(NoSpace)?;
        Ok((len, gap, offset))
    }

    /// Gives a buffer back; its length, `None` if none begins there.
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

    /// Bytes that are used at most.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that oneway calls may still take.
    #[must_use]
    pub fn oneway_free(&self) -> u64 {
        self.oneway_free
    }

    /// Pages below buffers, pages that once had one, and the rest.
    #[must_use]
    pub fn pages(&self) -> (u64, u64, u64) {
        let (mut active, mut counted) = (0, 0);
        for (offset, used) in &self.used {
            let (first, end) = ((offset / PAGE).max(counted), (offset + used.len).div_ceil(PAGE));
            active += end.saturating_sub(first);
            counted = counted.max(end);
        }
        let touched = self.high.div_ceil(PAGE);
        (active, touched - active, self.size.div_ceil(PAGE) - touched)
    }

    /// How many buffers there are.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.used.len()
    }

    /// Charges a oneway buffer; whether its sender is to be reported for what it had before. The first
    /// buffer taken while the budget is fine makes a new report possible.
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

    fn add_gap(&mut self, offset: u64, len: u64) {
        self.gaps.insert(offset, len);
        self.by_length.insert((len, offset));
    }

    fn remove_gap(&mut self, offset: u64, len: u64) {
        self.gaps.remove(&offset);
        self.by_length.remove(&(len, offset));
    }
}
