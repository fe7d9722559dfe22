//! Room: whether the second side keeps a limit: it fails only beyond doubt, and says so where there is doubt.
//! Not here: the exit status (`cli`).

use super::{CannotCompare, CaseComparison, Comparison, Group, NoMatch, Options, compare};
use crate::schema::CaseKind;
use serde::Serialize;

/// What became of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All of the interval keeps it.
    Kept,
    /// The interval holds values on both sides of it.
    CannotTell,
    /// It is exceeded, and chance rarely makes that.
    Exceeded,
}

impl Outcome {
    /// The word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::CannotTell => "cannot tell",
            Outcome::Exceeded => "exceeded",
        }
    }
}

/// A comparison held to a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gated {
    /// How much slower a case may be, as a share.
    pub limit: f64,
    /// The worst of all cases.
    pub outcome: Outcome,
    /// One for each subject: its name, and what became of the limit.
    pub cases: Vec<(String, Outcome)>,
    /// Cases that the first side has and that failed, are missing or are something else in the second: that exceeds
    /// every limit.
    pub broken: Vec<(String, String)>,
    /// The comparison.
    pub comparison: Comparison,
}

/// Compares, and holds every subject to a limit.
///
/// # Errors
/// As [`compare`].
pub fn gate(a: &Group, b: &Group, limit: f64, options: &Options) -> Result<Gated, CannotCompare> {
    let compared = compare(a, b, &Options { limit: Some(limit), ..*options });
    Ok(judge(compared?, limit, options))
}

/// The same of a comparison that was made with this limit.
#[must_use]
pub fn judge(comparison: Comparison, limit: f64, options: &Options) -> Gated {
    let subjects = comparison.cases.iter().filter(|case| case.kind == CaseKind::Test);
    let subjects: Vec<&CaseComparison> = subjects.collect();
    let family = subjects.len();
    let told = |case: &&CaseComparison| (case.name.clone(), outcome(case, limit, family, options));
    let cases: Vec<(String, Outcome)> = subjects.iter().map(told).collect();
    let broken: Vec<(String, String)> = comparison
        .unmatched
        .iter()
        .filter(|one| one.kind == CaseKind::Test)
        .filter_map(|one| match &one.why {
            NoMatch::FailedB(why) => Some((one.name.clone(), why.clone())),
            // What was held to a limit and is gone, or is something else now, is held to none.
            NoMatch::OnlyA | NoMatch::Shape(_) => Some((one.name.clone(), one.why.to_string())),
            NoMatch::OnlyB | NoMatch::FailedA(_) => None,
        })
        .collect();
    let worst = cases.iter().map(|(_, outcome)| *outcome).max();
    let outcome = if broken.is_empty() { worst.unwrap_or(Outcome::CannotTell) } else { Outcome::Exceeded };
    Gated { limit, outcome, cases, broken, comparison }
}

fn outcome(case: &CaseComparison, limit: f64, family: usize, options: &Options) -> Outcome {
    let most = 1.0 + limit;
    if let Some(step) = case.basis.counted_step() {
        return match case.ratio {
            ratio if ratio > most * (1.0 + step) => Outcome::Exceeded,
            ratio if ratio * (1.0 + step) <= most => Outcome::Kept,
            _ => Outcome::CannotTell,
        };
    }
    let chance = options.false_alarm;
    if !case.basis.is_of_runs() || !case.basis.can_tell(family, chance) {
        return Outcome::CannotTell;
    }
    let is_above = case.interval.is_some_and(|bounds| bounds.low > most);
    if is_above && case.p_beyond.is_some_and(|p| p < chance) {
        Outcome::Exceeded
    } else if case.p_within.is_some_and(|p| p < 1.0 - options.confidence) {
        Outcome::Kept
    } else {
        Outcome::CannotTell
    }
}
