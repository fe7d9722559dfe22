//! Room: how much of what happened.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Calls,
    Nested,
    Oneways,
    Objects,
    Descriptors,
    Deaths,
    Refused,
}

const NAMES: [&str; 7] = ["calls", "nested", "oneways", "objects", "descriptors", "deaths", "refused"];

/// One process's counters; those of a killed process are what it last told.
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

/// Counts at one moment. Each of a nested chain's calls is a call, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u64; NAMES.len()]);

impl Tally {
    /// The numbers for the line that tells them.
    pub(super) fn words(&self) -> String {
        self.0.map(|count| count.to_string()).join(" ")
    }
}

impl FromStr for Tally {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let counts: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
        let counts = counts.and_then(|counts| counts.try_into().ok());
        counts.map(Self).ok_or_else(|| format!("strange counts: {text:?}"))
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
    fn counts_add_up_and_survive_their_line() {
        let counters = Counters::default();
        counters.add(Count::Calls);
        counters.add(Count::Refused);
        let mut tally: Tally = counters.tally().words().parse().expect("its own words");
        tally += counters.tally();
        let text = tally.to_string();
        assert!(text.starts_with("calls 2, nested 0") && text.ends_with("refused 2"), "{text}");
        assert!("1 2".parse::<Tally>().is_err() && "".parse::<Tally>().is_err());
    }
}
