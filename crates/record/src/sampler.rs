//! Room: taking samples while the clock runs: all memory is there before the first one.
//! Not here: the document's form of it (`crate::distribution`).

use crate::distribution::{Distribution, HIGHEST_BUCKET, SIGNIFICANT_DIGITS};
use hdrhistogram::Histogram;

/// A recorder of samples in clock units, of fixed size (about 270 KiB), for one thread.
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
    /// Allocates all the memory it will ever use, and touches it, so that recording neither
    /// allocates nor faults.
    pub fn new() -> Sampler {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_BUCKET, SIGNIFICANT_DIGITS)
            .expect("bounds and digits are constants a histogram accepts");
        histogram.clear();
        Sampler { histogram, min: u64::MAX, max: 0, sum: 0, overflow: 0 }
    }

    /// Takes one sample. A value above the last bucket is counted there and as overflow; least,
    /// greatest and sum stay exact.
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

    /// Forgets all samples; keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.clear();
        (self.min, self.max, self.sum, self.overflow) = (u64::MAX, 0, 0, 0);
    }

    /// What was recorded, as it stands in a document. Allocates.
    pub fn distribution(&self) -> Distribution {
        let empty = self.histogram.is_empty();
        Distribution {
            min: if empty { 0 } else { self.min },
            max: self.max,
            sum: self.sum,
            overflow: self.overflow,
            ..Distribution::from_histogram(&self.histogram)
        }
    }
}
