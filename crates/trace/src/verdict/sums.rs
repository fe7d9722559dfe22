//! Room: where the time of many transactions went, in memory that does not grow with their number.
//! Not here: one transaction's causes (`slow`).
//!
//! Durations fall into buckets of 1/16 of an octave, each with its sum for each cause. So the slowest
//! hundredth has its own sums without anybody knowing beforehand how slow that is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::slow::label;
use crate::event::Names;
use crate::model::Transaction;

/// One cause's share of a sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The cause's name.
    pub cause: String,
    /// Nanoseconds.
    pub ns: u64,
    /// Of the whole, 0 to 1.
    pub share: f64,
}

/// Where the time of some transactions went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    /// How many they are. Of "the slowest hundredth" it may be some more, as many as are alike in their
    /// duration to a sixteenth of an octave.
    pub calls: u64,
    /// Nanoseconds of all of them.
    pub ns: u64,
    /// The shortest of them.
    pub min_ns: u64,
    /// Their median, exact to 5 %.
    pub p50_ns: u64,
    /// The 99th percentile, exact to 5 %.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The parts; together the whole. The largest first.
    pub shares: Vec<Share>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    calls: u64,
    ns: u64,
    min: u64,
    max: u64,
    causes: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    buckets: BTreeMap<u32, Bucket>,
}

/// The bucket of a duration: 16 in an octave.
fn bucket_of(ns: u64) -> u32 {
    if ns < 16 {
        return u32::try_from(ns).unwrap_or(0);
    }
    let octave = ns.ilog2();
    let sixteenth = u32::try_from((ns >> (octave - 4)) & 15).unwrap_or(0);
    (octave - 3) * 16 + sixteenth
}

impl Sums {
    pub(super) fn add(&mut self, call: &Transaction, names: &Names) {
        let ns = call.ns();
        let bucket = self.buckets.entry(bucket_of(ns)).or_default();
        bucket.min = if bucket.calls == 0 { ns } else { bucket.min.min(ns) };
        bucket.max = bucket.max.max(ns);
        bucket.calls += 1;
        bucket.ns = bucket.ns.saturating_add(ns);
        for part in &call.parts {
            *bucket.causes.entry(label(part, call, names)).or_default() += part.ns();
        }
    }

    /// The sum of the slowest; `share` is how many of all, 0 to 1.
    pub(super) fn sum(&self, share: f64) -> Sum {
        let all: u64 = self.buckets.values().map(|bucket| bucket.calls).sum();
        let wanted = portion(all, share);
        let mut sum = Sum::default();
        let mut causes: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut taken: Vec<&Bucket> = Vec::new();
        for bucket in self.buckets.values().rev() {
            if sum.calls >= wanted {
                break;
            }
            sum.calls += bucket.calls;
            sum.ns = sum.ns.saturating_add(bucket.ns);
            sum.max_ns = sum.max_ns.max(bucket.max);
            sum.min_ns = bucket.min;
            for (cause, ns) in &bucket.causes {
                *causes.entry(cause).or_default() += ns;
            }
            taken.push(bucket);
        }
        sum.p50_ns = quantile(&taken, sum.calls, 0.5);
        sum.p99_ns = quantile(&taken, sum.calls, 0.01);
        sum.shares = causes
            .into_iter()
            .map(|(cause, ns)| Share { cause: cause.to_owned(), ns, share: ratio(ns, sum.ns) })
            .collect();
        sum.shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
        sum
    }
}

/// The duration that `share` of all are slower than. `buckets` begin with the slowest.
fn quantile(buckets: &[&Bucket], all: u64, share: f64) -> u64 {
    let mut left = portion(all, share);
    for bucket in buckets {
        if left <= bucket.calls {
            // The middle of what is in there.
            return bucket.min.midpoint(bucket.max);
        }
        left -= bucket.calls;
    }
    0
}

/// At least one of some.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rounded"
)]
fn portion(all: u64, share: f64) -> u64 {
    ((all as f64 * share).ceil() as u64).min(all).max(u64::from(all > 0))
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for ns in (0..5000_u64).chain([1 << 20, (1 << 20) + (1 << 16), u64::MAX]) {
            let bucket = bucket_of(ns);
            assert!(bucket >= last, "{ns}");
            last = bucket;
        }
        assert_eq!(bucket_of(1 << 20) + 1, bucket_of((1 << 20) + (1 << 16)));
        assert_eq!((bucket_of(15), bucket_of(16), bucket_of(17)), (15, 16, 17));
    }
}
