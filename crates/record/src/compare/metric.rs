//! Room: which one number of a run is compared.
//! Not here: comparing.

use super::group::Part;
use crate::Distribution;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// One number of a run's single times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The middle one.
    Median,
    /// Their mean.
    Mean,
    /// The least.
    Min,
    /// What 90 % of them do not exceed.
    P90,
    /// What 95 % of them do not exceed.
    P95,
    /// What 99 % of them do not exceed.
    P99,
    /// What 99.9 % of them do not exceed.
    P999,
    /// The longest.
    Max,
    /// CPU time of the measuring process for each transaction.
    Cpu,
}

impl Metric {
    /// All of them.
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

    /// The share of times below it; `None` for what is no quantile within a sample.
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

    /// Its value in these parts together, which is above 0; `None` if there is none.
    pub(crate) fn of(self, parts: &[&Part]) -> Option<f64> {
        let per_call = |total: &dyn Fn(&Part) -> u64| {
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
