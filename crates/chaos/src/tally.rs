//! Counts of the test's operations.

use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A counted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Calls,
    Nested,
    Oneways,
    Objects,
    Descriptors,
    Deaths,
    Visits,
    Frozen,
    Refused,
}

const NAMES: [&str; 9] =
    ["calls", "nested", "oneways", "objects", "descriptors", "deaths", "visits", "frozen", "refused"];

/// A process's counters. For a killed process the last reported values count.
#[derive(Debug, Default)]
pub(super) struct Counters([AtomicU64; NAMES.len()]);

impl Counters {
    pub(super) fn add(&self, what: Count) {
        self.0[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn tally(&self) -> Tally {
        Tally(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

/// Counts at one moment. Each call of a nested chain also counts as a call, and each attempt to call a frozen process as
/// frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally([u64; NAMES.len()]);

impl Tally {
    /// One count.
    pub(super) fn of(self, what: Count) -> u64 {
        self.0[what as usize]
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> =
            NAMES.iter().zip(self.0).map(|(name, count)| format!("{name} {count}")).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let counters = Counters::default();
        counters.add(Count::Calls);
        counters.add(Count::Refused);
        let mut tally = counters.tally();
        tally += counters.tally();
        let text = tally.to_string();
        assert!(text.starts_with("calls 2, nested 0") && text.ends_with("refused 2"), "{text}");
    }
}
