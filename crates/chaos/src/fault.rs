//! Faults of one member, which prove that each check can fail.
//! Not here: committing them (`member`).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A fault of the member with index 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Replies with wrong bytes.
    WrongBytes,
    /// Puts other bytes into a file than announced.
    WrongFile,
    /// Does not count an arrived oneway call.
    DropOneway,
    /// Counts a oneway call twice.
    RepeatOneway,
    /// Leaks the buffer of a reply.
    LeakBuffer,
    /// Leaks a received descriptor.
    LeakFd,
    /// Leaks a received object.
    LeakObject,
    /// Does not reply.
    Hang,
    /// Reports a refused call to a living process.
    FalseRefusal,
    /// Cancels a death registration that it should keep.
    LoseDeath,
    /// Reports the death of a living process.
    FalseDeath,
    /// Makes visits that call nobody and wait for the answer.
    MuteVisit,
    /// Counts a call as refused for a freeze, while nobody is frozen.
    FalseFreeze,
    /// Exits.
    Vanish,
    /// Writes a line to the kernel's log that reads as a fault of the kernel.
    LogABug,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        serde_json::from_value(text.into()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_dashes_and_an_unknown_one_is_answered_with_all() {
        assert_eq!("wrong-bytes".parse(), Ok(Fault::WrongBytes));
        assert!("burn".parse::<Fault>().expect_err("unknown").contains("leak-fd"));
    }
}
