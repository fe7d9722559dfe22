//! Tail latencies of both sides: p99, p99.9 and maximum, with confidence limits from ranks.
//! Not here: the ranks (`crate::stats::order`).
//!
//! With six runs or more the limits are values of whole runs and cover the variation between runs. With fewer they
//! are single samples, taken as independent although samples of one run are not.

use super::group::Series;
use super::judge::{Basis, Bounds, RatioEstimate, Verdict, decide, values};
use super::{CONFIDENCE, Metric, Options};
use crate::stats::median;
use crate::stats::order::quantile_ranks;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

const METRICS: [Metric; 3] = [Metric::P99, Metric::P999, Metric::Max];
/// The verdict on a tail uses this multiple of the resolution: rare times vary more.
const TAIL_FACTOR: f64 = 2.0;

/// The comparison of one tail figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tail {
    /// The figure.
    pub metric: Metric,
    /// Median over the first side's runs.
    pub a: f64,
    /// Confidence limits of `a`; `None` with too few samples or runs.
    pub within_a: Option<Bounds>,
    /// Median over the second side's runs.
    pub b: f64,
    /// Confidence limits of `b`.
    pub within_b: Option<Bounds>,
    /// The second side's value divided by the first's; the resolution of its `p_unlike` is twice the usual one.
    #[serde(flatten, serialize_with = "without_basis")]
    pub estimate: RatioEstimate,
    /// The verdict; only for p99, as rarer times are too rare for one.
    pub verdict: Option<Verdict>,
}

/// Serialises what documents say of a tail: its basis is that of its case.
fn without_basis<S: Serializer>(found: &RatioEstimate, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("ratio", &found.ratio)?;
    map.serialize_entry("interval", &found.interval)?;
    map.serialize_entry("p", &found.p)?;
    map.end()
}

impl Tail {
    /// Sets the verdict; `basis` is that of the case, `p` is corrected for the family.
    pub(super) fn judge(&mut self, basis: Basis, p: Option<f64>, family: usize) {
        if basis.counted_step().is_some() {
            // Medians of counts repeat, tails do not: it varies which calls an interrupt or the end of a time slice
            // hits.
            return;
        }
        let found = RatioEstimate { basis, ..self.estimate };
        self.verdict = Some(decide(&found, self.estimate.p.and(p), family));
    }
}

pub(super) fn tails(a: &Series, b: &Series, counted: Option<Basis>, options: &Options) -> Vec<Tail> {
    let wider = Options { limit: None, resolution: options.resolution * TAIL_FACTOR, ..*options };
    let tail = |metric: Metric| {
        let told = values(a, b, metric)?;
        if !is_told(a, metric) || !is_told(b, metric) {
            return None;
        }
        Some(Tail {
            metric,
            a: told.level_a(),
            within_a: within(a, metric),
            b: told.level_b(),
            within_b: within(b, metric),
            estimate: told.estimate(counted, &wider),
            verdict: None,
        })
    };
    METRICS.into_iter().filter_map(tail).collect()
}

/// Whether each run has samples beyond the quantile.
fn is_told(series: &Series, metric: Metric) -> bool {
    let Some(quantile) = metric.quantile() else { return true };
    if series.parts().iter().any(|part| part.stated.is_some()) {
        return true;
    }
    let calls =
        |run: &super::group::RunRepetitions| run.parts.iter().map(|part| part.samples.count).sum::<u64>();
    series.runs.iter().all(|run| calls(run) as f64 * (1.0 - quantile) >= 1.0 - 1e-9)
}

/// Confidence limits of one side's value.
fn within(series: &Series, metric: Metric) -> Option<Bounds> {
    let mut of_runs = series.values(metric);
    let ranks = quantile_ranks(of_runs.len() as u64, 0.5, CONFIDENCE);
    if let (Some(low), Some(high)) = (ranks.low, ranks.high) {
        of_runs.sort_by(f64::total_cmp);
        let at = |rank: u64| of_runs.get(rank as usize - 1).copied();
        return Some(Bounds { low: at(low)?, high: at(high)? });
    }
    let samples = series.samples()?;
    let ranks = quantile_ranks(samples.count, metric.quantile()?, CONFIDENCE);
    let share =
        |rank: u64| samples.percentile(rank as f64 * 100.0 / samples.count as f64).map(|time| time as f64);
    let middle = median(&of_runs)?;
    Some(Bounds { low: share(ranks.low?)?.min(middle), high: share(ranks.high?)?.max(middle) })
}
