//! Distributions, compared with exact answers from sorted samples.

use super::*;
use fastrand::Rng;
use hdrhistogram::Histogram;

/// Nearest-rank percentile of sorted samples.
fn exact_percentile(sorted: &[u64], percent: f64) -> u64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}

#[test]
fn percentiles_lie_within_a_thousandth_above_the_exact_ones() {
    let mut random = Rng::with_seed(0x9E37_79B9_7F4A_7C15);
    for scale in [100, 10_000, 3_000_000, 900_000_000_000] {
        let mut samples: Vec<u64> = (0..10_007).map(|_| random.u64(..scale)).collect();
        let distribution = Distribution::of(samples.iter().copied());
        samples.sort_unstable();
        for percent in [0.0, 0.1, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let exact = exact_percentile(&samples, percent);
            let ours = distribution.percentile(percent).expect("there are samples");
            assert!(
                ours >= exact && ours as f64 <= exact as f64 * 1.001,
                "p{percent} below {scale}: {ours} for {exact}"
            );
        }
    }
}

#[test]
fn percentiles_agree_with_those_of_a_histogram() {
    let mut random = Rng::with_seed(7);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, HIGHEST_BUCKET, 3).unwrap();
    let samples: Vec<u64> = (0..5_000).map(|_| random.u64(..1_000_000)).collect();
    samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
    let distribution = Distribution::of(samples);
    for percent in [1.0, 50.0, 99.0, 99.99] {
        let theirs = histogram.value_at_percentile(percent).min(distribution.max);
        assert_eq!(distribution.percentile(percent), Some(theirs), "p{percent}");
    }
}

#[test]
fn bucket_width_is_the_histograms_own() {
    for digits in 1..=5 {
        let histogram = Histogram::<u64>::new_with_bounds(1, u64::MAX >> 1, digits).unwrap();
        for shift in 0..62 {
            for value in [1u64 << shift, (1 << shift) + (1 << shift) / 3, (2 << shift) - 1] {
                let width = bucket_width(value, digits);
                let theirs = histogram.highest_equivalent(value) - histogram.lowest_equivalent(value) + 1;
                assert_eq!(width, theirs, "{value} with {digits} digits");
            }
        }
    }
}

#[test]
fn least_greatest_sum_and_mean_are_exact() {
    let distribution = Distribution::of([1_000_001, 70_003, 3_000_007]);
    assert_eq!((distribution.min, distribution.max), (70_003, 3_000_007));
    assert_eq!(distribution.sum, 4_070_011);
    assert_eq!(distribution.mean(), Some(4_070_011.0 / 3.0));
    assert_eq!(distribution.percentile(100.0), Some(3_000_007));
}

#[test]
fn of_nothing_there_are_no_statistics() {
    let nothing = Distribution::of([]);
    assert_eq!(nothing, Distribution::default());
    assert_eq!((nothing.mean(), nothing.percentile(50.0)), (None, None));
    assert_eq!(Distribution::merged([&nothing]), None);
}

#[test]
fn samples_beyond_the_last_bucket_are_counted_and_keep_their_size() {
    let mut sampler = Sampler::new();
    for value in [5, HIGHEST_BUCKET, HIGHEST_BUCKET + 1, u64::MAX] {
        sampler.record(value);
    }
    let distribution = sampler.distribution();
    assert_eq!((distribution.count, distribution.overflow), (4, 2));
    assert_eq!((distribution.min, distribution.max, distribution.sum), (5, u64::MAX, u64::MAX));
    assert_eq!(distribution.buckets.last().map(|bucket| bucket.1), Some(3));
}

#[test]
fn a_cleared_sampler_has_forgotten_everything() {
    let mut sampler = Sampler::new();
    sampler.record(17);
    sampler.clear();
    assert_eq!((sampler.count(), sampler.sum()), (0, 0));
    assert_eq!(sampler.distribution(), Distribution::default());
}

#[test]
fn merging_is_the_same_as_sampling_all_at_once() {
    let mut random = Rng::with_seed(99);
    let (mut parts, mut all) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let samples: Vec<u64> = (0..500).map(|_| random.u64(..5_000_000)).collect();
        parts.push(Distribution::of(samples.iter().copied()));
        all.extend(samples);
    }
    assert_eq!(Distribution::merged(&parts), Some(Distribution::of(all)));
    let coarse = Distribution { significant_digits: 2, ..Distribution::of([1]) };
    assert_eq!(Distribution::merged([&coarse, &parts[0]]), None);
}
