//! Order in which a broker serves processes with pending messages: next is the one that it has spent the least time
//! on.
//! Not here: what a message is, and the clock (`serve`).
//!
//! A process that has another message each time that one is served is a *stream*: it does not wait for answers.
//! While others are served, all streams together rest after each slice of time, so that their senders sleep instead
//! of taking the CPUs. A closed loop of calls never is a stream.
//!
//! A process that begins to send starts at the level of the one served last: it gets no credit for the past. A
//! process with many connections has the turns of one.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// Number of messages without a gap that make a stream.
const STREAM: u32 = 64;
/// Time in ns that streams are served before they rest, and that they rest.
const SLICE: u64 = 150_000;
const REST: u64 = 1_000_000;
/// Time in ns after which nobody else is being served.
const QUIET: u64 = 5_000_000;

/// Number of processes above which those are forgotten whose past no longer counts.
const KNOWN_MAX: usize = 256;

/// The next step of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Serve this connection of this process.
    Serve(u32, u64),
    /// Streams rest for so many ns.
    Rest(u64),
    Nothing,
}

/// One process with connections that have messages.
#[derive(Debug, Default)]
struct Pending {
    spent: u64,
    tokens: VecDeque<u64>,
    /// Round in which it was served last, and messages without a gap until then.
    served: u64,
    streak: u32,
    at_leisure: bool,
}

impl Pending {
    fn is_stream(&self) -> bool {
        self.streak >= STREAM || self.at_leisure
    }
}

/// The pending messages of all processes.
#[derive(Debug, Default)]
pub(super) struct Turns {
    procs: HashMap<u32, Pending>,
    /// Processes with pending messages, by the time spent on them.
    order: BTreeSet<(u64, u32)>,
    /// The same of streams.
    streams: BTreeSet<(u64, u32)>,
    round: u64,
    /// Time spent on streams since their last rest, the end of that rest, and when another process was served last.
    slice: u64,
    rest_until: u64,
    others_at: Option<u64>,
    tokens: HashSet<u64>,
    /// Time spent on the process served last, before it was served.
    level: u64,
}

impl Turns {
    /// A new look at all connections begins.
    pub(super) fn look(&mut self) {
        self.round += 1;
    }

    /// A connection has a message; false if that was known.
    pub(super) fn ready(&mut self, pid: u32, token: u64) -> bool {
        if !self.tokens.insert(token) {
            return false;
        }
        let proc = self.procs.entry(pid).or_default();
        if proc.tokens.is_empty() {
            proc.spent = proc.spent.max(self.level);
            if proc.served + 1 != self.round {
                proc.streak = 0;
            }
            let list = if proc.is_stream() { &mut self.streams } else { &mut self.order };
            list.insert((proc.spent, pid));
        }
        proc.tokens.push_back(token);
        true
    }

    /// Whether no message is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether a process sends without waiting for answers.
    pub(super) fn is_stream(&self, pid: u32) -> bool {
        self.procs.get(&pid).is_some_and(Pending::is_stream)
    }

    /// The next connection to serve at time `now` in ns.
    pub(super) fn next(&mut self, now: u64) -> Next {
        let (level, pid) = match self.order.pop_first() {
            Some(first) => {
                self.others_at = Some(now);
                first
            }
            None if self.streams.is_empty() => return Next::Nothing,
            None => {
                let alone = self.others_at.is_none_or(|at| now.saturating_sub(at) > QUIET);
                if !alone && now < self.rest_until {
                    return Next::Rest(self.rest_until - now);
                }
                let Some(first) = self.streams.pop_first() else { return Next::Nothing };
                first
            }
        };
        self.level = self.level.max(level);
        let Some(proc) = self.procs.get_mut(&pid) else { return Next::Nothing };
        let Some(token) = proc.tokens.pop_front() else { return Next::Nothing };
        (proc.served, proc.streak) = (self.round, proc.streak.saturating_add(1));
        if !proc.tokens.is_empty() {
            let list = if proc.is_stream() { &mut self.streams } else { &mut self.order };
            list.insert((level, pid));
        }
        self.tokens.remove(&token);
        Next::Serve(pid, token)
    }

    /// So many ns were spent on a process, until `now`.
    pub(super) fn spent(&mut self, pid: u32, ns: u64, now: u64) {
        let Some(proc) = self.procs.get_mut(&pid) else { return };
        let old = (proc.spent, pid);
        proc.spent += ns;
        for list in [&mut self.order, &mut self.streams] {
            if list.remove(&old) {
                list.insert((proc.spent, pid));
            }
        }
        if self.procs.len() > KNOWN_MAX {
            self.sweep();
        }
        if self.is_stream(pid) {
            self.slice += ns;
            if self.slice >= SLICE {
                // A costly message has a longer rest.
                self.rest_until = now + REST * (self.slice / SLICE);
                self.slice = 0;
            }
        }
    }

    /// Whether the last request of a process had time: then its next one is served as one of a stream.
    pub(super) fn at_leisure(&mut self, pid: u32, at_leisure: bool) {
        if let Some(proc) = self.procs.get_mut(&pid) {
            proc.at_leisure = at_leisure;
        }
    }

    /// Forgets processes without pending messages whose past no longer counts.
    fn sweep(&mut self) {
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
            // A closed loop: nobody has a message at the next look.
            turns.look();
            turns.look();
            busy.iter().for_each(|(pid, token)| {
                turns.ready(*pid, *token);
            });
            let Next::Serve(pid, _) = turns.next(0) else { panic!("pending") };
            turns.procs.get_mut(&pid).expect("served").streak = 0;
            turns.spent(pid, cost(pid), 0);
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
    }

    #[test]
    fn each_connection_is_pending_once_and_in_order() {
        let mut turns = Turns::default();
        assert!(turns.ready(7, 1) && turns.ready(7, 2) && !turns.ready(7, 1));
        let three = [turns.next(0), turns.next(0), turns.next(0)];
        assert_eq!(three, [Next::Serve(7, 1), Next::Serve(7, 2), Next::Nothing]);
        turns.sweep();
        turns.spent(7, 5, 0);
        assert!(turns.is_empty());
    }

    /// Looks once, with one more message of the stream 7, and one of 8 if it `calls`; ns that a message costs.
    fn stream(turns: &mut Turns, now: u64, calls: bool, cost: u64) -> Next {
        turns.look();
        turns.ready(7, 1);
        if calls {
            turns.ready(8, 2);
        }
        let next = turns.next(now);
        if let Next::Serve(pid, _) = next {
            turns.spent(pid, cost, now + cost);
        }
        next
    }

    #[test]
    fn streams_rest_while_others_are_served_and_only_then() {
        let mut turns = Turns::default();
        // Its first messages count as another process's.
        (0..STREAM.into()).for_each(|n| {
            stream(&mut turns, n, false, 1000);
        });
        let mut alone = (6000..20_000).map(|n| stream(&mut turns, n * 1000, false, 1000));
        assert!(alone.all(|next| next == Next::Serve(7, 1)));
        assert!(turns.is_stream(7));
        // Another process calls every 100 us, for 100 ms.
        let (mut now, mut streamed, mut called) = (20_000_000, 0, 0);
        for number in 0.. {
            match stream(&mut turns, now, number % 10 == 0, 1000) {
                Next::Serve(7, _) => streamed += 1,
                Next::Serve(..) => called += 1,
                Next::Rest(ns) => assert!(ns <= REST),
                Next::Nothing => panic!("7 has messages"),
            }
            now += 10_000;
            if now > 120_000_000 {
                break;
            }
        }
        assert!(called >= 999, "{called} calls: each is served at once");
        assert!((1..9000).contains(&streamed), "{streamed}: the stream has a part");
        assert!(!turns.is_stream(8), "one that pauses is no stream");
        // A second later nobody else is there.
        assert_eq!(stream(&mut turns, now + 1_000_000_000, false, 1000), Next::Serve(7, 1));
        // One look without a message ends the stream.
        turns.look();
        turns.look();
        turns.ready(7, 1);
        assert!(!turns.is_stream(7));
        turns.at_leisure(7, true);
        assert!(turns.is_stream(7));
    }
}
