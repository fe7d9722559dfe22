//! Order in which a broker serves processes with pending messages: next is the one that it has spent the least time
//! on.
//! Not here: what a message is, and the clock (`serve`).
//!
//! A process that begins to send starts at the level of the one served last: it gets no credit for the past. A
//! process with many connections has the turns of one.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// One process with connections that have messages.
#[derive(Debug, Default)]
struct Pending {
    spent: u64,
    tokens: VecDeque<u64>,
}

/// The pending messages of all processes.
#[derive(Debug, Default)]
pub(super) struct Turns {
    procs: HashMap<u32, Pending>,
    /// Processes with pending messages, by the time spent on them.
    order: BTreeSet<(u64, u32)>,
    tokens: HashSet<u64>,
    /// Time spent on the process served last, before it was served.
    level: u64,
}

impl Turns {
    /// A connection has a message; false if that was known.
    pub(super) fn ready(&mut self, pid: u32, token: u64) -> bool {
        if !self.tokens.insert(token) {
            return false;
        }
        let proc = self.procs.entry(pid).or_default();
        if proc.tokens.is_empty() {
            proc.spent = proc.spent.max(self.level);
            self.order.insert((proc.spent, pid));
        }
        proc.tokens.push_back(token);
        true
    }

    /// Whether no message is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The next connection to serve, and its process.
    pub(super) fn next(&mut self) -> Option<(u32, u64)> {
        let (level, pid) = self.order.pop_first()?;
        self.level = level;
        let proc = self.procs.get_mut(&pid)?;
        let token = proc.tokens.pop_front()?;
        if !proc.tokens.is_empty() {
            self.order.insert((level, pid));
        }
        self.tokens.remove(&token);
        Some((pid, token))
    }

    /// So many ns were spent on a process.
    pub(super) fn spent(&mut self, pid: u32, ns: u64) {
        let Some(proc) = self.procs.get_mut(&pid) else { return };
        let listed = self.order.remove(&(proc.spent, pid));
        proc.spent += ns;
        if listed {
            self.order.insert((proc.spent, pid));
        }
    }

    /// Forgets processes without pending messages whose past no longer counts.
    pub(super) fn sweep(&mut self) {
        let level = self.level;
        self.procs.retain(|_, proc| !proc.tokens.is_empty() || proc.spent > level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves `count` messages that cost their process `cost(pid)`; all connections in `busy` always have one more.
    fn serve(turns: &mut Turns, busy: &[(u32, u64)], count: usize, cost: impl Fn(u32) -> u64) -> Vec<u32> {
        let one = |_| {
            busy.iter().for_each(|(pid, token)| {
                turns.ready(*pid, *token);
            });
            let (pid, _) = turns.next().expect("pending");
            turns.spent(pid, cost(pid));
            pid
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_thousand_connections_of_a_process_have_the_turns_of_one() {
        let mut turns = Turns::default();
        let mut busy: Vec<_> = (1..=1000).map(|token| (7, token)).collect();
        busy.push((8, 1001));
        let served = serve(&mut turns, &busy, 100, |_| 10);
        assert_eq!(served.iter().filter(|pid| **pid == 8).count(), 50);
    }

    #[test]
    fn who_needs_less_time_is_served_more_often() {
        let mut turns = Turns::default();
        let served = serve(&mut turns, &[(7, 1), (8, 2)], 110, |pid| if pid == 7 { 1000 } else { 100 });
        assert_eq!(served.iter().filter(|pid| **pid == 7).count(), 10);
    }

    #[test]
    fn one_that_comes_late_is_next_but_has_no_credit() {
        let mut turns = Turns::default();
        serve(&mut turns, &[(7, 1)], 1000, |_| 10);
        let served = serve(&mut turns, &[(7, 1), (8, 2)], 10, |_| 10);
        assert_eq!(served.iter().filter(|pid| **pid == 8).count(), 5, "{served:?}");
        assert!(served[..2].contains(&8));
        turns.sweep();
    }

    #[test]
    fn each_connection_is_pending_once_and_in_order() {
        let mut turns = Turns::default();
        assert!(turns.ready(7, 1) && turns.ready(7, 2) && !turns.ready(7, 1));
        assert_eq!([turns.next(), turns.next(), turns.next()], [Some((7, 1)), Some((7, 2)), None]);
        turns.sweep();
        turns.spent(7, 5);
        assert!(turns.is_empty());
    }
}
