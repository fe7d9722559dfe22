//! Room: two groups of runs held against each other: what differed around them, and case by case which side is
//! slower, with an interval and a word that may be relied upon.
//! Not here: the tests and intervals themselves (`crate::stats`), tables (`crate::render::compare`), limits that a change
//! must keep (`gate`).
//!
//! The unit is the run. Samples of one run have its memory layout, its boot and its disturbances in common, so a million
//! of them say little about the next run. `docs/comparing.md` says what the words mean.

mod environment;
pub mod gate;
mod group;
mod judge;
mod metric;
mod refusal;
mod tail;

pub use environment::Difference;
pub(crate) use group::Number;
pub use group::{Group, Member, PAIR_KEY};
pub use judge::{Basis, Verdict, Why, pairs_needed};
pub use metric::Metric;
pub use refusal::{CannotCompare, NoMatch, Unmatched};
pub use tail::{Bounds, Tail};

use crate::schema::{CaseKind, ClockUnit};
use crate::stats::rank::holm;
use group::Series;
use judge::Evidence;
use serde::Serialize;
use std::collections::BTreeSet;

/// The finding that counts of one and the same call have more than one median.
const COUNTING: &str = "counting";

/// Runs of a side with which 5 % are found on a noisy machine; what is measured unless asked otherwise.
pub const USUAL_RUNS: usize = 12;

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// What of each run is compared.
    pub metric: Metric,
    /// Confidence of intervals, and that "no difference" overlooks none of the resolution.
    pub confidence: f64,
    /// The chance that a comparison of equals, all cases together, finds any difference.
    pub false_alarm: f64,
    /// "No difference" is said if the runs exclude one of this share.
    pub resolution: f64,
    /// Compare what should not be, with a warning.
    pub force: bool,
    /// A slow-down to test for, as a share; for `gate`.
    pub limit: Option<f64>,
    /// Seed of the resampling.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        let metric = Metric::Median;
        Options {
            metric,
            confidence: 0.95,
            false_alarm: 0.02,
            resolution: 0.05,
            force: false,
            limit: None,
            seed: 1,
        }
    }
}

/// Two groups, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first group, which the other is held against.
    pub a: Side,
    /// The other.
    pub b: Side,
    /// What of each run was compared.
    pub metric: Metric,
    /// Of the intervals.
    pub confidence: f64,
    /// The difference that "no difference" excludes, as a share.
    pub resolution: f64,
    /// The unit of all values.
    pub unit: ClockUnit,
    /// What differed around the runs, the gravest first.
    pub environment: Vec<Difference>,
    /// What both sides measured, in the order of the first.
    pub cases: Vec<CaseComparison>,
    /// What could not be compared.
    pub unmatched: Vec<Unmatched>,
    /// All subjects together.
    pub overall: Overall,
}

/// One group, in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// As given.
    pub name: String,
    /// Its records.
    pub files: Vec<String>,
    /// How many of them stopped early.
    pub incomplete: usize,
}

/// One case of both groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseComparison {
    /// Its name; of a latency test all pairs are one case for each class.
    pub name: String,
    /// A subject of the test, or a yardstick that tells of the machine.
    pub kind: CaseKind,
    /// The middle of the first group's runs, in the clock's unit.
    pub a: f64,
    /// The middle of the second group's runs.
    pub b: f64,
    /// How many times as long the second takes.
    pub ratio: f64,
    /// Its interval; `None` where the values at hand have none.
    pub interval: Option<Bounds>,
    /// What the interval and the probability are made of.
    pub basis: Basis,
    /// Chance of such a difference between equals; `None` where that cannot be told.
    pub p: Option<f64>,
    /// The same for all cases of the comparison together.
    pub p_adjusted: Option<f64>,
    /// Chance of so small a difference if there were one of the resolution; small for equals.
    pub p_unlike: Option<f64>,
    /// Chance of so slow a second side if it kept the limit, for all cases together; `None` without a limit.
    pub p_beyond: Option<f64>,
    /// Chance of so fast a second side if it exceeded the limit.
    pub p_within: Option<f64>,
    /// The word.
    pub verdict: Verdict,
    /// The rare ones: p99, p99.9 and the longest.
    pub tails: Vec<Tail>,
    /// Repetitions that failed in either group: file and reason.
    pub failed: Vec<String>,
}

/// All subjects of a comparison together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Overall {
    /// Cases that are slower in B.
    pub slower: usize,
    /// Cases that are faster in B.
    pub faster: usize,
    /// Cases without a difference.
    pub same: usize,
    /// Cases of which nothing can be told.
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

    /// The word for all of it.
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
    /// The word about the p99; `None` where that is not compared.
    #[must_use]
    pub fn tail_verdict(&self) -> Option<Verdict> {
        self.tails.iter().find_map(|tail| tail.verdict)
    }

    /// Half the interval's width, as a share of the value; `None` without one.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|bounds| (bounds.high / bounds.low).sqrt() - 1.0)
    }
}

/// Compares the second group with the first.
///
/// # Errors
/// [`CannotCompare`]: numbers that mean different things, or nothing to compare.
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
    let mut unmatched = Vec::new();
    let mut cases = Vec::new();
    for one in &of_a {
        match of_b.iter().find(|other| other.name == one.name) {
            None => unmatched.push(Unmatched { name: one.name.clone(), kind: one.kind, why: NoMatch::OnlyA }),
            Some(other) => match case(one, other, counted, options) {
                Ok(case) => cases.push(case),
                Err(why) => unmatched.push(Unmatched { name: one.name.clone(), kind: one.kind, why }),
            },
        }
    }
    let known: BTreeSet<&str> = of_a.iter().map(|series| series.name.as_str()).collect();
    let further = of_b.iter().filter(|series| !known.contains(series.name.as_str()));
    unmatched.extend(further.map(|series| Unmatched {
        name: series.name.clone(),
        kind: series.kind,
        why: NoMatch::OnlyB,
    }));
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
        confidence: options.confidence,
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

/// What words rest on where instructions were counted, which need no test.
fn counted(unit: ClockUnit, sides: [&Group; 2]) -> Option<Basis> {
    let mut findings = sides.iter().flat_map(|side| &side.members).flat_map(|member| &member.run.findings);
    let strays = findings.any(|finding| finding.id == COUNTING);
    (unit == ClockUnit::Instructions).then_some(if strays { Basis::CountedLoosely } else { Basis::Counted })
}

/// A case without its final words, which depend on all others.
fn case(
    a: &Series,
    b: &Series,
    counted: Option<Basis>,
    options: &Options,
) -> Result<CaseComparison, NoMatch> {
    if let Some(how) = a.shape.unlike(&b.shape) {
        return Err(NoMatch::Shape(how));
    }
    let none = |series: &Series| series.failed.first().cloned().unwrap_or_else(|| "no number".to_owned());
    let judged = judge::values(a, b, options.metric).ok_or_else(|| match a.has_value(options.metric) {
        false => NoMatch::FailedA(none(a)),
        true => NoMatch::FailedB(none(b)),
    })?;
    let estimate = judged.estimate(counted, options);
    Ok(CaseComparison {
        name: a.name.clone(),
        kind: a.kind,
        a: judged.level_a(),
        b: judged.level_b(),
        ratio: estimate.ratio,
        interval: estimate.interval,
        basis: estimate.basis,
        p: estimate.p,
        p_adjusted: None,
        p_unlike: estimate.p_unlike,
        p_beyond: estimate.p_beyond,
        p_within: estimate.p_within,
        // Replaced once all p-values are known.
        verdict: Verdict::CannotTell(Why::Wide),
        tails: tail::tails(a, b, counted, options),
        failed: a.failed.iter().chain(&b.failed).cloned().collect(),
    })
}

/// Corrects the p-values of all these cases for each other, and says the words.
fn judge_together(mut cases: Vec<&mut CaseComparison>, options: &Options) {
    // The metric itself and the p99 of each case are one family, unless the p99 is the metric.
    let with_tails = options.metric != Metric::P99;
    let own: Vec<f64> = cases.iter().map(|case| case.p.unwrap_or(1.0)).collect();
    let tails = cases.iter().filter_map(|case| case.tails.iter().find(|tail| tail.metric == Metric::P99));
    let all: Vec<f64> = match with_tails {
        true => own.iter().copied().chain(tails.map(|tail| tail.p.unwrap_or(1.0))).collect(),
        false => own.clone(),
    };
    let adjusted = holm(&all);
    let beyond = holm(&cases.iter().map(|case| case.p_beyond.unwrap_or(1.0)).collect::<Vec<f64>>());
    let family = all.len();
    let mut of_tails = adjusted[own.len()..].iter().copied();
    for (at, case) in cases.iter_mut().enumerate() {
        case.p_adjusted = case.p.map(|_| adjusted[at]);
        case.p_beyond = case.p_beyond.map(|_| beyond[at]);
        let evidence = Evidence {
            ratio: case.ratio,
            interval: case.interval,
            basis: case.basis,
            p: case.p_adjusted,
            p_unlike: case.p_unlike,
        };
        case.verdict = judge::word(evidence, family, options);
        for tail in case.tails.iter_mut().filter(|tail| tail.metric == Metric::P99) {
            let adjusted = if with_tails { of_tails.next() } else { case.p_adjusted };
            tail.judge(case.basis, adjusted, family, options);
        }
    }
}

#[cfg(test)]
mod tests;
