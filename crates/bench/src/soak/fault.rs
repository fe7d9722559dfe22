//! Deliberate faults of a soak, which let its verdict be seen failing; their typed form.
//! Not here: committing them (`resident`, the embedded driver's broker), those of a latency test (`crate::latency`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::latency::Injected;

/// Largest number of a fault.
const MOST: u64 = 1_000_000;
/// Longest delay, in us.
const LONGEST_US: u64 = 1_000_000;

/// One fault. Typed `leak-broker`, `leak-nodes=N`, `leak-buffers=N`, `leak-memory=KIB`, `leak-descriptors=N`,
/// `slow-down=NS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SoakFault {
    /// The embedded driver's broker keeps the nodes of processes that ended.
    LeakBroker,
    /// The service registers so many objects more in each turn, and keeps them.
    LeakNodes(u64),
    /// The service keeps the buffers of so many replies in each turn.
    LeakBuffers(u64),
    /// The service keeps so many KiB of memory in each turn.
    LeakMemory(u64),
    /// The service keeps so many descriptors in each turn.
    LeakDescriptors(u64),
    /// The services of latency tests sleep so many ns longer with each turn, in whole us.
    SlowDown(u64),
}

impl SoakFault {
    /// Typed forms of the faults.
    pub const WORDS: &'static str =
        "leak-broker, leak-nodes=N, leak-buffers=N, leak-memory=KIB, leak-descriptors=N, slow-down=NS";

    /// The delay of latency tests in the turn of this number.
    pub(super) fn delay(self, turn: u64) -> Option<Injected> {
        let Self::SlowDown(ns) = self else { return None };
        Some(Injected::StallServer { us: (ns.saturating_mul(turn) / 1000).min(LONGEST_US) })
    }
}

impl FromStr for SoakFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('=').map_or((text, None), |(kind, value)| (kind, Some(value)));
        let of: fn(u64) -> Self = match (kind, value) {
            ("leak-broker", None) => return Ok(Self::LeakBroker),
            ("leak-nodes", Some(_)) => Self::LeakNodes,
            ("leak-buffers", Some(_)) => Self::LeakBuffers,
            ("leak-memory", Some(_)) => Self::LeakMemory,
            ("leak-descriptors", Some(_)) => Self::LeakDescriptors,
            ("slow-down", Some(_)) => Self::SlowDown,
            _ => return Err(format!("no fault {text:?} of a soak; there are {}", Self::WORDS)),
        };
        let number = value.and_then(|value| value.parse().ok()).filter(|number| (1..=MOST).contains(number));
        number.map(of).ok_or_else(|| format!("{text:?} has no number from 1 to {MOST}"))
    }
}

impl fmt::Display for SoakFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeakBroker => f.write_str("leak-broker"),
            Self::LeakNodes(number) => write!(f, "leak-nodes={number}"),
            Self::LeakBuffers(number) => write!(f, "leak-buffers={number}"),
            Self::LeakMemory(kib) => write!(f, "leak-memory={kib}"),
            Self::LeakDescriptors(number) => write!(f, "leak-descriptors={number}"),
            Self::SlowDown(ns) => write!(f, "slow-down={ns}"),
        }
    }
}

/// A fault of either sort.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A fault of a latency test.
    Test(Injected),
    /// A fault of a soak.
    Soak(SoakFault),
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), text.parse()) {
            (Ok(fault), _) => Ok(Self::Test(fault)),
            (_, Ok(fault)) => Ok(Self::Soak(fault)),
            (Err(why), Err(_)) => Err(format!("{why}; of a soak {}", SoakFault::WORDS)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test(fault) => fault.fmt(f),
            Self::Soak(fault) => fault.fmt(f),
        }
    }
}

/// Those of latency tests.
pub fn of_tests(faults: &[Fault]) -> impl Iterator<Item = Injected> {
    faults.iter().filter_map(|fault| if let Fault::Test(fault) = fault { Some(*fault) } else { None })
}

/// Those of a soak.
pub fn of_soak(faults: &[Fault]) -> impl Iterator<Item = SoakFault> {
    faults.iter().filter_map(|fault| if let Fault::Soak(fault) = fault { Some(*fault) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_back_as_typed_and_nonsense_is_refused() {
        for word in SoakFault::WORDS.split(", ") {
            let word = word.replace("=NS", "=20").replace("=N", "=3").replace("=KIB", "=64");
            assert_eq!(word.parse::<SoakFault>().expect(&word).to_string(), word);
        }
        for bad in
            ["", "leak", "leak-broker=1", "leak-nodes", "leak-nodes=0", "slow-down=x", "slow-down=9999999"]
        {
            assert!(bad.parse::<SoakFault>().is_err(), "{bad}");
        }
        assert_eq!(SoakFault::SlowDown(500).delay(3), Some(Injected::StallServer { us: 1 }));
        assert_eq!(SoakFault::LeakBroker.delay(3), None);
    }
}
