//! Deliberate faults of one case's server, so that tests of this tool see them detected.
//! Not here: committing them (`crate::measure::echo`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Kind of a server's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// Die by a signal in the middle of the run.
    KillServer,
    /// Stop answering in the middle of the run.
    HangServer,
    /// Change one byte of every reply.
    CorruptReply,
    /// Compute for a millisecond before every reply.
    SlowServer,
}

impl FaultKind {
    const ALL: [Self; 4] = [Self::KillServer, Self::HangServer, Self::CorruptReply, Self::SlowServer];

    /// Returns its typed form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KillServer => "kill-server",
            Self::HangServer => "hang-server",
            Self::CorruptReply => "corrupt-reply",
            Self::SlowServer => "slow-server",
        }
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("no fault named {text:?}; there are {}", names()))
    }
}

/// A fault and its case; typed `kill-server=BM_sendVec_binder/64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Full name of the case.
    pub case: String,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, case) = text.split_once('=').ok_or("a fault is typed KIND=CASE")?;
        Ok(Self { kind: kind.parse()?, case: case.to_owned() })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.name(), self.case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_back_as_typed() {
        for kind in FaultKind::ALL {
            let fault = Fault { kind, case: "BM_sendVec_pipe/4".to_owned() };
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert!("kill-server".parse::<Fault>().is_err());
        assert!("nothing=BM_x/4".parse::<Fault>().is_err());
    }
}
