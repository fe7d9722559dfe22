//! Room: the rare long times of both sides: p99, p99.9 and the longest, each within limits that ranks give.
//! Not here: the ranks (`crate::stats::order`).
//!
//! Of six runs or more a limit is a run's own value, so it covers what differs from run to run; of fewer it is a single
//! time, as if all of them were independent, which times of one run are not.

use super::group::Series;
use super::judge::{Basis, Evidence, Verdict, values, word};
use super::{Metric, Options};
use crate::stats::median;
use crate::stats::order::quantile_ranks;
use serde::Serialize;

const METRICS: [Metric; 3] = [Metric::P99, Metric::P999, Metric::Max];
/// The tails of two sides are "no difference" within so many times the resolution: rare times vary more.
const TAIL_FACTOR: f64 = 2.0;

/// Between which values something lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The lower.
    pub low: f64,
    /// The upper.
    pub high: f64,
}

/// One quantile of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tail {
    /// Which.
    pub metric: Metric,
    /// Of the first side: the middle of its runs.
    pub a: f64,
    /// Its limits; `None` where there are too few times or runs for any.
    pub within_a: Option<Bounds>,
    /// Of the second side.
    pub b: f64,
    /// Its limits.
    pub within_b: Option<Bounds>,
    /// How many times as long in the second.
    pub ratio: f64,
    /// The interval of that.
    pub interval: Option<Bounds>,
    /// Chance of such a difference between equals.
    pub p: Option<f64>,
    /// Chance of so small a difference if there were one of twice the resolution.
    #[serde(skip)]
    pub(super) p_unlike: Option<f64>,
    /// The word; only of the p99: what is rarer is too rare.
    pub verdict: Option<Verdict>,
}

impl Tail {
    pub(super) fn judge(&mut self, basis: Basis, p: Option<f64>, family: usize, options: &Options) {
        if basis.counted_step().is_some() {
            // Medians of counts repeat. Which calls an interrupt or the end of a time slice falls into does not.
            return;
        }
        let Tail { ratio, interval, p_unlike, .. } = *self;
        let evidence = Evidence { ratio, interval, basis, p: self.p.and(p), p_unlike };
        self.verdict = Some(word(evidence, family, options));
    }
}

pub(super) fn tails(a: &Series, b: &Series, counted: Option<Basis>, options: &Options) -> Vec<Tail> {
    let wider = Options { limit: None, resolution: options.resolution * TAIL_FACTOR, ..*options };
    let tail = |metric: Metric| {
        let told = values(a, b, metric)?;
        if !is_told(a, metric) || !is_told(b, metric) {
            return None;
        }
        let estimate = told.estimate(counted, &wider);
        Some(Tail {
            metric,
            a: told.level_a(),
            within_a: within(a, metric, options.confidence),
            b: told.level_b(),
            within_b: within(b, metric, options.confidence),
            ratio: estimate.ratio,
            interval: estimate.interval,
            p: estimate.p,
            p_unlike: estimate.p_unlike,
            verdict: None,
        })
    };
    METRICS.into_iter().filter_map(tail).collect()
}

/// Whether each run has times beyond the quantile.
fn is_told(series: &Series, metric: Metric) -> bool {
    let Some(quantile) = metric.quantile() else { return true };
    let calls = |run: &super::group::OfRun| run.parts.iter().map(|part| part.samples.count).sum::<u64>();
    series.runs.iter().all(|run| calls(run) as f64 * (1.0 - quantile) >= 1.0 - 1e-9)
}

/// Limits of a side's value.
fn within(series: &Series, metric: Metric, confidence: f64) -> Option<Bounds> {
    let mut of_runs = series.values(metric);
    let ranks = quantile_ranks(of_runs.len() as u64, 0.5, confidence);
    if let (Some(low), Some(high)) = (ranks.low, ranks.high) {
        of_runs.sort_by(f64::total_cmp);
        let at = |rank: u64| of_runs.get(rank as usize - 1).copied();
        return Some(Bounds { low: at(low)?, high: at(high)? });
    }
    let samples = series.samples()?;
    let ranks = quantile_ranks(samples.count, metric.quantile()?, confidence);
    let share =
        |rank: u64| samples.percentile(rank as f64 * 100.0 / samples.count as f64).map(|time| time as f64);
    let middle = median(&of_runs)?;
    Some(Bounds { low: share(ranks.low?)?.min(middle), high: share(ranks.high?)?.max(middle) })
}
