//! Tests whether the second side keeps a limit. A gate fails only beyond doubt, and reports doubt as such.
//! Not here: the exit status (`cli`).

use super::{
    CONFIDENCE, CannotCompare, CaseComparison, Comparison, FALSE_ALARM, Group, NoMatch, Options, compare,
};
use crate::schema::CaseKind;
use serde::Serialize;

/// The outcome of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// The whole interval keeps the limit.
    Kept,
    /// The interval contains the limit.
    CannotTell,
    /// The whole interval exceeds the limit, and a test says that chance rarely does that.
    Exceeded,
}

impl GateOutcome {
    /// The word in documents and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GateOutcome::Kept => "kept",
            GateOutcome::CannotTell => "cannot tell",
            GateOutcome::Exceeded => "exceeded",
        }
    }
}

/// A comparison with the outcome of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// The relative slow-down that is allowed.
    pub limit: f64,
    /// The worst outcome of all cases.
    pub outcome: GateOutcome,
    /// The name and outcome of each subject.
    pub cases: Vec<(String, GateOutcome)>,
    /// Cases of the first side that failed in the second, are missing from it or differ in shape, with the reason:
    /// each exceeds every limit.
    pub broken: Vec<(String, String)>,
    /// The comparison.
    pub comparison: Comparison,
}

/// Compares two groups and tests every subject against a limit.
///
/// # Errors
/// The errors of [`compare`].
pub fn gate(a: &Group, b: &Group, limit: f64, options: &Options) -> Result<GateResult, CannotCompare> {
    let compared = compare(a, b, &Options { limit: Some(limit), ..*options });
    Ok(judge(compared?, limit))
}

/// Tests a comparison, made with this limit in its options, against the limit.
#[must_use]
pub fn judge(comparison: Comparison, limit: f64) -> GateResult {
    let subjects = comparison.cases.iter().filter(|case| case.kind == CaseKind::Test);
    let subjects: Vec<&CaseComparison> = subjects.collect();
    let family = subjects.len();
    let told = |case: &&CaseComparison| (case.name.clone(), outcome(case, limit, family));
    let cases: Vec<(String, GateOutcome)> = subjects.iter().map(told).collect();
    let broken: Vec<(String, String)> = comparison
        .unmatched
        .iter()
        .filter(|one| one.kind == CaseKind::Test)
        .filter_map(|one| match &one.why {
            NoMatch::FailedB(why) => Some((one.name.clone(), why.clone())),
            // A case that is gone or has changed must not escape the limit.
            NoMatch::OnlyA | NoMatch::Shape(_) => Some((one.name.clone(), one.why.to_string())),
            NoMatch::OnlyB | NoMatch::FailedA(_) => None,
        })
        .collect();
    let worst = cases.iter().map(|(_, outcome)| *outcome).max();
    let outcome =
        if broken.is_empty() { worst.unwrap_or(GateOutcome::CannotTell) } else { GateOutcome::Exceeded };
    GateResult { limit, outcome, cases, broken, comparison }
}

fn outcome(case: &CaseComparison, limit: f64, family: usize) -> GateOutcome {
    let (most, found) = (1.0 + limit, &case.estimate);
    if let Some(step) = found.basis.counted_step() {
        return match found.ratio {
            ratio if ratio > most * (1.0 + step) => GateOutcome::Exceeded,
            ratio if ratio * (1.0 + step) <= most => GateOutcome::Kept,
            _ => GateOutcome::CannotTell,
        };
    }
    if !found.basis.is_of_runs() || !found.basis.can_tell(family) {
        return GateOutcome::CannotTell;
    }
    // Values that were printed with few digits may be off by as much.
    let off = 1.0 + found.rounding;
    if found.rounding > 0.0 && (most / off..most * off).contains(&found.ratio) {
        return GateOutcome::CannotTell;
    }
    let is_above = found.interval.is_some_and(|bounds| bounds.low > most * off);
    if is_above && found.p_beyond.is_some_and(|p| p < FALSE_ALARM) {
        GateOutcome::Exceeded
    } else if found.p_within.is_some_and(|p| p < 1.0 - CONFIDENCE) {
        GateOutcome::Kept
    } else {
        GateOutcome::CannotTell
    }
}
