//! Estimates the shift between two groups, with a bootstrap confidence interval.
//! Not here: whether the groups differ (`super::rank`).
//! Facts: Hodges and Lehmann 1963; percentile bootstrap, widened for few values by Student's distribution: T.
//! Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 4.3.

use super::{median, normal_below};
use fastrand::Rng;

/// Resamples of an interval; fewer for large groups, which cost more and need fewer.
const RESAMPLES: usize = 2_000;
const LEAST_RESAMPLES: usize = 400;
const MOST_WORK: usize = 20_000_000;

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// The lower limit.
    pub low: f64,
    /// The upper limit.
    pub high: f64,
}

impl Estimate {
    /// The estimate in other units, by a monotonically increasing function.
    #[must_use]
    pub fn map(self, to: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: to(self.value), low: to(self.low), high: to(self.high) }
    }
}

/// Hodges-Lehmann estimate of how much higher the second group lies: the median of all differences between a value of
/// it and one of the first. `None` if a group is empty.
#[must_use]
pub fn hodges_lehmann(first: &[f64], second: &[f64]) -> Option<f64> {
    let mut differences = Vec::with_capacity(first.len() * second.len());
    differences.extend(second.iter().flat_map(|high| first.iter().map(move |low| high - low)));
    middle(&mut differences)
}

/// Pseudo-median of paired differences: the median of the means of any two of them, or of one with itself. `None`
/// without values.
#[must_use]
pub fn pseudo_median(differences: &[f64]) -> Option<f64> {
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (at, one) in differences.iter().enumerate() {
        means.extend(differences[at..].iter().map(|other| (one + other) / 2.0));
    }
    middle(&mut means)
}

/// [`hodges_lehmann`] with its interval; `None` with fewer than two values in a group.
#[must_use]
pub fn between_groups(first: &[f64], second: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    let value = hodges_lehmann(first, second)?;
    let (mut a, mut b) = (first.to_vec(), second.to_vec());
    interval(value, first.len().min(second.len()), first.len() * second.len(), confidence, seed, |rng| {
        a.iter_mut().for_each(|slot| *slot = first[rng.usize(..first.len())]);
        b.iter_mut().for_each(|slot| *slot = second[rng.usize(..second.len())]);
        hodges_lehmann(&a, &b)
    })
}

/// [`pseudo_median`] with its interval; `None` with fewer than two pairs.
#[must_use]
pub fn between_pairs(differences: &[f64], confidence: f64, seed: u64) -> Option<Estimate> {
    let value = pseudo_median(differences)?;
    let n = differences.len();
    let mut drawn = differences.to_vec();
    interval(value, n, n * n / 2, confidence, seed, |rng| {
        drawn.iter_mut().for_each(|slot| *slot = differences[rng.usize(..n)]);
        pseudo_median(&drawn)
    })
}

/// Percentile bootstrap interval of a statistic with this `value`, for `n` values in the smaller group. `draw` computes it from
/// a resample; `work` is the number of values that it looks at. `None` with fewer than two values.
#[must_use]
pub fn interval(
    value: f64,
    n: usize,
    work: usize,
    confidence: f64,
    seed: u64,
    mut draw: impl FnMut(&mut Rng) -> Option<f64>,
) -> Option<Estimate> {
    let outside = outside(n, confidence)?;
    let mut rng = Rng::with_seed(seed);
    let times = (MOST_WORK / work.max(1)).clamp(LEAST_RESAMPLES, RESAMPLES);
    let mut drawn = (0..times).map(|_| draw(&mut rng)).collect::<Option<Vec<f64>>>()?;
    drawn.sort_by(f64::total_cmp);
    let last = drawn.len() - 1;
    let low = (outside * last as f64).floor() as usize;
    Some(Estimate { value, low: drawn[low].min(value), high: drawn[last - low].max(value) })
}

/// Share of resamples beyond each end of the interval.
fn outside(n: usize, confidence: f64) -> Option<f64> {
    let freedom = n.checked_sub(1).filter(|freedom| *freedom > 0)?;
    let t = student_quantile((1.0 + confidence) / 2.0, freedom)?;
    let wider = t * (n as f64 / freedom as f64).sqrt();
    Some(1.0 - normal_below(wider.min(9.0)))
}

/// Quantile of Student's distribution for a probability from 0.5 up to below 1; `None` for others or without degrees
/// of freedom.
#[must_use]
pub fn student_quantile(probability: f64, freedom: usize) -> Option<f64> {
    if !(0.5..1.0).contains(&probability) || freedom == 0 {
        return None;
    }
    // With one degree of freedom and a probability next to 1 it is unbounded.
    let (mut low, mut high) = (0.0, 1e9);
    while high - low > 1e-12 * (1.0 + low) {
        let middle = (low + high) / 2.0;
        if student_below(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((low + high) / 2.0)
}

/// Cumulative distribution function of Student's distribution for `t` of at least 0.
/// Facts: Abramowitz and Stegun 26.7.3 and 26.7.4: sums of half as many terms as degrees of freedom.
#[must_use]
pub fn student_below(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, square) = (angle.sin(), angle.cos().powi(2));
    let odd = freedom % 2 == 1;
    let mut term = if odd { angle.cos() } else { 1.0 };
    let mut sum = 0.0;
    let mut step = if odd { 1 } else { 0 };
    while step + 2 <= freedom {
        sum += term;
        step += 2;
        term *= square * (step - 1) as f64 / step as f64;
    }
    let within = if odd { (angle + sine * sum) * 2.0 / std::f64::consts::PI } else { sine * sum };
    0.5 + within / 2.0
}

/// Median; reorders the values.
fn middle(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.len() < 3 {
        return median(values);
    }
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    if odd {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower + upper) / 2.0)
}
