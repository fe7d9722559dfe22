//! Blocks of consecutive calls: the unit of the statistics.
//! Not here: tests on their values (`judge`).
//!
//! Calls that follow each other are alike: one load, one state of a queue or a cache holds for many of them. Taken one
//! by one they make intervals far too narrow. Figures of long blocks are nearly independent (the method of batch means;
//! Law, "Simulation Modeling and Analysis", chapter 9). All blocks of a row have one size, in both traces, so that
//! their figures have one distribution if the calls have.

use std::ops::Range;

/// Fewest calls of a trace that are judged.
pub(crate) const LEAST_CALLS: usize = 30;
/// Blocks into which the trace with fewer calls is cut, if it has enough of them.
const BLOCKS: usize = 20;
/// Fewest calls of a block.
const LEAST_SIZE: usize = 3;
/// Maximum number of blocks of a trace; of more, these are taken at equal distances.
const MOST_BLOCKS: usize = 2 * BLOCKS;

/// Blocks of both traces, of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) a: Vec<Range<usize>>,
    pub(crate) b: Vec<Range<usize>>,
    pub(crate) size: usize,
}

impl Blocks {
    /// Blocks for so many calls of each trace; `None` if one has too few.
    pub(crate) fn of(a: usize, b: usize) -> Option<Self> {
        let fewer = a.min(b);
        if fewer < LEAST_CALLS {
            return None;
        }
        let size = (fewer / BLOCKS).max(LEAST_SIZE);
        Some(Self { a: cut(a, size, MOST_BLOCKS), b: cut(b, size, MOST_BLOCKS), size })
    }

    /// The least p-value of a rank test of these blocks.
    pub(crate) fn least_p(&self) -> f64 {
        let (m, n) = (self.a.len(), self.b.len());
        let ways: f64 = (1..=m).map(|at| (n + at) as f64 / at as f64).product();
        2.0 / ways
    }

    /// Number of blocks of the trace that has fewer.
    pub(crate) fn fewest(&self) -> usize {
        self.a.len().min(self.b.len())
    }
}

/// Returns blocks of `size` calls, at most `most` of them, spread evenly.
pub(crate) fn cut(calls: usize, size: usize, most: usize) -> Vec<Range<usize>> {
    let all = calls / size;
    let taken = all.min(most);
    (0..taken).map(|at| at * all / taken * size).map(|begin| begin..begin + size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_one_size_and_do_not_overlap() {
        assert_eq!(Blocks::of(29, 1000), None);
        for (a, b, size, of_a, of_b) in
            [(30, 30, 3, 10, 10), (100, 100, 5, 20, 20), (100, 10_000, 5, 20, 40), (1000, 1900, 50, 20, 38)]
        {
            let blocks = Blocks::of(a, b).expect("enough calls");
            assert_eq!((blocks.size, blocks.a.len(), blocks.b.len()), (size, of_a, of_b), "{a} and {b}");
            for (calls, ranges) in [(a, &blocks.a), (b, &blocks.b)] {
                assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                assert!(ranges.iter().all(|range| range.len() == size && range.end <= calls));
                // The whole trace is looked at.
                assert!(ranges.last().expect("some").end + 2 * size + calls / 20 > calls);
            }
        }
    }

    #[test]
    fn ten_blocks_can_tell_many_rows() {
        let least = Blocks::of(30, 30).expect("enough calls").least_p();
        assert!((least - 2.0 / 184_756.0).abs() < 1e-12, "{least}");
    }
}
