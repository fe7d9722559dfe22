//! The metrics of a run: which of its figures is compared.
//! Not here: comparing.

use super::repetition::MergedRepetition;
use crate::Distribution;
use crate::schema::{Figure, Run, Stated};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A figure computed from a run's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Median.
    Median,
    /// Arithmetic mean.
    Mean,
    /// Minimum.
    Min,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Maximum.
    Max,
    /// CPU time of the measuring process for each transaction.
    Cpu,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 9] = [
        Metric::Median,
        Metric::Mean,
        Metric::Min,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::Max,
        Metric::Cpu,
    ];

    /// The word used in documents and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Median => "median",
            Metric::Mean => "mean",
            Metric::Min => "min",
            Metric::P90 => "p90",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::P999 => "p999",
            Metric::Max => "max",
            Metric::Cpu => "cpu",
        }
    }

    /// The quantile, 0 to 1; `None` for a metric that is not a quantile.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        Some(match self {
            Metric::Median => 0.5,
            Metric::P90 => 0.9,
            Metric::P95 => 0.95,
            Metric::P99 => 0.99,
            Metric::P999 => 0.999,
            Metric::Mean | Metric::Min | Metric::Max | Metric::Cpu => return None,
        })
    }

    /// The metric that is compared if none was asked for: the median, or the mean where another program measured, whose medians
    /// are not known or coarse.
    #[must_use]
    pub fn usual<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Metric {
        let others = runs.into_iter().any(|run| run.imported.is_some());
        if others { Metric::Mean } else { Metric::Median }
    }

    /// Its value among the figures that another program stated.
    pub(super) fn stated(self, stated: &Stated) -> Option<Figure> {
        match self {
            Metric::Mean => stated.mean,
            Metric::Cpu => stated.cpu,
            Metric::Min => stated.min,
            Metric::Max => stated.max,
            Metric::Median => stated.p50,
            Metric::P90 => stated.p90,
            Metric::P95 => stated.p95,
            Metric::P99 => stated.p99,
            Metric::P999 => None,
        }
    }

    /// Its value over repetitions of which only stated figures are known. Quantiles of several cannot be told from those of each.
    fn over_stated(self, parts: &[&MergedRepetition]) -> Option<f64> {
        let each = parts.iter().map(|part| Some((self.stated(part.stated.as_ref()?)?.value, part.calls)));
        let each: Vec<(f64, u64)> = each.collect::<Option<_>>()?;
        let values = each.iter().map(|(value, _)| *value);
        match self {
            Metric::Mean | Metric::Cpu => {
                let calls: f64 = each.iter().map(|(_, calls)| *calls as f64).sum();
                (calls > 0.0)
                    .then(|| each.iter().map(|(value, calls)| value * *calls as f64).sum::<f64>() / calls)
            }
            Metric::Min => values.min_by(f64::total_cmp),
            Metric::Max => values.max_by(f64::total_cmp),
            _ => match each.as_slice() {
                [(value, _)] => Some(*value),
                _ => None,
            },
        }
    }

    /// Its value over these repetitions; `None` if that is not above 0.
    pub(crate) fn of(self, parts: &[&MergedRepetition]) -> Option<f64> {
        if parts.iter().any(|part| part.stated.is_some()) {
            return self.over_stated(parts).filter(|value| *value > 0.0);
        }
        let per_call = |total: &dyn Fn(&MergedRepetition) -> u64| {
            let calls: u64 = parts.iter().map(|part| part.calls).sum();
            let total: u64 = parts.iter().map(|part| total(part)).sum();
            (calls > 0).then(|| total as f64 / calls as f64)
        };
        let value = match self {
            Metric::Mean => per_call(&|part| part.real)?,
            Metric::Cpu => per_call(&|part| part.cpu)?,
            _ => {
                let samples = Distribution::merged(parts.iter().map(|part| &part.samples))?;
                match self.quantile() {
                    Some(quantile) => samples.percentile(quantile * 100.0)? as f64,
                    None if self == Metric::Min => samples.min as f64,
                    None => samples.max as f64,
                }
            }
        };
        (value > 0.0).then_some(value)
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Metric, String> {
        let known = Metric::ALL.into_iter().find(|metric| metric.name() == text);
        let names = || Metric::ALL.map(Metric::name).join(", ");
        known.ok_or_else(|| format!("no metric {text:?}; there are {}", names()))
    }
}
