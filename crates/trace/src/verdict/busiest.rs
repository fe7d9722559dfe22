//! Finds the burst of consecutive calls made by the most client-server pairs.
//! Not here: slow calls (`slow`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::model::Transaction;

/// Number of calls in a burst: few enough to distinguish in a picture.
const IN_A_ROW: usize = 16;

/// Burst of calls that ended consecutively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBurst {
    /// Begin of the first call, in nanoseconds of the trace clock.
    pub begin_ns: u64,
    /// Nanoseconds from then until the last call ended.
    pub ns: u64,
    /// Number of calls.
    pub calls: u64,
    /// Number of pairs of client process and server process that made the calls and exchanged calls with no other
    /// process in the burst.
    pub pairs: u64,
}

/// Finds the busiest burst in constant memory.
#[derive(Clone, Debug, Default)]
pub(super) struct BurstFinder {
    last: VecDeque<BurstCall>,
    found: Option<CallBurst>,
}

#[derive(Clone, Copy, Debug)]
struct BurstCall {
    pair: (i32, i32),
    begin: u64,
    end: u64,
}

impl BurstFinder {
    pub(super) fn add(&mut self, call: &Transaction) {
        let pair = (call.client.tgid.unwrap_or(call.client.tid), call.to_proc);
        self.put(BurstCall { pair, begin: call.begin, end: call.end });
    }

    fn put(&mut self, made: BurstCall) {
        if self.last.len() == IN_A_ROW {
            self.last.pop_front();
        }
        self.last.push_back(made);
        let new = self.burst();
        // A shorter burst is busier, unless it is short because it is not full yet.
        let better = |old: &CallBurst| {
            (new.calls, new.pairs, std::cmp::Reverse(new.ns))
                > (old.calls, old.pairs, std::cmp::Reverse(old.ns))
        };
        if self.found.as_ref().is_none_or(better) {
            self.found = Some(new);
        }
    }

    pub(super) fn found(&self) -> Option<CallBurst> {
        self.found
    }

    fn burst(&self) -> CallBurst {
        let begin_ns = self.last.iter().map(|made| made.begin).min().unwrap_or(0);
        let end = self.last.iter().map(|made| made.end).max().unwrap_or(0);
        let pairs =
            self.last.iter().enumerate().filter(|(index, made)| self.is_new_pair(*index, made)).count();
        CallBurst {
            begin_ns,
            ns: end.saturating_sub(begin_ns),
            calls: self.last.len() as u64,
            pairs: pairs as u64,
        }
    }

    /// Whether it is the first of several calls of an exclusive pair. Many clients of one server, as at a start, are
    /// not pairs.
    fn is_new_pair(&self, index: usize, made: &BurstCall) -> bool {
        let (client, server) = made.pair;
        let touches =
            |other: &BurstCall| [client, server].iter().any(|one| [other.pair.0, other.pair.1].contains(one));
        let same = |other: &BurstCall| other.pair == made.pair;
        !self.last.iter().take(index).any(same)
            && self.last.iter().skip(index + 1).any(same)
            && !self.last.iter().any(|other| !same(other) && touches(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(calls: &[(i32, i32, u64)]) -> CallBurst {
        let mut busiest = BurstFinder::default();
        for (client, server, begin) in calls {
            busiest.put(BurstCall { pair: (*client, *server), begin: *begin, end: begin + 10 });
        }
        busiest.found().expect("there are calls")
    }

    #[test]
    fn pairs_of_their_own_are_busier_than_many_clients_of_one_server() {
        let start: Vec<_> = (0..30_u64).map(|n| (i32::try_from(n).expect("small"), 99, n * 10)).collect();
        assert_eq!(found(&start).pairs, 0);
        let steady = (0..40_u64).map(|n| {
            (
                1 + i32::try_from(n % 3).expect("small"),
                51 + i32::try_from(n % 3).expect("small"),
                1000 + n * 7,
            )
        });
        let burst = found(&[start, steady.collect()].concat());
        assert_eq!((burst.pairs, burst.calls), (3, IN_A_ROW as u64));
        assert!(burst.begin_ns >= 1000 && burst.ns == 7 * (IN_A_ROW as u64 - 1) + 10, "{burst:?}");
    }

    #[test]
    fn among_equal_bursts_the_shortest_is_found() {
        let calls: Vec<_> =
            (0..60_u64).map(|n| (1, 2, if n < 30 { n * 100 } else { 10_000 + n * 20 })).collect();
        assert!(found(&calls).begin_ns >= 10_000);
    }
}
