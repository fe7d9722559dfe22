//! Room: what is not compared, a case or all of it, and why.
//! Not here: noticing it.

use crate::schema::CaseKind;
use serde::Serialize;
use std::fmt;

/// What cannot be compared, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unmatched {
    /// The case.
    pub name: String,
    /// Whether it is a subject or a yardstick.
    pub kind: CaseKind,
    /// Why.
    pub why: NoMatch,
}

/// Why a case is not compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoMatch {
    /// Only the first group has it.
    OnlyA,
    /// Only the second group has it.
    OnlyB,
    /// It is something else on the other side: what, there and here.
    Shape(String),
    /// The first group has no number of it: reason.
    FailedA(String),
    /// The second group has no number of it: reason.
    FailedB(String),
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMatch::OnlyA => f.write_str("only in A"),
            NoMatch::OnlyB => f.write_str("only in B"),
            NoMatch::Shape(what) => write!(f, "not the same in A and B: {what}"),
            NoMatch::FailedA(why) => write!(f, "failed in A: {why}"),
            NoMatch::FailedB(why) => write!(f, "failed in B: {why}"),
        }
    }
}

/// Why two groups cannot be compared.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CannotCompare {
    /// A group has no run.
    Empty {
        /// Which.
        group: String,
    },
    /// A run is in a group twice, so there are fewer runs than it seems.
    Copies {
        /// In which group.
        group: String,
        /// Its file.
        one: String,
        /// Its other file.
        other: String,
    },
    /// One counts instructions, the other measures time.
    Clocks,
    /// Their numbers mean different things.
    Unlike {
        /// What.
        what: &'static str,
        /// In the first group.
        a: String,
        /// In the second.
        b: String,
    },
    /// Runs of one group have the same case in different shapes.
    Mixed {
        /// In which group.
        group: String,
        /// Which case.
        case: String,
        /// How they differ.
        how: String,
    },
    /// No case is in both.
    NothingInCommon {
        /// What there is instead.
        unmatched: Vec<Unmatched>,
    },
}

impl fmt::Display for CannotCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotCompare::Empty { group } => write!(f, "{group} has no record"),
            CannotCompare::Copies { group, one, other } => write!(
                f,
                "{one} and {other} of {group} are the same run, and copies of a run tell no more than it does: leave one out"
            ),
            CannotCompare::Clocks => f.write_str(
                "one side counts instructions (--icount), the other measures time: measure both the same way",
            ),
            CannotCompare::Unlike { what, a, b } => write!(
                f,
                "the {what} differs ({a} and {b}), so the times mean different things; --force compares them all the same"
            ),
            CannotCompare::Mixed { group, case, how } => {
                write!(
                    f,
                    "the runs of {group} are not of the same test: {case}: {how}; give one test's records at a time"
                )
            }
            CannotCompare::NothingInCommon { unmatched } => {
                f.write_str("the two sides have no case in common")?;
                let shown = unmatched.iter().take(4);
                shown.into_iter().try_for_each(|one| write!(f, "; {}: {}", one.name, one.why))?;
                if unmatched.len() > 4 { write!(f, "; and {} more", unmatched.len() - 4) } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for CannotCompare {}
