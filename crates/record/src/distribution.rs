//! The distribution of a set of samples, as a sparse histogram that a record stores.
//! Not here: recording samples (`sampler`).
//! Facts: HdrHistogram's layout: with d significant digits, values below 2·10^d (rounded up to a
//! power of two) have a bucket each; above, buckets double in width each time values double.

mod sampler;

pub use sampler::Sampler;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Significant digits of every recorded histogram: percentiles are exact within 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;
/// Values above this many clock units (one hour in ns) are counted in the last bucket.
pub const HIGHEST_BUCKET: u64 = 3_600_000_000_000;

/// A set of samples in clock units. Count, minimum, maximum and sum are exact; other values are within
/// `significant_digits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Precision of the buckets, 1 to 5.
    pub significant_digits: u8,
    /// Number of samples.
    pub count: u64,
    /// The minimum; 0 without samples.
    pub min: u64,
    /// The maximum; 0 without samples.
    pub max: u64,
    /// Sum of all samples, saturating (at 584 years in ns).
    pub sum: u64,
    /// Number of samples above the last bucket's range, which are counted in that bucket.
    #[serde(default)]
    pub overflow: u64,
    /// `[value, count]`, ascending: the bucket's lowest value and its number of samples. Only buckets with samples.
    #[serde(serialize_with = "crate::one_line::on_one_line")]
    pub buckets: Vec<(u64, u64)>,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            significant_digits: SIGNIFICANT_DIGITS,
            count: 0,
            min: 0,
            max: 0,
            sum: 0,
            overflow: 0,
            buckets: Vec::new(),
        }
    }
}

impl Distribution {
    /// The distribution of these samples.
    pub fn of(samples: impl IntoIterator<Item = u64>) -> Distribution {
        let mut sampler = Sampler::new();
        samples.into_iter().for_each(|sample| sampler.record(sample));
        sampler.distribution()
    }

    /// Exact mean in clock units; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Nearest-rank percentile in clock units: never below the exact one, and above it by at most the precision of
    /// the buckets. `None` without samples.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let wanted = units::rank(self.count, percent);
        let step = self.steps().find(|(seen, _)| *seen >= wanted);
        Some(step.map_or(self.max, |(_, value)| value))
    }

    /// Pairs of the number of samples up to a value and that value, ascending.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().scan(0u64, |seen, &(value, count)| {
            *seen = seen.saturating_add(count);
            let top = value.saturating_add(bucket_width(value, self.significant_digits) - 1);
            Some((*seen, top.clamp(self.min, self.max)))
        })
    }

    /// All samples of several distributions as one; `None` without any, or if their precisions differ.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Distribution>) -> Option<Distribution> {
        let mut parts = parts.into_iter().filter(|part| part.count > 0);
        let mut whole = parts.next()?.clone();
        let mut buckets: BTreeMap<u64, u64> = whole.buckets.drain(..).collect();
        for part in parts {
            if part.significant_digits != whole.significant_digits {
                return None;
            }
            whole.count = whole.count.saturating_add(part.count);
            whole.sum = whole.sum.saturating_add(part.sum);
            whole.overflow = whole.overflow.saturating_add(part.overflow);
            whole.min = whole.min.min(part.min);
            whole.max = whole.max.max(part.max);
            for &(value, count) in &part.buckets {
                let slot = buckets.entry(value).or_default();
                *slot = slot.saturating_add(count);
            }
        }
        whole.buckets = buckets.into_iter().collect();
        Some(whole)
    }
}

/// Width of the bucket that holds `value`: 1 in the exact range, else a power of two.
pub(crate) fn bucket_width(value: u64, significant_digits: u8) -> u64 {
    let exact_below = (2 * 10u64.pow(u32::from(significant_digits.min(5)))).next_power_of_two();
    let value_bits = 64 - value.leading_zeros();
    1 << value_bits.saturating_sub(exact_below.trailing_zeros())
}

#[cfg(test)]
mod tests;
