//! The metrics of a run: which of its figures is compared.
//! Not here: comparing.

use super::group::MergedRepetition;
use crate::Distribution;
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

    /// Its value over these repetitions; `None` if that is not above 0.
    pub(crate) fn of(self, parts: &[&MergedRepetition]) -> Option<f64> {
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
