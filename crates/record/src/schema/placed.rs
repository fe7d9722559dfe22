//! Medians of calls by placement: both sides on one CPU, or on two.
//! Not here: the figures of a class (`latency`).

use serde::{Deserialize, Serialize};

/// Medians of the calls of a class by placement, and how many calls had which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedMedians {
    /// Calls of the class.
    pub calls: u64,
    /// Calls that began, were served and ended on one CPU.
    pub same_cpu: u64,
    /// Median of those calls, in clock units.
    pub p50_same: Option<u64>,
    /// Median of the other calls, in clock units.
    pub p50_apart: Option<u64>,
}

/// Where the two sides of most calls were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On one CPU.
    Same,
    /// On two CPUs.
    Apart,
}

impl PlacedMedians {
    /// The placement of at least two thirds of the calls, with their median; `None` if neither has so many.
    #[must_use]
    pub fn usual(&self) -> Option<(Side, u64)> {
        let apart = self.calls.checked_sub(self.same_cpu)?;
        let most = |count: u64| count > 0 && count.saturating_mul(3) >= self.calls.saturating_mul(2);
        if most(self.same_cpu) {
            return Some((Side::Same, self.p50_same?));
        }
        most(apart).then_some(Side::Apart).zip(self.p50_apart)
    }

    /// Share of the calls whose two sides were on one CPU, in percent.
    #[must_use]
    pub fn same_percent(&self) -> f64 {
        self.same_cpu as f64 * 100.0 / self.calls.max(1) as f64
    }
}
