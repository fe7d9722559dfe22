//! Room: faults of one process of the test, to prove that each check can fail.
//! Not here: committing them (`member`).

use std::fmt;
use std::str::FromStr;

/// What the process at place 0 does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers other bytes than it should.
    WrongBytes,
    /// It puts other bytes into a descriptor's file than it says.
    WrongFile,
    /// It does not count a oneway call that arrived.
    DropOneway,
    /// It counts a oneway call twice.
    RepeatOneway,
    /// It keeps the buffer of a reply.
    LeakBuffer,
    /// It keeps a descriptor that it got.
    LeakFd,
    /// It keeps an object that it got.
    LeakObject,
    /// It does not answer.
    Hang,
    /// It says that a living process refused its call.
    FalseRefusal,
    /// It takes back a death registration that it should keep.
    LoseDeath,
    /// It says that a living process has died.
    FalseDeath,
    /// It ends.
    Vanish,
}

const NAMES: [(&str, Fault); 12] = [
    ("wrong-bytes", Fault::WrongBytes),
    ("wrong-file", Fault::WrongFile),
    ("drop-oneway", Fault::DropOneway),
    ("repeat-oneway", Fault::RepeatOneway),
    ("leak-buffer", Fault::LeakBuffer),
    ("leak-fd", Fault::LeakFd),
    ("leak-object", Fault::LeakObject),
    ("hang", Fault::Hang),
    ("false-refusal", Fault::FalseRefusal),
    ("lose-death", Fault::LoseDeath),
    ("false-death", Fault::FalseDeath),
    ("vanish", Fault::Vanish),
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, fault)| fault == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text).map(|(_, fault)| *fault);
        found.ok_or_else(|| {
            format!("no fault {text:?}; the faults are {}", NAMES.map(|(name, _)| name).join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (name, fault) in NAMES {
            assert_eq!((fault.to_string().as_str(), name.parse()), (name, Ok(fault)));
        }
        assert!("burn".parse::<Fault>().expect_err("unknown").contains("leak-fd"));
    }
}
