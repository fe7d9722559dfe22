//! The faults of `--inject`: of latency tests, and of a soak.
//! Not here: what they do (`bench::latency`, `bench::soak`).

use std::fmt;
use std::str::FromStr;

use bench::latency::Injected;
use bench::soak::fault::SoakFault;

use crate::cli::{Failure, exit};

/// A fault of either sort.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Test(Injected),
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
pub(super) fn of_tests(faults: &[Fault]) -> impl Iterator<Item = Injected> {
    faults.iter().filter_map(|fault| if let Fault::Test(fault) = fault { Some(*fault) } else { None })
}

/// Those of a soak.
pub(super) fn of_soak(faults: &[Fault]) -> impl Iterator<Item = SoakFault> {
    faults.iter().filter_map(|fault| if let Fault::Soak(fault) = fault { Some(*fault) } else { None })
}

/// Refuses the faults of a soak.
pub(super) fn refuse_of_soak(faults: &[Fault]) -> Result<(), Failure> {
    let refused = |fault| Err(Failure::new(exit::USAGE, format_args!("--inject {fault} needs --soak TIME")));
    of_soak(faults).next().map_or(Ok(()), refused)
}
