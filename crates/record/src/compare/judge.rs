//! Room: the values of two series into a ratio with its interval and p-value; and those into a word.
//! Not here: the tests and intervals (`crate::stats`).

use super::group::Series;
use super::tail::Bounds;
use super::{Metric, Options};
use crate::Distribution;
use crate::stats::shift::{self, Estimate, between_groups, between_pairs, student_below, student_quantile};
use crate::stats::{mean, median, rank, stddev};
use serde::Serialize;

/// One run against so many others is held against their spread.
const ENOUGH_FOR_ONE: usize = 5;
/// Repetitions of single runs that are compared as such.
const LEAST_REPETITIONS: usize = 4;
/// A histogram's buckets are this wide, so less of a spread is not seen.
const FINEST: f64 = 5e-4;

/// What an interval and a probability are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// So many pairs of runs that were measured right after each other.
    Pairs(usize),
    /// So many runs of either side.
    Runs(usize, usize),
    /// One run, and the spread of so many of the other side.
    OneAgainst(usize),
    /// So many repetitions of single runs: the interval knows nothing of what differs from run to run.
    Repetitions(usize, usize),
    /// The samples of single runs: likewise, and as if they were independent.
    Samples,
    /// Counted instructions, the same each time.
    Counted,
    /// The same, on a kernel whose scheduler now and then takes another way (the finding `counting`).
    CountedLoosely,
}

impl Basis {
    /// Whether an interval covers what differs from run to run.
    #[must_use]
    pub fn is_of_runs(self) -> bool {
        matches!(self, Basis::Pairs(_) | Basis::Runs(..) | Basis::OneAgainst(_))
    }

    /// Of counted instructions: medians repeat from boot to boot within this share.
    #[must_use]
    pub fn counted_step(self) -> Option<f64> {
        match self {
            Basis::Counted => Some(0.01),
            Basis::CountedLoosely => Some(0.02),
            _ => None,
        }
    }

    /// Whether a test of a family of so many cases can have a p-value below this chance.
    pub(super) fn can_tell(self, family: usize, chance: f64) -> bool {
        self.least_p() * (family as f64) < chance
    }

    /// The least p-value that it can have.
    fn least_p(self) -> f64 {
        match self {
            Basis::Pairs(n) => 2.0 / 2f64.powi(n.min(1000) as i32),
            Basis::Runs(m, n) => 2.0 / ways(m, n),
            Basis::OneAgainst(_) => 0.0,
            Basis::Repetitions(..) | Basis::Samples | Basis::Counted | Basis::CountedLoosely => 1.0,
        }
    }
}

/// In how many ways the first of two groups can be chosen.
fn ways(m: usize, n: usize) -> f64 {
    (1..=m).map(|at| (n + at) as f64 / at as f64).product()
}

/// The word about a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second side is slower, and chance rarely makes that.
    Slower,
    /// The second side is faster, likewise.
    Faster,
    /// No difference was found, and one of the resolution would have been.
    Same,
    /// Neither can be said.
    CannotTell(Why),
}

impl Verdict {
    /// The word.
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

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The interval is too wide: more or longer runs make it narrower.
    Wide,
    /// With so few runs chance cannot be excluded for so many cases; so many of either side are needed.
    FewRuns(usize),
    /// One run of a side.
    OneRun,
}

impl Why {
    /// In words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Why::Wide => "interval too wide".to_owned(),
            Why::FewRuns(needed) => format!("too few runs: {needed} of each are needed"),
            Why::OneRun => "one run a side".to_owned(),
        }
    }
}

/// The values of two series, in the form in which they are compared.
pub(super) struct Values<'s> {
    metric: Metric,
    a: &'s Series,
    b: &'s Series,
    of_a: Vec<f64>,
    of_b: Vec<f64>,
}

/// What was made of them.
pub(super) struct Judged {
    pub(super) ratio: f64,
    pub(super) interval: Option<Bounds>,
    pub(super) basis: Basis,
    pub(super) p: Option<f64>,
    /// Chance of so small a difference if there were one of the resolution, either way.
    pub(super) p_unlike: Option<f64>,
    pub(super) p_beyond: Option<f64>,
    /// Chance of so fast a second side if it exceeded the limit.
    pub(super) p_within: Option<f64>,
}

/// The values of both; `None` if a side has none.
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

    pub(super) fn estimate(&self, counted: Option<Basis>, options: &Options) -> Judged {
        let plain = self.level_b() / self.level_a();
        if let (Some(basis), Metric::Median) = (counted, self.metric) {
            return Judged::untested(plain, None, basis);
        }
        let pairs = self.pairs();
        if pairs.len() >= 2 {
            let estimate = between_pairs(&pairs, options.confidence, options.seed);
            let test = |shift: f64, sign: f64| {
                let off: Vec<f64> = pairs.iter().map(|pair| sign * (pair - shift)).collect();
                rank::signed_rank(&off)
            };
            return Judged::tested(plain, estimate, Basis::Pairs(pairs.len()), options, &test);
        }
        let (a, b) = (logs(&self.of_a), logs(&self.of_b));
        match (a.len(), b.len()) {
            (1, many) | (many, 1) if many >= ENOUGH_FOR_ONE => one_against(&a, &b, options),
            (1, _) | (_, 1) => self.within(plain, options),
            (m, n) => {
                let estimate = between_groups(&a, &b, options.confidence, options.seed);
                let test = |shift: f64, sign: f64| {
                    let off: Vec<f64> = b.iter().map(|value| sign * (value - shift)).collect();
                    let a: Vec<f64> = a.iter().map(|value| sign * value).collect();
                    rank::mann_whitney(&off, &a)
                };
                Judged::tested(plain, estimate, Basis::Runs(m, n), options, &test)
            }
        }
    }

    /// Logarithms of the ratios of runs that belong together, if all but a few do.
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

    /// With a single run of a side: what its own repetitions or samples say.
    fn within(&self, plain: f64, options: &Options) -> Judged {
        let each = |series: &Series| -> Vec<f64> {
            series.parts().iter().filter_map(|part| self.metric.of(&[part])).map(f64::ln).collect()
        };
        let (a, b) = (each(self.a), each(self.b));
        if a.len() >= LEAST_REPETITIONS && b.len() >= LEAST_REPETITIONS {
            let estimate = between_groups(&a, &b, options.confidence, options.seed);
            return Judged::untested(plain, estimate, Basis::Repetitions(a.len(), b.len()));
        }
        let sides = self.a.samples().zip(self.b.samples());
        let estimate = sides.and_then(|(a, b)| {
            let (a, b) = (Drawn::of(&a, self.metric)?, Drawn::of(&b, self.metric)?);
            // As many as make Student's distribution a normal one: the samples are many.
            shift::interval(plain.ln(), 1000, 1, options.confidence, options.seed, |dice| {
                Some(b.draw(dice.normal())?.ln() - a.draw(dice.normal())?.ln())
            })
        });
        Judged::untested(plain, estimate, Basis::Samples)
    }
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

impl Judged {
    /// Of logarithms, without any test.
    fn untested(plain: f64, found: Option<Estimate>, basis: Basis) -> Judged {
        let found = found.map(|estimate| estimate.map(f64::exp));
        Judged {
            ratio: found.map_or(plain, |estimate| estimate.value),
            interval: found.map(|estimate| Bounds { low: estimate.low, high: estimate.high }),
            basis,
            p: None,
            p_unlike: None,
            p_beyond: None,
            p_within: None,
        }
    }

    /// Of logarithms, with a test that takes a shift off the second side and, with sign -1, turns all around.
    fn tested(
        plain: f64,
        found: Option<Estimate>,
        basis: Basis,
        options: &Options,
        test: &dyn Fn(f64, f64) -> Option<rank::RankTest>,
    ) -> Judged {
        let above = |shift: f64, sign: f64| test(shift, sign).map(|test| test.p_greater);
        let edge = options.resolution.ln_1p();
        let not_as_slow = above(edge, -1.0);
        let not_as_fast = above(-edge, 1.0);
        Judged {
            p: test(0.0, 1.0).map(|test| test.p),
            p_unlike: not_as_slow.zip(not_as_fast).map(|(one, other)| one.max(other)),
            p_beyond: options.limit.and_then(|limit| above(limit.ln_1p(), 1.0)),
            p_within: options.limit.and_then(|limit| above(limit.ln_1p(), -1.0)),
            ..Judged::untested(plain, found, basis)
        }
    }
}

/// One run held against the spread of many, by Student's distribution.
fn one_against(a: &[f64], b: &[f64], options: &Options) -> Judged {
    let (many, one, sign) = if a.len() > b.len() { (a, b, 1.0) } else { (b, a, -1.0) };
    let (n, freedom) = (many.len(), many.len() - 1);
    let middle = mean(many).unwrap_or(0.0);
    let spread = stddev(many).unwrap_or(0.0).max(FINEST) * (1.0 + 1.0 / n as f64).sqrt();
    let off = sign * (one.first().copied().unwrap_or(middle) - middle);
    let reach = student_quantile((1.0 + options.confidence) / 2.0, freedom).unwrap_or(f64::INFINITY) * spread;
    let above = |t: f64| {
        let below = student_below(t.abs(), freedom);
        if t < 0.0 { below } else { 1.0 - below }
    };
    let edge = options.resolution.ln_1p();
    let estimate = Estimate { value: off, low: off - reach, high: off + reach };
    Judged {
        p: Some(2.0 * above(off.abs() / spread)),
        p_unlike: Some(above((edge - off) / spread).max(above((off + edge) / spread))),
        p_beyond: options.limit.map(|limit| above((off - limit.ln_1p()) / spread)),
        p_within: options.limit.map(|limit| above((limit.ln_1p() - off) / spread)),
        ..Judged::untested(off.exp(), Some(estimate), Basis::OneAgainst(n))
    }
}

/// A metric of one run as it would be of other samples of the same run.
enum Drawn {
    /// How many samples are up to which value, ascending.
    Quantile {
        steps: Vec<(u64, f64)>,
        at: f64,
        spread: f64,
    },
    Mean {
        value: f64,
        spread: f64,
    },
}

impl Drawn {
    fn of(samples: &Distribution, metric: Metric) -> Option<Drawn> {
        let n = samples.count as f64;
        if let Some(at) = metric.quantile() {
            return Some(Drawn::Quantile {
                steps: samples.steps(),
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
        Some(Drawn::Mean { value, spread: squares.sum::<f64>().sqrt() / n })
    }

    fn draw(&self, normal: f64) -> Option<f64> {
        let value = match self {
            Drawn::Quantile { steps, at, spread } => {
                let &(count, most) = steps.last()?;
                let wanted = (at + spread * normal).clamp(0.0, 1.0) * count as f64;
                let step = steps.partition_point(|(seen, _)| (*seen as f64) < wanted);
                steps.get(step).map_or(most, |(_, value)| *value)
            }
            Drawn::Mean { value, spread } => value + spread * normal,
        };
        (value > 0.0).then_some(value)
    }
}

/// What a word is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    pub(super) ratio: f64,
    pub(super) interval: Option<Bounds>,
    pub(super) basis: Basis,
    /// For the whole family.
    pub(super) p: Option<f64>,
    pub(super) p_unlike: Option<f64>,
}

/// The word about a ratio, one of a family of so many.
pub(super) fn word(evidence: Evidence, family: usize, options: &Options) -> Verdict {
    let Evidence { ratio, interval, basis, p, p_unlike } = evidence;
    let chance = options.false_alarm;
    if let Some(step) = basis.counted_step() {
        return beyond(Bounds { low: ratio, high: ratio }, step).unwrap_or(Verdict::Same);
    }
    let Some(bounds) = interval else { return Verdict::CannotTell(Why::Wide) };
    if !basis.is_of_runs() {
        // However far off: where the scheduler happened to place a run makes it three times as long.
        return Verdict::CannotTell(Why::OneRun);
    }
    if !basis.can_tell(family, chance) {
        return Verdict::CannotTell(Why::FewRuns(needed(basis, family, chance)));
    }
    if p.is_some_and(|p| p < chance)
        && let Some(verdict) = beyond(bounds, 0.0)
    {
        return verdict;
    }
    match p_unlike.is_some_and(|p| p < 1.0 - options.confidence) {
        true => Verdict::Same,
        false => Verdict::CannotTell(Why::Wide),
    }
}

/// Slower or faster, if all of the interval is beyond this share.
fn beyond(bounds: Bounds, share: f64) -> Option<Verdict> {
    if bounds.low > 1.0 + share {
        Some(Verdict::Slower)
    } else if bounds.high < 1.0 / (1.0 + share) {
        Some(Verdict::Faster)
    } else {
        None
    }
}

/// How many runs of either side can tell so many cases apart.
fn needed(basis: Basis, family: usize, chance: f64) -> usize {
    let enough = |n: &usize| {
        let basis = if matches!(basis, Basis::Pairs(_)) { Basis::Pairs(*n) } else { Basis::Runs(*n, *n) };
        basis.can_tell(family, chance)
    };
    (2..200).find(enough).unwrap_or(200)
}

/// How many pairs of runs can tell so many cases apart, with this chance of a false alarm.
#[must_use]
pub fn pairs_needed(cases: usize, false_alarm: f64) -> usize {
    needed(Basis::Pairs(0), cases, false_alarm)
}
