//! CPU placement of the two sides of a case.
//! Not here: applying it (`crate::servers`).

use std::fmt;
use std::str::FromStr;

/// CPU placement of the two sides of every case, test and controls alike, so that ratios compare like with
/// like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The scheduler's choice; two CPUs for spinning cases, and one CPU for all others on an emulated
    /// machine.
    #[default]
    Default,
    /// On one CPU.
    Same,
    /// On two CPUs.
    Cross,
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            "same" => Ok(Self::Same),
            "cross" => Ok(Self::Cross),
            _ => Err(format!("no placement {text:?}; use default, same or cross")),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Same => "same",
            Self::Cross => "cross",
        })
    }
}
