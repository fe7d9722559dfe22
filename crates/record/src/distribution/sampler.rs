//! Records samples without allocating: all memory is allocated before the first sample.
//! Not here: the form that a record stores (`super`).

use super::{Distribution, HIGHEST_BUCKET, SIGNIFICANT_DIGITS};
use hdrhistogram::Histogram;

/// Recorder of samples in clock units, of fixed size (about 270 KiB), for one thread.
#[derive(Debug, Clone)]
pub struct Sampler {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u64,
    overflow: u64,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler::new()
    }
}

impl Sampler {
    /// Allocates and touches all memory that it will use, so that recording neither allocates nor faults.
    pub fn new() -> Sampler {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_BUCKET, SIGNIFICANT_DIGITS)
            .expect("bounds and digits are constants a histogram accepts");
        histogram.clear();
        Sampler { histogram, min: u64::MAX, max: 0, sum: 0, overflow: 0 }
    }

    /// Records one sample. A value above the last bucket is counted in that bucket and as overflow; minimum, maximum
    /// and sum stay exact.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
        self.overflow += u64::from(value > HIGHEST_BUCKET);
        self.histogram.saturating_record(value.min(HIGHEST_BUCKET));
    }

    /// Number of samples taken.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Sum of the samples taken, saturating.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.clear();
        (self.min, self.max, self.sum, self.overflow) = (u64::MAX, 0, 0, 0);
    }

    /// The recorded distribution. Allocates.
    pub fn distribution(&self) -> Distribution {
        let Sampler { histogram, min, max, sum, overflow } = self;
        let buckets = histogram.iter_recorded();
        let buckets = buckets
            .map(|step| (histogram.lowest_equivalent(step.value_iterated_to()), step.count_at_value()));
        Distribution {
            significant_digits: SIGNIFICANT_DIGITS,
            count: histogram.len(),
            min: if histogram.is_empty() { 0 } else { *min },
            max: *max,
            sum: *sum,
            overflow: *overflow,
            buckets: buckets.collect(),
        }
    }
}
