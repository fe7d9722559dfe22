//! Sums where the time of many transactions went, in constant memory.
//! Not here: one transaction's causes (`slow`).
//!
//! Durations are in buckets of 1/16 octave, each with its sum per cause. This gives the sums of the slowest hundredth
//! without knowing its threshold beforehand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::slow::ratio;
use crate::cause::Label;
use crate::model::Transaction;

/// Share of one cause in a sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The cause.
    pub cause: Label,
    /// Nanoseconds.
    pub ns: u64,
    /// Share of the whole, 0 to 1.
    pub share: f64,
}

/// Where the time of some transactions went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    /// Number of transactions. For "the slowest hundredth" it may be larger, because whole buckets are counted.
    pub calls: u64,
    /// Total nanoseconds.
    pub ns: u64,
    /// Shortest duration.
    pub min_ns: u64,
    /// Median, exact to 5 %.
    pub p50_ns: u64,
    /// 99th percentile, exact to 5 %.
    pub p99_ns: u64,
    /// Longest duration.
    pub max_ns: u64,
    /// Shares of the causes, largest first; they add up to the whole.
    pub shares: Vec<Share>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    calls: u64,
    ns: u64,
    min: u64,
    max: u64,
    causes: BTreeMap<Label, u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    buckets: BTreeMap<u32, Bucket>,
}

/// Bucket of a duration: 16 per octave.
fn bucket_of(ns: u64) -> u32 {
    if ns < 16 {
        return u32::try_from(ns).unwrap_or(0);
    }
    let octave = ns.ilog2();
    let sixteenth = u32::try_from((ns >> (octave - 4)) & 15).unwrap_or(0);
    (octave - 3) * 16 + sixteenth
}

impl Sums {
    pub(super) fn add(&mut self, call: &Transaction) {
        let ns = call.ns();
        let bucket = self.buckets.entry(bucket_of(ns)).or_default();
        bucket.min = if bucket.calls == 0 { ns } else { bucket.min.min(ns) };
        bucket.max = bucket.max.max(ns);
        bucket.calls += 1;
        bucket.ns = bucket.ns.saturating_add(ns);
        for part in &call.parts {
            *bucket.causes.entry(part.cause.label()).or_default() += part.ns();
        }
    }

    /// Sum of the slowest transactions; `share` is their share of all, 0 to 1.
    pub(super) fn sum(&self, share: f64) -> Sum {
        let all: u64 = self.buckets.values().map(|bucket| bucket.calls).sum();
        let wanted = portion(all, share);
        let mut sum = Sum::default();
        let mut causes: BTreeMap<Label, u64> = BTreeMap::new();
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
                *causes.entry(*cause).or_default() += ns;
            }
            taken.push(bucket);
        }
        sum.p50_ns = percentile(&taken, sum.calls, 50.0);
        sum.p99_ns = percentile(&taken, sum.calls, 99.0);
        sum.shares =
            causes.into_iter().map(|(cause, ns)| Share { cause, ns, share: ratio(ns, sum.ns) }).collect();
        sum.shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
        sum
    }
}

/// Nearest-rank percentile, rounded to the middle of its bucket. `slowest_first` holds `all` durations.
fn percentile(slowest_first: &[&Bucket], all: u64, percent: f64) -> u64 {
    let rank = units::rank(all, percent);
    let mut seen = 0;
    let bucket = slowest_first.iter().rev().find(|bucket| {
        seen += bucket.calls;
        seen >= rank
    });
    bucket.map_or(0, |bucket| bucket.min.midpoint(bucket.max))
}

/// Share of a number, at least one if the number is not zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rounded"
)]
fn portion(all: u64, share: f64) -> u64 {
    ((all as f64 * share).ceil() as u64).min(all).max(u64::from(all > 0))
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
