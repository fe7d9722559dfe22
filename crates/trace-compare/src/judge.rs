//! A row of a comparison: differences of mean, median, p99 and each cause, with intervals; the verdict.
//! Not here: blocks (`blocks`), which rows there are (the crate's root).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use record::stats::rank::{holm, mann_whitney};
use record::stats::shift::{between_groups, interval};
use record::stats::{mean, median};
use serde::Serialize;
use trace::cause::Label;
use trace::verdict::SampledGroup;

use crate::blocks::{Blocks, cut};
use crate::{CONFIDENCE, FALSE_ALARM};

/// Seed of the bootstrap.
const SEED: u64 = 1;
/// Fewest calls of each trace for an interval and a verdict on p99.
const LEAST_FOR_P99: usize = 500;

/// Calls of one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Number of calls.
    pub calls: u64,
    /// Nanoseconds of all.
    pub total_ns: u64,
    /// Mean nanoseconds.
    pub mean_ns: f64,
    /// Median nanoseconds.
    pub median_ns: u64,
    /// 99th percentile, nearest rank, in nanoseconds.
    pub p99_ns: u64,
}

/// The way in which something changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It takes longer in B.
    Slower,
    /// It takes less time in B.
    Faster,
}

/// Difference of a figure: B less A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Nanoseconds.
    pub difference_ns: f64,
    /// Lower limit of the interval; `None` with too few calls.
    pub low_ns: Option<f64>,
    /// Upper limit of the interval.
    pub high_ns: Option<f64>,
    /// Probability of such a difference between equals, corrected for the number of tests; `None` if it was not tested.
    pub p: Option<f64>,
    /// The way in which it changed; `None` if no change beyond the resolution is certain.
    pub direction: Option<Direction>,
    /// Whether the blocks of B rank higher.
    #[serde(skip)]
    higher: bool,
}

/// Time of a row by one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseChange {
    /// The cause.
    pub cause: Label,
    /// Mean nanoseconds per call in A.
    pub a_ns: f64,
    /// Mean nanoseconds per call in B.
    pub b_ns: f64,
    /// Difference of the means. Those of all causes sum to that of the row.
    #[serde(flatten)]
    pub change: Change,
}

/// Reason why no verdict is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// A trace has too few calls.
    FewCalls,
    /// Too few calls to exclude chance for so many rows.
    ManyRows,
    /// The interval is too wide.
    Wide,
    /// The calls wait by design.
    ByDesign,
}

/// Verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Mean, median or p99 is higher in B, and none lower.
    Slower,
    /// Mean, median or p99 is lower in B, and none higher.
    Faster,
    /// One of them is higher and another lower.
    SlowerAndFaster,
    /// No difference was found, and one of the resolution in mean or median is excluded.
    Same,
    /// Neither a difference nor its absence can be shown.
    CannotTell(Undecided),
}

/// Calls that both traces have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of their method, or their pair of processes.
    pub name: String,
    /// Whether they wait by design, in both traces.
    pub waits_by_design: bool,
    /// Calls of A.
    pub a: Figures,
    /// Calls of B.
    pub b: Figures,
    /// Difference of the mean.
    pub mean: Change,
    /// Difference of the median.
    pub median: Change,
    /// Difference of the 99th percentile.
    pub p99: Change,
    /// Difference of the mean by cause, the largest growth first.
    pub causes: Vec<CauseChange>,
    /// What the difference of the mean costs all calls of B, in nanoseconds.
    pub cost_ns: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The least p-value that a test of this row can have.
    #[serde(skip)]
    least_p: Option<f64>,
}

impl Figures {
    pub(crate) fn of(ns: &[u64]) -> Self {
        let mut ascending = ns.to_vec();
        ascending.sort_unstable();
        let total: u64 = ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
        let percentile = |percent| units::percentile(&ascending, percent).unwrap_or(0);
        Self {
            calls: ns.len() as u64,
            total_ns: total,
            mean_ns: total as f64 / ns.len().max(1) as f64,
            median_ns: percentile(50.0),
            p99_ns: percentile(99.0),
        }
    }
}

impl Change {
    /// Difference of the means of all values, tested by those of the blocks.
    fn of_means(a: &[f64], b: &[f64], blocks: Option<&Blocks>) -> Self {
        let difference = mean(b).unwrap_or(0.0) - mean(a).unwrap_or(0.0);
        let Some(blocks) = blocks else { return Self { difference_ns: difference, ..Self::default() } };
        let of_a: Vec<f64> = blocks.a.iter().filter_map(|block| mean(&a[block.clone()])).collect();
        let of_b: Vec<f64> = blocks.b.iter().filter_map(|block| mean(&b[block.clone()])).collect();
        let found = interval(difference, blocks.fewest(), of_a.len() + of_b.len(), CONFIDENCE, SEED, |rng| {
            let mut drawn = |of: &[f64]| {
                let sum: f64 = (0..of.len()).map(|_| of[rng.usize(..of.len())]).sum();
                sum / of.len() as f64
            };
            let a = drawn(&of_a);
            Some(drawn(&of_b) - a)
        });
        Self::tested(difference, found.map(|found| (found.low, found.high)), &of_a, &of_b)
    }

    /// Difference of the medians, tested by those of the blocks.
    fn of_medians(a: &[f64], b: &[f64], figures: [Figures; 2], blocks: Option<&Blocks>) -> Self {
        let [of_a, of_b] = figures.map(|figures| figures.median_ns as f64);
        let difference = of_b - of_a;
        let Some(blocks) = blocks else { return Self { difference_ns: difference, ..Self::default() } };
        let of_a: Vec<f64> = blocks.a.iter().filter_map(|block| median(&a[block.clone()])).collect();
        let of_b: Vec<f64> = blocks.b.iter().filter_map(|block| median(&b[block.clone()])).collect();
        let found = between_groups(&of_a, &of_b, CONFIDENCE, SEED);
        let found = found.map(|found| (found.low.min(difference), found.high.max(difference)));
        Self::tested(difference, found, &of_a, &of_b)
    }

    /// Difference of p99, tested by how many calls of each block are above the p99 of both traces together.
    fn of_p99(a: &[f64], b: &[f64], figures: [Figures; 2], blocks: Option<&Blocks>) -> Self {
        let [of_a, of_b] = figures.map(|figures| figures.p99_ns as f64);
        let difference = of_b - of_a;
        let blocks = blocks.filter(|_| a.len().min(b.len()) >= LEAST_FOR_P99);
        let Some(blocks) = blocks else { return Self { difference_ns: difference, ..Self::default() } };
        let (tail_a, tail_b) = (Tail::of(a, blocks.size), Tail::of(b, blocks.size));
        let work = (a.len() + b.len()) / 50;
        let found = interval(difference, blocks.fewest(), work, CONFIDENCE, SEED, |rng| {
            let mut drawn = |tail: &Tail| {
                let mut times = vec![0_u32; tail.blocks];
                (0..tail.blocks).for_each(|_| times[rng.usize(..tail.blocks)] += 1);
                tail.p99(&times)
            };
            let a = drawn(&tail_a)?;
            Some(drawn(&tail_b)? - a)
        });
        let mut both: Vec<f64> = a.iter().chain(b).copied().collect();
        both.sort_unstable_by(f64::total_cmp);
        let limit = units::percentile(&both, 99.0).unwrap_or(f64::INFINITY);
        let above = |values: &[f64], block: &std::ops::Range<usize>| {
            values[block.clone()].iter().filter(|value| **value > limit).count() as f64
        };
        let of_a: Vec<f64> = blocks.a.iter().map(|block| above(a, block)).collect();
        let of_b: Vec<f64> = blocks.b.iter().map(|block| above(b, block)).collect();
        Self::tested(difference, found.map(|found| (found.low, found.high)), &of_a, &of_b)
    }

    fn tested(difference: f64, bounds: Option<(f64, f64)>, of_a: &[f64], of_b: &[f64]) -> Self {
        let test = mann_whitney(of_b, of_a);
        Self {
            difference_ns: difference,
            low_ns: bounds.map(|(low, _)| low),
            high_ns: bounds.map(|(_, high)| high),
            p: test.map(|test| test.p),
            direction: None,
            higher: test.is_some_and(|test| test.p_greater < 0.5),
        }
    }

    /// Sets the direction, by the corrected p-value; the interval must agree and hold more than this size.
    fn judge(&mut self, size: f64) {
        let certain = self.p.is_some_and(|p| p < FALSE_ALARM) && !self.is_within(size);
        self.direction = match (self.low_ns, self.high_ns) {
            (Some(low), _) if certain && self.higher && low > 0.0 => Some(Direction::Slower),
            (_, Some(high)) if certain && !self.higher && high < 0.0 => Some(Direction::Faster),
            _ => None,
        };
    }

    /// Whether the interval excludes a difference of this size.
    fn is_within(&self, size: f64) -> bool {
        self.low_ns.is_some_and(|low| low > -size) && self.high_ns.is_some_and(|high| high < size)
    }
}

/// The highest values of a trace's calls, and the blocks that they lie in.
struct Tail {
    /// Descending.
    values: Vec<(f64, usize)>,
    blocks: usize,
    size: usize,
}

impl Tail {
    fn of(values: &[f64], size: usize) -> Self {
        let blocks = cut(values.len(), size, usize::MAX);
        let mut tagged: Vec<(f64, usize)> = blocks
            .iter()
            .enumerate()
            .flat_map(|(at, block)| values[block.clone()].iter().map(move |value| (*value, at)))
            .collect();
        tagged.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        Self { values: tagged, blocks: blocks.len(), size }
    }

    /// p99 of all calls, if each block came so many times.
    fn p99(&self, times: &[u32]) -> Option<f64> {
        let all = (self.blocks * self.size) as u64;
        let mut above = all - units::rank(all, 99.0);
        let found = self.values.iter().find(|(_, block)| {
            let here = u64::from(times[*block]);
            let is_it = here > above;
            above = above.saturating_sub(here);
            is_it
        });
        found.map(|(value, _)| *value)
    }
}

/// Each call's nanoseconds by this cause.
fn times_by(group: &SampledGroup, cause: Label) -> Vec<f64> {
    let of_call = |call| {
        let parts = group.by_cause(call).filter(|(of, _)| *of == cause);
        // An empty sum of floating-point numbers is -0.
        parts.map(|(_, ns)| ns).sum::<u64>() as f64
    };
    (0..group.ns.len()).map(of_call).collect()
}

impl Row {
    /// Compares two groups.
    pub(crate) fn of(one: &SampledGroup, other: &SampledGroup) -> Self {
        let (a, b): (Vec<f64>, Vec<f64>) =
            (one.ns.iter().map(|ns| *ns as f64).collect(), other.ns.iter().map(|ns| *ns as f64).collect());
        let blocks = Blocks::of(a.len(), b.len());
        let blocks = blocks.as_ref();
        let figures = [Figures::of(&one.ns), Figures::of(&other.ns)];
        let calls =
            [one, other].into_iter().flat_map(|group| (0..group.ns.len()).map(move |call| (group, call)));
        let labels: BTreeSet<Label> =
            calls.flat_map(|(group, call)| group.by_cause(call)).map(|(cause, _)| cause).collect();
        let causes = labels.into_iter().filter_map(|cause| {
            let (a, b) = (times_by(one, cause), times_by(other, cause));
            let (a_ns, b_ns) = (mean(&a).unwrap_or(0.0), mean(&b).unwrap_or(0.0));
            let change = || Change::of_means(&a, &b, blocks);
            (a_ns + b_ns > 0.0).then(|| CauseChange { cause, a_ns, b_ns, change: change() })
        });
        let mut causes: Vec<CauseChange> = causes.collect();
        causes.sort_by(|one, other| {
            let growth = other.change.difference_ns.total_cmp(&one.change.difference_ns);
            growth.then_with(|| one.cause.name().cmp(other.cause.name()))
        });
        let mean = Change::of_means(&a, &b, blocks);
        Self {
            name: one.name.clone(),
            waits_by_design: one.waits_by_design && other.waits_by_design,
            mean,
            median: Change::of_medians(&a, &b, figures, blocks),
            p99: Change::of_p99(&a, &b, figures, blocks),
            causes,
            cost_ns: mean.difference_ns * b.len() as f64,
            a: figures[0],
            b: figures[1],
            verdict: Verdict::CannotTell(Undecided::FewCalls),
            least_p: blocks.map(Blocks::least_p),
        }
    }

    /// The changes that the verdict is on; none of calls that wait by design.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Change> {
        [&self.mean, &self.median, &self.p99].into_iter().filter(|_| !self.waits_by_design)
    }

    pub(crate) fn changes_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        let judged = !self.waits_by_design;
        [&mut self.mean, &mut self.median, &mut self.p99].into_iter().filter(move |_| judged)
    }

    /// Sets the verdict. The p-values are corrected for `family` tests.
    pub(crate) fn judge(&mut self, family: usize, resolution: f64) {
        let limits =
            [self.a.mean_ns, self.a.median_ns as f64, self.a.p99_ns as f64].map(|of_a| of_a * resolution);
        self.changes_mut().zip(limits).for_each(|(change, limit)| change.judge(limit));
        let any = |wanted| self.changes().any(|change| change.direction == Some(wanted));
        let same = self.mean.is_within(limits[0]) && self.median.is_within(limits[1]);
        self.verdict = match (any(Direction::Slower), any(Direction::Faster), self.least_p) {
            _ if self.waits_by_design => Verdict::CannotTell(Undecided::ByDesign),
            (true, true, _) => Verdict::SlowerAndFaster,
            (true, false, _) => Verdict::Slower,
            (false, true, _) => Verdict::Faster,
            (_, _, None) => Verdict::CannotTell(Undecided::FewCalls),
            (_, _, Some(least)) if least * family as f64 >= FALSE_ALARM => {
                Verdict::CannotTell(Undecided::ManyRows)
            }
            _ if same => Verdict::Same,
            _ => Verdict::CannotTell(Undecided::Wide),
        };
        self.judge_causes();
    }

    /// Causes are judged only where the whole changed: those of equals are not searched for chance differences.
    fn judge_causes(&mut self) {
        let changed = self.direction().is_some();
        let p: Vec<f64> = self.causes.iter().map(|cause| cause.change.p.unwrap_or(1.0)).collect();
        for (cause, p) in self.causes.iter_mut().zip(holm(&p)) {
            cause.change.p = cause.change.p.filter(|_| changed).map(|_| p);
            cause.change.judge(0.0);
        }
    }

    /// The way in which the row changed; slower, if it became slower and faster.
    #[must_use]
    pub fn direction(&self) -> Option<Direction> {
        match self.verdict {
            Verdict::Slower | Verdict::SlowerAndFaster => Some(Direction::Slower),
            Verdict::Faster => Some(Direction::Faster),
            Verdict::Same | Verdict::CannotTell(_) => None,
        }
    }

    /// Slower rows by what they cost, faster ones by what they save, others by their time; then those that wait by design.
    pub(crate) fn by_cost(one: &Self, other: &Self) -> Ordering {
        let rank = |row: &Self| match row.direction() {
            Some(Direction::Slower) => 0,
            Some(Direction::Faster) => 1,
            None if row.waits_by_design => 3,
            None => 2,
        };
        let weight = |row: &Self| match row.direction() {
            Some(Direction::Slower) => row.cost_ns,
            Some(Direction::Faster) => -row.cost_ns,
            None => row.b.total_ns as f64,
        };
        let by_weight = || weight(other).total_cmp(&weight(one));
        rank(one).cmp(&rank(other)).then_with(by_weight).then_with(|| one.name.cmp(&other.name))
    }
}
