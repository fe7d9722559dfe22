//! Figures that another program stated of its calls, where the single times are not known.
//! Not here: reading such outputs (`crate::import`).

use serde::{Deserialize, Serialize};

/// Marks a run that another program measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The program whose output it is, e.g. `Google Benchmark`.
    pub program: String,
    /// What the output does not tell, and other remarks for a reader.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A figure as a program printed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its value in clock units.
    pub value: f64,
    /// The true value is nearer to it than this, in clock units; 0 if it was printed exactly.
    #[serde(default)]
    pub within: f64,
}

impl Figure {
    /// A figure that was printed exactly.
    #[must_use]
    pub fn exact(value: f64) -> Figure {
        Figure { value, within: 0.0 }
    }

    /// A figure that was printed with this number of significant digits.
    #[must_use]
    pub fn printed(value: f64, digits: i32) -> Figure {
        let within = match value.abs() > 0.0 {
            true => 10f64.powi(value.abs().log10().floor() as i32 + 1 - digits) / 2.0,
            false => 0.0,
        };
        Figure { value, within }
    }

    /// The same in other units.
    #[must_use]
    pub fn times(self, factor: f64) -> Figure {
        Figure { value: self.value * factor, within: self.within * factor }
    }

    /// Half the range of possible true values, relative to the value.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.value > 0.0 { self.within / self.value } else { 0.0 }
    }
}

/// What a program stated of the calls of a repetition, in clock units. `None`: it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stated {
    /// Number of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Mean time of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Figure>,
    /// Mean CPU time of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Figure>,
    /// Shortest time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Figure>,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<Figure>,
    /// 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<Figure>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<Figure>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<Figure>,
    /// Longest time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Figure>,
}

impl Stated {
    /// All figures.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        let Stated { calls: _, mean, cpu, min, p50, p90, p95, p99, max } = *self;
        [mean, cpu, min, p50, p90, p95, p99, max].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn what_is_printed_with_few_digits_is_known_roughly() {
        for (value, digits, within) in
            [(0.16, 2, 0.005), (2.8, 2, 0.05), (12.0, 2, 0.5), (2.833_75, 6, 0.000_005), (0.0, 6, 0.0)]
        {
            let figure = Figure::printed(value, digits);
            assert!((figure.within - within).abs() < 1e-12, "{figure:?}");
        }
        let (small, large) = (Figure::printed(0.2, 2), Figure::printed(0.2, 2).times(1e6));
        assert!((small.share() - large.share()).abs() < 1e-12);
    }
}
