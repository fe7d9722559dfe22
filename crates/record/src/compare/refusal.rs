//! Reasons why a case, or a whole comparison, is refused.
//! Not here: the checks that find them.

use crate::schema::CaseKind;
use serde::Serialize;
use std::fmt;

/// A case that cannot be compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unmatched {
    /// The name of the case.
    pub name: String,
    /// Whether it is a subject or a control.
    pub kind: CaseKind,
    /// The reason.
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
    /// Its shape differs; holds the description.
    Shape(String),
    /// The first group has no number for it; holds the reason.
    FailedA(String),
    /// The second group has no number for it; holds the reason.
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

/// Reason why two groups cannot be compared.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CannotCompare {
    /// A group has no run.
    Empty {
        /// The name of the group.
        group: String,
    },
    /// A run is in a group twice, so the group has fewer runs than files.
    Copies {
        /// The name of the group.
        group: String,
        /// The first file.
        one: String,
        /// The second file.
        other: String,
    },
    /// One side counts instructions, the other measures time.
    Clocks,
    /// The numbers mean different things.
    Unlike {
        /// The fact that differs.
        what: &'static str,
        /// Its value in the first group.
        a: String,
        /// Its value in the second group.
        b: String,
    },
    /// Runs of one group have the same case in different shapes.
    Mixed {
        /// The name of the group.
        group: String,
        /// The name of the case.
        case: String,
        /// The difference.
        how: String,
    },
    /// No case is in both groups.
    NothingInCommon {
        /// The cases, with the reason for each.
        unmatched: Vec<Unmatched>,
    },
}

impl fmt::Display for CannotCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotCompare::Empty { group } => write!(f, "{group} has no record"),
            CannotCompare::Copies { group, one, other } => write!(
                f,
                "{one} and {other} of {group} are the same run; a copy adds no information: leave one out"
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
