//! Compares two groups of runs: differences in their environment, then a ratio with interval and verdict for each
//! case.
//! Not here: the tests and intervals themselves (`crate::stats`), tables (`crate::render::compare`), limits on
//! regressions (`gate`).
//!
//! The statistical unit is the run. The samples of one run share its memory layout, boot and disturbances, so a
//! million of them say little about the next run. `docs/comparing.md` defines the verdicts.

mod environment;
pub mod gate;
mod group;
mod judge;
mod metric;
mod refusal;
mod repetition;
mod tail;

pub use environment::Difference;
pub use group::{Group, Member, PAIR_KEY};
pub use judge::{Basis, Bounds, RatioEstimate, Undecided, Verdict, pairs_needed};
pub use metric::Metric;
pub use refusal::{CannotCompare, NoMatch, Unmatched};
pub use tail::Tail;

use crate::schema::{CaseKind, ClockUnit};
use crate::stats::rank::holm;
use group::Series;
use serde::Serialize;
use std::collections::BTreeSet;

/// Id of the finding that medians of counted instructions vary from boot to boot.
const COUNTING: &str = "counting";

/// Runs of each side that detect a difference of 5 % on a noisy machine; the default.
pub const USUAL_RUNS: usize = 12;

/// Confidence of the intervals, and of the verdict "no difference".
const CONFIDENCE: f64 = 0.95;
/// Probability that a comparison of equals, over all its cases, reports any difference.
const FALSE_ALARM: f64 = 0.02;
/// Seed of the bootstrap.
const SEED: u64 = 1;

/// Options of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The figure of each run that is compared.
    pub metric: Metric,
    /// The relative difference that the verdict "no difference" excludes.
    pub resolution: f64,
    /// Compare despite a reason not to, with a warning.
    pub force: bool,
    /// The relative slow-down to test for; used by `gate`.
    pub limit: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { metric: Metric::Median, resolution: 0.05, force: false, limit: None }
    }
}

/// The result of comparing two groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first group: the baseline.
    pub a: Side,
    /// The second group.
    pub b: Side,
    /// The figure of each run that was compared.
    pub metric: Metric,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// The relative difference that the verdict "no difference" excludes.
    pub resolution: f64,
    /// The unit of all values.
    pub unit: ClockUnit,
    /// Differences between the environments of the runs, the most severe first.
    pub environment: Vec<Difference>,
    /// The cases that both sides measured, in the order of the first.
    pub cases: Vec<CaseComparison>,
    /// The cases that could not be compared.
    pub unmatched: Vec<Unmatched>,
    /// Counts of verdicts over all subjects.
    pub overall: Overall,
}

/// Summary of one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Its name, as given.
    pub name: String,
    /// Its records.
    pub files: Vec<String>,
    /// The number of records whose run stopped early.
    pub incomplete: usize,
}

/// The comparison of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseComparison {
    /// The name of the case. All pairs of a latency test are one case for each class.
    pub name: String,
    /// Whether it is a subject of the test or a control.
    pub kind: CaseKind,
    /// Median of the first group's runs, in the clock's unit.
    pub a: f64,
    /// Median of the second group's runs.
    pub b: f64,
    /// The second side's time divided by the first's; `p_beyond` is corrected for all cases.
    #[serde(flatten)]
    pub estimate: RatioEstimate,
    /// `p`, corrected for all cases of the comparison.
    pub p_adjusted: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The tail figures: p99, p99.9 and the maximum.
    pub tails: Vec<Tail>,
    /// Repetitions that failed in either group: file and reason.
    pub failed: Vec<String>,
}

/// Counts of verdicts over all subjects of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Overall {
    /// Cases that are slower in B.
    pub slower: usize,
    /// Cases that are faster in B.
    pub faster: usize,
    /// Cases without a difference.
    pub same: usize,
    /// Cases that are undecided.
    pub unknown: usize,
    /// Cases whose p99 is worse in B.
    pub tail_slower: usize,
    /// Cases whose p99 is better in B.
    pub tail_faster: usize,
}

impl Overall {
    fn of(cases: &[CaseComparison]) -> Overall {
        let subjects = || cases.iter().filter(|case| case.kind == CaseKind::Test);
        let count = |wanted: Verdict| subjects().filter(|case| case.verdict == wanted).count();
        let tails = |wanted| subjects().filter(|case| case.tail_verdict() == Some(wanted)).count();
        Overall {
            slower: count(Verdict::Slower),
            faster: count(Verdict::Faster),
            same: count(Verdict::Same),
            unknown: subjects().filter(|case| matches!(case.verdict, Verdict::CannotTell(_))).count(),
            tail_slower: tails(Verdict::Slower),
            tail_faster: tails(Verdict::Faster),
        }
    }

    /// The verdict over all subjects.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.slower, self.faster, self.same, self.unknown) {
            (0, 0, 0, _) => "cannot tell",
            (0, 0, _, 0) => "no difference",
            (0, 0, _, _) => "no difference found",
            (_, 0, _, _) => "slower",
            (0, _, _, _) => "faster",
            _ => "slower and faster",
        }
    }
}

impl CaseComparison {
    /// The verdict over the p99 of all subjects; `None` if that is not compared.
    #[must_use]
    pub fn tail_verdict(&self) -> Option<Verdict> {
        self.tails.iter().find_map(|tail| tail.verdict)
    }

    /// Half the interval's width, relative to the ratio; `None` without an interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.estimate.interval.map(|bounds| (bounds.high / bounds.low).sqrt() - 1.0)
    }
}

/// Compares the second group with the first.
///
/// # Errors
/// [`CannotCompare`] if the numbers mean different things or there is nothing to compare.
pub fn compare(a: &Group, b: &Group, options: &Options) -> Result<Comparison, CannotCompare> {
    for group in [a, b] {
        if group.members.is_empty() {
            return Err(CannotCompare::Empty { group: group.name.clone() });
        }
        if let Some(copies) = group.copies() {
            return Err(copies);
        }
    }
    let unit = environment::check(a, b, options.force)?;
    let counted = counted(unit, [a, b]);
    let (of_a, of_b) = (a.series()?, b.series()?);
    let unlike = |of: &Series, why| Unmatched { name: of.name.clone(), kind: of.kind, why };
    let mut unmatched = Vec::new();
    let mut cases = Vec::new();
    for one in &of_a {
        let other = of_b.iter().find(|other| other.name == one.name).ok_or(NoMatch::OnlyA);
        match other.and_then(|other| case(one, other, counted, options)) {
            Ok(case) => cases.push(case),
            Err(why) => unmatched.push(unlike(one, why)),
        }
    }
    let known: BTreeSet<&str> = of_a.iter().map(|series| series.name.as_str()).collect();
    let further = of_b.iter().filter(|series| !known.contains(series.name.as_str()));
    unmatched.extend(further.map(|series| unlike(series, NoMatch::OnlyB)));
    if cases.is_empty() {
        return Err(CannotCompare::NothingInCommon { unmatched });
    }
    for kind in [CaseKind::Test, CaseKind::Control] {
        judge_together(cases.iter_mut().filter(|case| case.kind == kind).collect(), options);
    }
    Ok(Comparison {
        a: side(a),
        b: side(b),
        metric: options.metric,
        confidence: CONFIDENCE,
        resolution: options.resolution,
        unit,
        environment: environment::differences(a, b),
        overall: Overall::of(&cases),
        cases,
        unmatched,
    })
}

fn side(group: &Group) -> Side {
    Side {
        name: group.name.clone(),
        files: group.members.iter().map(|member| member.file.clone()).collect(),
        incomplete: group.members.iter().filter(|member| !member.run.complete).count(),
    }
}

/// The basis of verdicts on counted instructions, which need no test.
fn counted(unit: ClockUnit, sides: [&Group; 2]) -> Option<Basis> {
    let mut findings = sides.iter().flat_map(|side| &side.members).flat_map(|member| &member.run.findings);
    let strays = findings.any(|finding| finding.id == COUNTING);
    (unit == ClockUnit::Instructions).then_some(if strays { Basis::CountedLoosely } else { Basis::Counted })
}

/// Compares a case; its verdicts are set later, by [`judge_together`].
fn case(
    a: &Series,
    b: &Series,
    counted: Option<Basis>,
    options: &Options,
) -> Result<CaseComparison, NoMatch> {
    if let Some(how) = a.shape.unlike(&b.shape) {
        return Err(NoMatch::Shape(how));
    }
    let counted = counted.map(|basis| judge::of_alike(basis, a, b));
    let none = |series: &Series| series.failed.first().cloned().unwrap_or_else(|| "no number".to_owned());
    let judged = judge::values(a, b, options.metric).ok_or_else(|| match a.has_value(options.metric) {
        false => NoMatch::FailedA(none(a)),
        true => NoMatch::FailedB(none(b)),
    })?;
    Ok(CaseComparison {
        name: a.name.clone(),
        kind: a.kind,
        a: judged.level_a(),
        b: judged.level_b(),
        estimate: judged.estimate(counted, options),
        p_adjusted: None,
        // Replaced once all p-values are known.
        verdict: Verdict::CannotTell(Undecided::Wide),
        tails: tail::tails(a, b, counted, options),
        failed: a.failed.iter().chain(&b.failed).cloned().collect(),
    })
}

/// Corrects the p-values of all these cases for each other and sets their verdicts.
fn judge_together(mut cases: Vec<&mut CaseComparison>, options: &Options) {
    // The metric and the p99 of each case form one family, unless the p99 is the metric.
    let with_tails = options.metric != Metric::P99;
    let own: Vec<f64> = cases.iter().map(|case| case.estimate.p.unwrap_or(1.0)).collect();
    let tails = cases.iter().filter_map(|case| case.tails.iter().find(|tail| tail.metric == Metric::P99));
    let all: Vec<f64> = match with_tails {
        true => own.iter().copied().chain(tails.map(|tail| tail.estimate.p.unwrap_or(1.0))).collect(),
        false => own.clone(),
    };
    let adjusted = holm(&all);
    let beyond = holm(&cases.iter().map(|case| case.estimate.p_beyond.unwrap_or(1.0)).collect::<Vec<f64>>());
    let family = all.len();
    let mut of_tails = adjusted[own.len()..].iter().copied();
    for (at, case) in cases.iter_mut().enumerate() {
        case.p_adjusted = case.estimate.p.map(|_| adjusted[at]);
        case.estimate.p_beyond = case.estimate.p_beyond.map(|_| beyond[at]);
        case.verdict = judge::decide(&case.estimate, case.p_adjusted, family);
        for tail in case.tails.iter_mut().filter(|tail| tail.metric == Metric::P99) {
            let adjusted = if with_tails { of_tails.next() } else { case.p_adjusted };
            tail.judge(case.estimate.basis, adjusted, family);
        }
    }
}

#[cfg(test)]
mod tests;
