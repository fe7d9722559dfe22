//! Room: the calls in a row that the most pairs of client and server made at once.
//! Not here: which calls are slow (`slow`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::model::Transaction;

/// How many calls a stretch has: few enough to be told apart in a picture.
const IN_A_ROW: usize = 16;

/// Some calls that ended one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// When the first of them began, in nanoseconds of the trace's clock.
    pub begin_ns: u64,
    /// From then until the last of them ended.
    pub ns: u64,
    /// How many they are.
    pub calls: u64,
    /// How many pairs of client process and server process made them that called nobody else meanwhile and were
    /// called by nobody else.
    pub pairs: u64,
}

/// Looks for the busiest stretch; its memory does not grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Busiest {
    last: VecDeque<Made>,
    found: Option<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Made {
    pair: (i32, i32),
    begin: u64,
    end: u64,
}

impl Busiest {
    pub(super) fn add(&mut self, call: &Transaction) {
        let pair = (call.client.tgid.unwrap_or(call.client.tid), call.to_proc);
        self.put(Made { pair, begin: call.begin, end: call.end });
    }

    fn put(&mut self, made: Made) {
        if self.last.len() == IN_A_ROW {
            self.last.pop_front();
        }
        self.last.push_back(made);
        let new = self.stretch();
        // Shorter is busier; but a stretch that is not full yet is not short for that.
        let better = |old: &Stretch| {
            (new.calls, new.pairs, std::cmp::Reverse(new.ns))
                > (old.calls, old.pairs, std::cmp::Reverse(old.ns))
        };
        if self.found.as_ref().is_none_or(better) {
            self.found = Some(new);
        }
    }

    pub(super) fn found(&self) -> Option<Stretch> {
        self.found
    }

    fn stretch(&self) -> Stretch {
        let begin_ns = self.last.iter().map(|made| made.begin).min().unwrap_or(0);
        let end = self.last.iter().map(|made| made.end).max().unwrap_or(0);
        let pairs =
            self.last.iter().enumerate().filter(|(index, made)| self.is_new_pair(*index, made)).count();
        Stretch {
            begin_ns,
            ns: end.saturating_sub(begin_ns),
            calls: self.last.len() as u64,
            pairs: pairs as u64,
        }
    }

    /// Whether it is the first call of a pair that makes several, neither of which has anything to do with others:
    /// many clients of one server, as at a start, are no pairs.
    fn is_new_pair(&self, index: usize, made: &Made) -> bool {
        let (client, server) = made.pair;
        let touches =
            |other: &Made| [client, server].iter().any(|one| [other.pair.0, other.pair.1].contains(one));
        let same = |other: &Made| other.pair == made.pair;
        !self.last.iter().take(index).any(same)
            && self.last.iter().skip(index + 1).any(same)
            && !self.last.iter().any(|other| !same(other) && touches(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(calls: &[(i32, i32, u64)]) -> Stretch {
        let mut busiest = Busiest::default();
        for (client, server, begin) in calls {
            busiest.put(Made { pair: (*client, *server), begin: *begin, end: begin + 10 });
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
        let stretch = found(&[start, steady.collect()].concat());
        assert_eq!((stretch.pairs, stretch.calls), (3, IN_A_ROW as u64));
        assert!(stretch.begin_ns >= 1000 && stretch.ns == 7 * (IN_A_ROW as u64 - 1) + 10, "{stretch:?}");
    }

    #[test]
    fn of_stretches_alike_the_shortest_is_found() {
        let calls: Vec<_> =
            (0..60_u64).map(|n| (1, 2, if n < 30 { n * 100 } else { 10_000 + n * 20 })).collect();
        assert!(found(&calls).begin_ns >= 10_000);
    }
}
