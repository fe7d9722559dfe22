//! Index of a trace: where the bundles of each CPU and the slices of each writer are.

/// Block number of bytes that are not compressed.
pub(super) const PLAIN: u32 = u32::MAX;

/// Bytes in the file, or in a compressed block of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Offset in the file, or in the block's content.
    pub(super) at: u64,
    /// Length in bytes.
    pub(super) len: u32,
    /// Compressed block; [`PLAIN`] if none.
    pub(super) block: u32,
}

/// Compressed bytes in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) form: Form,
}

/// Form of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Zlib,
    Zstd,
}

/// Event bundle of a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bundle {
    pub(super) place: Place,
    /// Generation of its kernel symbols; the highest bit says that events before it are missing.
    marks: u32,
}

const LOST: u32 = 1 << 31;

impl Bundle {
    pub(super) fn new(place: Place, symbols: u32, lost: bool) -> Self {
        Self { place, marks: symbols & !LOST | if lost { LOST } else { 0 } }
    }

    pub(super) fn symbols(&self) -> u32 {
        self.marks & !LOST
    }

    pub(super) fn is_behind_a_gap(&self) -> bool {
        self.marks & LOST != 0
    }
}

/// Bundles of one CPU in the order of the file, which is that of time. Traces that were joined may give a CPU several
/// lists.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuBundles {
    pub(super) cpu: u32,
    pub(super) bundles: Vec<Bundle>,
    /// First time of the last bundle.
    pub(super) last: u64,
    /// Number of losses of its writer when the last bundle was met.
    pub(super) losses: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_small() {
        // A trace of 2 GB has a quarter of a million of them.
        assert!(size_of::<Bundle>() <= 24, "{} bytes", size_of::<Bundle>());
        let place = Place { at: 1, len: 2, block: PLAIN };
        let (whole, gap) = (Bundle::new(place, 7, false), Bundle::new(place, 7, true));
        assert_eq!((whole.symbols(), gap.symbols()), (7, 7));
        assert!(gap.is_behind_a_gap() && !whole.is_behind_a_gap());
    }
}
