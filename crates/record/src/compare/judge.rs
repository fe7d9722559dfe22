//! Computes ratio, interval and p-value of two series, and derives the verdict.
//! Not here: the tests and intervals (`crate::stats`).

use super::group::Series;
use super::{CONFIDENCE, FALSE_ALARM, Metric, Options, SEED};
use crate::Distribution;
use crate::stats::shift::{self, Estimate, between_groups, between_pairs, student_below, student_quantile};
use crate::stats::{mean, median, rank, stddev};
use serde::Serialize;

/// Runs of the other side that a single run needs to be tested against their spread.
const ENOUGH_FOR_ONE: usize = 5;
/// Fewest repetitions of single runs that are compared as repetitions.
const LEAST_REPETITIONS: usize = 4;
/// Relative width of a histogram's buckets: a smaller spread cannot be seen.
const FINEST: f64 = 5e-4;
/// Largest distance between the quartiles of counted calls that are alike, relative to their median.
const ALIKE: f64 = 5e-3;
/// Largest rounding at which equal printed values count as equal.
const ROUNDED: f64 = 0.01;

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The data behind an interval and a probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// This many pairs of runs that were measured in turns.
    Pairs(usize),
    /// This many runs of each side.
    Runs(usize, usize),
    /// One run against the spread of this many of the other side.
    OneAgainst(usize),
    /// This many repetitions of single runs. The interval ignores the variation between runs.
    Repetitions(usize, usize),
    /// The samples of single runs, taken as independent. The interval ignores the variation between runs.
    Samples,
    /// Figures that another program stated of a single run: nothing is known of their variation.
    Stated,
    /// Counted instructions of a case most of whose calls take the same way, and so the same count, on both sides.
    CountedAlike,
    /// Counted instructions, which repeat nearly.
    Counted,
    /// Counted instructions on a kernel whose scheduler varies now and then (the finding `counting`).
    CountedLoosely,
}

impl Basis {
    /// Whether the interval covers the variation between runs.
    #[must_use]
    pub fn is_of_runs(self) -> bool {
        matches!(self, Basis::Pairs(_) | Basis::Runs(..) | Basis::OneAgainst(_))
    }

    /// Whether the interval covers only the noise within single runs.
    #[must_use]
    pub fn is_within_run(self) -> bool {
        matches!(self, Basis::Repetitions(..) | Basis::Samples)
    }

    /// Relative range within which medians of counted instructions repeat from boot to boot.
    #[must_use]
    pub fn counted_step(self) -> Option<f64> {
        match self {
            Basis::CountedAlike => Some(0.005),
            Basis::Counted => Some(0.01),
            Basis::CountedLoosely => Some(0.02),
            _ => None,
        }
    }

    /// Whether a test in a family of `family` cases can have a p-value that excludes a false alarm.
    pub(super) fn can_tell(self, family: usize) -> bool {
        self.least_p() * (family as f64) < FALSE_ALARM
    }

    /// The least p-value that a test of this basis can have.
    fn least_p(self) -> f64 {
        match self {
            Basis::Pairs(n) => 2.0 / 2f64.powi(n.min(1000) as i32),
            Basis::Runs(m, n) => 2.0 / ways(m, n),
            Basis::OneAgainst(_) => 0.0,
            Basis::Repetitions(..)
            | Basis::Samples
            | Basis::Stated
            | Basis::CountedAlike
            | Basis::Counted
            | Basis::CountedLoosely => 1.0,
        }
    }
}

/// Number of ways to choose the first of two groups.
fn ways(m: usize, n: usize) -> f64 {
    (1..=m).map(|at| (n + at) as f64 / at as f64).product()
}

/// The verdict on a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second side is slower, and chance rarely does that.
    Slower,
    /// The second side is faster, and chance rarely does that.
    Faster,
    /// No difference was found, and one of the resolution would have been found.
    Same,
    /// Neither a difference nor its absence can be shown.
    CannotTell(Undecided),
}

impl Verdict {
    /// The word in documents and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Same => "no difference",
            Verdict::CannotTell(_) => "cannot tell",
        }
    }
}

/// The reason why a verdict is "cannot tell".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The interval is too wide; more or longer runs make it narrower.
    Wide,
    /// Too few runs to exclude chance for this many cases; holds the number of runs that each side needs.
    FewRuns(usize),
    /// Only one run of a side.
    OneRun,
    /// The difference is smaller than what the figures of another program were rounded to.
    Printed,
}

impl Undecided {
    /// The reason in words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Undecided::Wide => "interval too wide".to_owned(),
            Undecided::FewRuns(needed) => format!("too few runs: {needed} of each are needed"),
            Undecided::OneRun => "one run a side".to_owned(),
            Undecided::Printed => "printed with too few digits".to_owned(),
        }
    }
}

/// The values of a metric in two series.
pub(super) struct Values<'s> {
    metric: Metric,
    a: &'s Series,
    b: &'s Series,
    of_a: Vec<f64>,
    of_b: Vec<f64>,
}

/// The second side's value divided by the first's, with interval and p-values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioEstimate {
    /// The ratio.
    pub ratio: f64,
    /// Confidence interval of the ratio; `None` if the values allow none.
    pub interval: Option<Bounds>,
    /// The data behind the interval and the p-values.
    pub basis: Basis,
    /// Probability of such a difference between equals; `None` if it cannot be computed.
    pub p: Option<f64>,
    /// Probability of so small a difference if the true one were the resolution, either way; small for equals.
    pub p_unlike: Option<f64>,
    /// Probability of so slow a second side if it kept the limit; `None` without a limit.
    pub p_beyond: Option<f64>,
    /// Probability of so fast a second side if it exceeded the limit.
    pub p_within: Option<f64>,
    /// How far off the ratio may be, relative to it, because another program printed the values with few digits.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounding: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// The basis for counted instructions of these series: a median is exact where half of all calls lie closely around it.
pub(super) fn of_alike(basis: Basis, a: &Series, b: &Series) -> Basis {
    let is_alike = |series: &Series| {
        let each = series.parts();
        !each.is_empty()
            && each.iter().all(|part| spread(&part.samples).is_some_and(|spread| spread <= ALIKE))
    };
    if basis == Basis::Counted && is_alike(a) && is_alike(b) { Basis::CountedAlike } else { basis }
}

/// Distance between the quartiles, relative to the median.
fn spread(samples: &Distribution) -> Option<f64> {
    let [low, middle, high] = [25.0, 50.0, 75.0].map(|percent| samples.percentile(percent));
    let middle = middle.filter(|middle| *middle > 0)?;
    Some((high? - low?) as f64 / middle as f64)
}

/// The values of both series; `None` if a side has none.
pub(super) fn values<'s>(a: &'s Series, b: &'s Series, metric: Metric) -> Option<Values<'s>> {
    let (of_a, of_b) = (a.values(metric), b.values(metric));
    (!of_a.is_empty() && !of_b.is_empty()).then_some(Values { metric, a, b, of_a, of_b })
}

impl Values<'_> {
    pub(super) fn level_a(&self) -> f64 {
        median(&self.of_a).unwrap_or(0.0)
    }

    pub(super) fn level_b(&self) -> f64 {
        median(&self.of_b).unwrap_or(0.0)
    }

    pub(super) fn estimate(&self, counted: Option<Basis>, options: &Options) -> RatioEstimate {
        let rounding = self.a.rounding(self.metric) + self.b.rounding(self.metric);
        RatioEstimate { rounding, ..self.exact_estimate(counted, options) }
    }

    /// The estimate if all values were exact.
    fn exact_estimate(&self, counted: Option<Basis>, options: &Options) -> RatioEstimate {
        let plain = self.level_b() / self.level_a();
        if let (Some(basis), Metric::Median) = (counted, self.metric) {
            return RatioEstimate::untested(plain, None, basis);
        }
        let pairs = self.pairs();
        if pairs.len() >= 2 {
            let estimate = between_pairs(&pairs, CONFIDENCE, SEED);
            let test = |shift: f64, sign: f64| {
                let off: Vec<f64> = pairs.iter().map(|pair| sign * (pair - shift)).collect();
                rank::signed_rank(&off)
            };
            let untested = RatioEstimate::untested(plain, estimate, Basis::Pairs(pairs.len()));
            return untested.tested(options, test(0.0, 1.0).map(|test| test.p), |shift, sign| {
                Some(test(shift, sign)?.p_greater)
            });
        }
        let (a, b) = (logs(&self.of_a), logs(&self.of_b));
        match (a.len(), b.len()) {
            (1, many) | (many, 1) if many >= ENOUGH_FOR_ONE => one_against(&a, &b, options),
            (1, _) | (_, 1) => self.within(plain),
            (m, n) => {
                let estimate = between_groups(&a, &b, CONFIDENCE, SEED);
                let test = |shift: f64, sign: f64| {
                    let off: Vec<f64> = b.iter().map(|value| sign * (value - shift)).collect();
                    let a: Vec<f64> = a.iter().map(|value| sign * value).collect();
                    rank::mann_whitney(&off, &a)
                };
                let untested = RatioEstimate::untested(plain, estimate, Basis::Runs(m, n));
                untested.tested(options, test(0.0, 1.0).map(|test| test.p), |shift, sign| {
                    Some(test(shift, sign)?.p_greater)
                })
            }
        }
    }

    /// Log ratios of paired runs, if all but a few runs are paired.
    fn pairs(&self) -> Vec<f64> {
        let values = |series: &Series| -> Vec<(String, f64)> {
            let each = series.runs.iter();
            each.filter_map(|run| Some((run.pair.clone()?, run.value(self.metric)?.ln()))).collect()
        };
        let (a, b) = (values(self.a), values(self.b));
        let ratios = a.iter().filter_map(|(pair, low)| {
            let (_, high) = b.iter().find(|(other, _)| other == pair)?;
            Some(high - low)
        });
        let ratios: Vec<f64> = ratios.collect();
        let most = self.of_a.len().max(self.of_b.len());
        if 2 * ratios.len() > most { ratios } else { Vec::new() }
    }

    /// The estimate for a single run of each side, from its own repetitions or samples.
    fn within(&self, plain: f64) -> RatioEstimate {
        let each = |series: &Series| -> Vec<f64> {
            series.parts().iter().filter_map(|part| self.metric.of(&[part])).map(f64::ln).collect()
        };
        let (a, b) = (each(self.a), each(self.b));
        if a.len() >= LEAST_REPETITIONS && b.len() >= LEAST_REPETITIONS {
            let estimate = between_groups(&a, &b, CONFIDENCE, SEED);
            return RatioEstimate::untested(plain, estimate, Basis::Repetitions(a.len(), b.len()));
        }
        if [self.a, self.b].iter().any(|side| side.parts().iter().any(|part| part.stated.is_some())) {
            return RatioEstimate::untested(plain, None, Basis::Stated);
        }
        let sides = self.a.samples().zip(self.b.samples());
        let estimate = sides.and_then(|(a, b)| {
            let (a, b) =
                (SamplingDistribution::of(&a, self.metric)?, SamplingDistribution::of(&b, self.metric)?);
            // A group size of 1000 makes Student's distribution a normal one: the samples are many.
            shift::interval(plain.ln(), 1000, 1, CONFIDENCE, SEED, |rng| {
                Some(b.draw(crate::stats::normal(rng))?.ln() - a.draw(crate::stats::normal(rng))?.ln())
            })
        });
        RatioEstimate::untested(plain, estimate, Basis::Samples)
    }
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

impl RatioEstimate {
    /// An estimate from log ratios, without a test.
    fn untested(plain: f64, found: Option<Estimate>, basis: Basis) -> RatioEstimate {
        let found = found.map(|estimate| estimate.map(f64::exp));
        RatioEstimate {
            ratio: found.map_or(plain, |estimate| estimate.value),
            interval: found.map(|estimate| Bounds { low: estimate.low, high: estimate.high }),
            basis,
            p: None,
            p_unlike: None,
            p_beyond: None,
            p_within: None,
            rounding: 0.0,
        }
    }

    /// The estimate with p-values. `above` is the probability of so high a second side, in logarithms, if the true
    /// difference were `shift`; sign -1 reverses the direction.
    fn tested(
        self,
        options: &Options,
        p: Option<f64>,
        above: impl Fn(f64, f64) -> Option<f64>,
    ) -> RatioEstimate {
        let edge = options.resolution.ln_1p();
        let not_as_slow = above(edge, -1.0);
        let not_as_fast = above(-edge, 1.0);
        RatioEstimate {
            p,
            p_unlike: not_as_slow.zip(not_as_fast).map(|(one, other)| one.max(other)),
            p_beyond: options.limit.and_then(|limit| above(limit.ln_1p(), 1.0)),
            p_within: options.limit.and_then(|limit| above(limit.ln_1p(), -1.0)),
            ..self
        }
    }
}

/// Tests one run against the spread of many, by Student's distribution.
fn one_against(a: &[f64], b: &[f64], options: &Options) -> RatioEstimate {
    let (many, one, sign) = if a.len() > b.len() { (a, b, 1.0) } else { (b, a, -1.0) };
    let (n, freedom) = (many.len(), many.len() - 1);
    let middle = mean(many).unwrap_or(0.0);
    let spread = stddev(many).unwrap_or(0.0).max(FINEST) * (1.0 + 1.0 / n as f64).sqrt();
    let off = sign * (one.first().copied().unwrap_or(middle) - middle);
    let reach = student_quantile((1.0 + CONFIDENCE) / 2.0, freedom).unwrap_or(f64::INFINITY) * spread;
    let above = |t: f64| {
        let below = student_below(t.abs(), freedom);
        if t < 0.0 { below } else { 1.0 - below }
    };
    let estimate = Estimate { value: off, low: off - reach, high: off + reach };
    let untested = RatioEstimate::untested(off.exp(), Some(estimate), Basis::OneAgainst(n));
    let p = 2.0 * above(off.abs() / spread);
    untested.tested(options, Some(p), |shift, sign| Some(above(sign * (off - shift) / spread)))
}

/// The sampling distribution of a metric within one run.
enum SamplingDistribution {
    /// The number of samples up to each value, ascending.
    Quantile {
        steps: Vec<(u64, u64)>,
        at: f64,
        spread: f64,
    },
    Mean {
        value: f64,
        spread: f64,
    },
}

impl SamplingDistribution {
    fn of(samples: &Distribution, metric: Metric) -> Option<SamplingDistribution> {
        let n = samples.count as f64;
        if let Some(at) = metric.quantile() {
            return Some(SamplingDistribution::Quantile {
                steps: samples.steps().collect(),
                at,
                spread: (at * (1.0 - at) / n).sqrt(),
            });
        }
        if metric != Metric::Mean {
            return None;
        }
        let value = samples.mean()?;
        let squares =
            samples.buckets.iter().map(|&(time, count)| (time as f64 - value).powi(2) * count as f64);
        Some(SamplingDistribution::Mean { value, spread: squares.sum::<f64>().sqrt() / n })
    }

    fn draw(&self, normal: f64) -> Option<f64> {
        let value = match self {
            SamplingDistribution::Quantile { steps, at, spread } => {
                let &(count, most) = steps.last()?;
                let wanted = (at + spread * normal).clamp(0.0, 1.0) * count as f64;
                let step = steps.partition_point(|(seen, _)| (*seen as f64) < wanted);
                steps.get(step).map_or(most, |(_, value)| *value) as f64
            }
            SamplingDistribution::Mean { value, spread } => value + spread * normal,
        };
        (value > 0.0).then_some(value)
    }
}

/// The verdict on a ratio, one of a family of `family` cases for which its p-value `p` is corrected.
pub(super) fn decide(found: &RatioEstimate, p: Option<f64>, family: usize) -> Verdict {
    let RatioEstimate { ratio, interval, basis, p_unlike, rounding, .. } = *found;
    if let Some(step) = basis.counted_step() {
        return beyond(Bounds { low: ratio, high: ratio }, step).unwrap_or(Verdict::Same);
    }
    if !basis.is_of_runs() {
        // However large the ratio: the placement by the scheduler alone can make one run take three times as long.
        return Verdict::CannotTell(Undecided::OneRun);
    }
    let Some(bounds) = interval else { return Verdict::CannotTell(Undecided::Wide) };
    if !basis.can_tell(family) {
        return Verdict::CannotTell(Undecided::FewRuns(needed(basis, family)));
    }
    if p.is_some_and(|p| p < FALSE_ALARM)
        && let Some(verdict) = beyond(bounds, 0.0)
    {
        let certain = beyond(bounds, rounding).is_some();
        return if certain { verdict } else { Verdict::CannotTell(Undecided::Printed) };
    }
    match p_unlike.is_some_and(|p| p < 1.0 - CONFIDENCE) {
        true if rounding > ROUNDED => Verdict::CannotTell(Undecided::Printed),
        true => Verdict::Same,
        false => Verdict::CannotTell(Undecided::Wide),
    }
}

/// Slower or faster, if the whole interval is beyond this share.
fn beyond(bounds: Bounds, share: f64) -> Option<Verdict> {
    if bounds.low > 1.0 + share {
        Some(Verdict::Slower)
    } else if bounds.high < 1.0 / (1.0 + share) {
        Some(Verdict::Faster)
    } else {
        None
    }
}

/// Runs that each side needs to decide this many cases.
fn needed(basis: Basis, family: usize) -> usize {
    let enough = |n: &usize| {
        let basis = if matches!(basis, Basis::Pairs(_)) { Basis::Pairs(*n) } else { Basis::Runs(*n, *n) };
        basis.can_tell(family)
    };
    (2..200).find(enough).unwrap_or(200)
}

/// Pairs of runs needed to decide this many cases.
#[must_use]
pub fn pairs_needed(cases: usize) -> usize {
    needed(Basis::Pairs(0), cases)
}
