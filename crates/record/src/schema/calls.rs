//! Calls by the class of their caller: which classes there are, percentiles of one, a call that missed its deadline.
//! Not here: what else is known of a class's calls (`super::latency`).

use super::placed::PlacedMedians;
use serde::{Deserialize, Serialize};

/// The class of a caller; an iteration has a call of each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The thread of normal priority, `SCHED_OTHER`.
    Other,
    /// The real-time thread, `SCHED_FIFO` at the highest priority.
    Fifo,
}

impl Class {
    /// Both classes, in the order of an iteration.
    pub const BOTH: [Class; 2] = [Class::Fifo, Class::Other];

    /// The word used in documents, names of cases and tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Other => "other",
            Class::Fifo => "fifo",
        }
    }
}

/// Exact nearest-rank percentiles of all samples, in clock units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// 50th percentile.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
}

impl Percentiles {
    /// The percentiles of these samples, which it sorts; `None` without samples.
    pub fn of(samples: &mut [u64]) -> Option<Percentiles> {
        samples.sort_unstable();
        let at = |percent| units::percentile(samples, percent);
        Some(Percentiles { p50: at(50.0)?, p90: at(90.0)?, p95: at(95.0)?, p99: at(99.0)? })
    }
}

/// Percentiles over all pairs, which cannot be computed from those of each pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTotals {
    /// The class of the callers.
    pub class: Class,
    /// Exact percentiles of the times of all pairs, including calls of failed pairs before the failure.
    pub percentiles: Percentiles,
    /// Medians by placement; `None` in older records.
    #[serde(default)]
    pub placed: Option<PlacedMedians>,
}

/// A missed deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Index of the pair.
    pub pair: u32,
    /// The class of the caller.
    pub class: Class,
    /// The iteration, from 0.
    pub iteration: u64,
    /// The time that the call took, in clock units.
    pub took: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank_and_exact() {
        let mut samples: Vec<u64> = (1..=5000).rev().map(|n| n * 1001).collect();
        let wanted = [2500, 4500, 4750, 4950].map(|n| n * 1001);
        let found = Percentiles::of(&mut samples).expect("there are samples");
        assert_eq!([found.p50, found.p90, found.p95, found.p99], wanted);
        let one = Percentiles::of(&mut [7]).expect("there is one");
        assert_eq!([one.p50, one.p90, one.p95, one.p99], [7; 4]);
        let three = Percentiles::of(&mut [30, 10, 20]).expect("there are three");
        assert_eq!([three.p50, three.p90, three.p95, three.p99], [20, 30, 30, 30]);
        assert_eq!(Percentiles::of(&mut []), None);
    }
}
