//! Cost of reading the clock, which every sample contains.
//! Not here: subtracting it; no result does that.

use record::stats;
use sys::clock::monotonic_ns;

/// Cost and resolution of the clock, in its units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Mean cost of a pair of readings, as contained in each sample. The median over groups, so that a single
    /// interrupt has no effect.
    pub read_cost: Option<f64>,
    /// Smallest step observed.
    pub resolution: Option<u64>,
}

const GROUPS: usize = 21;
const PAIRS: u64 = 200;

/// Reads the clock some thousand times.
#[must_use]
pub fn overhead() -> Overhead {
    let mut resolution: Option<u64> = None;
    let mut groups = Vec::with_capacity(GROUPS);
    for _ in 0..GROUPS {
        let mut sum = 0;
        for _ in 0..PAIRS {
            let start = monotonic_ns();
            let step = monotonic_ns() - start;
            sum += step;
            if step > 0 {
                resolution = Some(resolution.map_or(step, |least| least.min(step)));
            }
        }
        groups.push(sum as f64 / PAIRS as f64);
    }
    Overhead { read_cost: stats::median(&groups), resolution }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_the_clock_costs_something_and_the_clock_moves() {
        let overhead = overhead();
        assert!(overhead.read_cost.expect("measured") > 0.0);
        assert!(overhead.resolution.expect("moves") > 0);
    }
}
