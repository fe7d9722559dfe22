//! Limits the number of slices in a picture, and numbers the pairs of threads that call each other.
//! Not here: collecting the data (`watch`).

use super::data::{Hop, Slice, ThreadLane};
use crate::verdict::Role;

/// Numbers each group of threads that call each other, in order of their first call.
pub(super) fn number_pairs(threads: &mut [ThreadLane], hops: &[Hop]) {
    let mut next = 1;
    for hop in hops {
        let of = |threads: &[ThreadLane], tid: i32| {
            threads.iter().find(|thread| thread.who.tid == tid).map_or(0, |thread| thread.pair)
        };
        let known = of(threads, hop.caller).max(of(threads, hop.server));
        let pair = if known > 0 { known } else { next };
        next = next.max(pair + 1);
        for thread in threads.iter_mut() {
            if thread.pair == 0 && [hop.caller, hop.server].contains(&thread.who.tid) {
                thread.pair = pair;
            }
        }
    }
    if next <= 2 {
        // A single pair needs no number and no hue.
        threads.iter_mut().for_each(|thread| thread.pair = 0);
    }
    threads.sort_by_key(|thread| (thread.pair, thread.role == Role::Server));
}

/// Limits the number of slices per lane.
pub(super) struct SliceLimiter {
    most: usize,
    dropped: usize,
}

impl SliceLimiter {
    /// Creates a limiter of `most` slices per lane.
    pub(super) fn new(most: usize) -> Self {
        Self { most, dropped: 0 }
    }

    /// Number of slices dropped so far.
    pub(super) fn dropped(&self) -> usize {
        self.dropped
    }

    /// The longest slices, in time order.
    pub(super) fn longest<T: PartialEq>(&mut self, slices: impl Iterator<Item = Slice<T>>) -> Vec<Slice<T>> {
        let mut kept: Vec<Slice<T>> = Vec::new();
        for slice in slices {
            match kept.last_mut() {
                Some(last) if last.end == slice.begin && last.what == slice.what => last.end = slice.end,
                _ => kept.push(slice),
            }
            // Bounds the memory to twice the limit.
            if kept.len() >= 2 * self.most.max(1) {
                self.thin(&mut kept);
            }
        }
        self.thin(&mut kept);
        kept
    }

    fn thin<T>(&mut self, slices: &mut Vec<Slice<T>>) {
        if slices.len() <= self.most {
            return;
        }
        self.dropped += slices.len() - self.most;
        slices.sort_by_key(|slice| std::cmp::Reverse(slice.ns()));
        slices.truncate(self.most);
        slices.sort_by_key(|slice| slice.begin);
    }
}
