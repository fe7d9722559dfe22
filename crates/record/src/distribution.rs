//! Room: the spread of single samples, sparse, as it stands in a document.
//! Not here: recording while the clock runs (`crate::sampler`).
//! Facts: HdrHistogram's layout: with d significant digits, values below 2·10^d (rounded up to a
//! power of two) have a bucket each; above, buckets double in width each time values double.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Significant digits of everything we record: any percentile is within 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;
/// Values above this many clock units (one hour in ns) are counted in the last bucket.
pub const HIGHEST_BUCKET: u64 = 3_600_000_000_000;

/// A set of samples in clock units: exact count, least, greatest and sum; the rest within
/// `significant_digits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Precision of the buckets, 1 to 5.
    pub significant_digits: u8,
    /// Number of samples.
    pub count: u64,
    /// The least sample; 0 when there is none.
    pub min: u64,
    /// The greatest sample; 0 when there is none.
    pub max: u64,
    /// Sum of all samples, saturating (at 584 years of ns).
    pub sum: u64,
    /// How many samples lay above the last bucket's range and are counted in it.
    #[serde(default)]
    pub overflow: u64,
    /// `[value, count]`, ascending: the least value of the bucket, and its samples; only buckets
    /// that have any.
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
        let mut sampler = crate::Sampler::new();
        samples.into_iter().for_each(|sample| sampler.record(sample));
        sampler.distribution()
    }

    /// The sparse form of a histogram. Its least, greatest and sum are only as exact as the
    /// histogram's buckets; a `Sampler` keeps them exactly.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Distribution {
        let buckets: Vec<(u64, u64)> = histogram
            .iter_recorded()
            .map(|step| (histogram.lowest_equivalent(step.value_iterated_to()), step.count_at_value()))
            .collect();
        let sum = buckets
            .iter()
            .map(|&(value, count)| histogram.median_equivalent(value).saturating_mul(count))
            .fold(0, u64::saturating_add);
        Distribution {
            significant_digits: histogram.sigfig(),
            count: histogram.len(),
            min: buckets.first().map_or(0, |_| histogram.min()),
            max: buckets.last().map_or(0, |_| histogram.max()),
            sum,
            overflow: 0,
            buckets,
        }
    }

    /// A histogram with the same buckets; `None` when the digits or values are none a histogram
    /// can hold (a document that was read has been checked for that).
    pub fn to_histogram(&self) -> Option<Histogram<u64>> {
        let highest = self.buckets.last().map_or(0, |&(value, _)| value).max(HIGHEST_BUCKET);
        let mut histogram = Histogram::new_with_bounds(1, highest, self.significant_digits).ok()?;
        for &(value, count) in &self.buckets {
            histogram.record_n(value, count).ok()?;
        }
        Some(histogram)
    }

    /// Exact mean in clock units; `None` when there is no sample.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least value that `percent` of the samples do not exceed, in clock units, never below
    /// the true one and at most the buckets' precision above it. `None` when there is no sample.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let wanted = (percent.clamp(0.0, 100.0) / 100.0 * self.count as f64).ceil() as u64;
        let mut seen = 0u64;
        for &(value, count) in &self.buckets {
            seen = seen.saturating_add(count);
            if seen >= wanted.max(1) {
                let top = value.saturating_add(bucket_width(value, self.significant_digits) - 1);
                return Some(top.clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// Ascending, how many samples do not exceed which value, as [`Self::percentile`] has it.
    pub(crate) fn steps(&self) -> Vec<(u64, f64)> {
        let mut seen = 0u64;
        let step = |&(value, count): &(u64, u64)| {
            seen = seen.saturating_add(count);
            let top = value.saturating_add(bucket_width(value, self.significant_digits) - 1);
            (seen, top.clamp(self.min, self.max) as f64)
        };
        self.buckets.iter().map(step).collect()
    }

    /// All samples of several distributions as one; `None` when there is none or their precisions
    /// differ.
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

/// Width of the bucket that holds `value`: 1 where buckets are exact, else a power of two.
pub(crate) fn bucket_width(value: u64, significant_digits: u8) -> u64 {
    let exact_below = (2 * 10u64.pow(u32::from(significant_digits.min(5)))).next_power_of_two();
    let value_bits = 64 - value.leading_zeros();
    1 << value_bits.saturating_sub(exact_below.trailing_zeros())
}

#[cfg(test)]
mod tests;
