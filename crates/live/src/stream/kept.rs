//! The newest pages of all CPUs, within a limit.
//! Not here: their content.

use std::collections::VecDeque;

/// Pages by the order in which they came.
#[derive(Debug)]
pub(super) struct Kept {
    most: usize,
    bytes: usize,
    batches: VecDeque<(u32, Vec<u8>)>,
}

impl Kept {
    /// Room for this many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { most, bytes: 0, batches: VecDeque::new() }
    }

    /// Adds pages; the oldest ones leave, and those that have no room at all are not kept.
    pub(super) fn add(&mut self, cpu: u32, pages: &[u8]) {
        if pages.is_empty() || pages.len() > self.most {
            return;
        }
        self.bytes += pages.len();
        self.batches.push_back((cpu, pages.to_vec()));
        while self.bytes > self.most
            && let Some((_, gone)) = self.batches.pop_front()
        {
            self.bytes -= gone.len();
        }
    }

    /// The pages, oldest first.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.batches.iter().map(|(cpu, pages)| (*cpu, pages.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pages_stay_within_the_limit() {
        let mut kept = Kept::new(10);
        for (cpu, pages) in [(0, &b"aaaa"[..]), (1, b"bbbb"), (0, b""), (0, b"eleven bytes"), (1, b"cc")] {
            kept.add(cpu, pages);
        }
        let there = |kept: &Kept| kept.pages().map(|(cpu, pages)| (cpu, pages.to_vec())).collect::<Vec<_>>();
        assert_eq!(there(&kept), [(0, b"aaaa".to_vec()), (1, b"bbbb".to_vec()), (1, b"cc".to_vec())]);
        kept.add(0, b"d");
        assert_eq!(there(&kept), [(1, b"bbbb".to_vec()), (1, b"cc".to_vec()), (0, b"d".to_vec())]);
        let mut none = Kept::new(0);
        none.add(0, b"a");
        assert!(there(&none).is_empty());
    }
}
