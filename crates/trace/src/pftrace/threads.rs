//! Names and processes of threads, by time: thread IDs are used again.
//! Not here: where they come from (`packet`, `decode`).

use std::collections::HashMap;

use crate::event::{Name, Names, Task};
use crate::hash::FastHash;

/// Maximum number of threads remembered.
const MOST: usize = 1 << 20;
/// Maximum number of lives of one thread ID.
const MOST_LIVES: usize = 1 << 10;

/// A thread ID's thread from some time on.
#[derive(Clone, Copy, Debug)]
struct Life {
    since: u64,
    comm: Name,
    tgid: i32,
}

/// What is known of a thread ID.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Name in the last event.
    comm: Name,
    /// Process of its creation, if the trace has that.
    born: Option<i32>,
    /// From process trees.
    first: Option<Life>,
    later: Vec<Life>,
}

/// Known threads.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    known: HashMap<i32, Thread, FastHash>,
    idle: Name,
}

impl Threads {
    pub(super) fn new(names: &mut Names) -> Self {
        Self { known: HashMap::default(), idle: names.intern("<idle>") }
    }

    /// Learns from a process tree of time `ts`.
    pub(super) fn learn(&mut self, tid: i32, tgid: i32, comm: Name, ts: u64) {
        if tid <= 0 || tgid <= 0 {
            return;
        }
        let Some(thread) = self.at(tid) else { return };
        let Some(last) = thread.later.last_mut().or(thread.first.as_mut()) else {
            thread.first = Some(Life { since: ts, comm, tgid });
            return;
        };
        if last.tgid == tgid {
            if comm.is_some() {
                last.comm = comm;
            }
        } else if thread.later.len() < MOST_LIVES {
            thread.later.push(Life { since: ts, comm, tgid });
        }
    }

    /// Learns a thread's name from an event.
    pub(super) fn meet(&mut self, task: &Task) {
        self.rename(task.tid, task.comm);
    }

    /// A thread has this name from now on.
    pub(super) fn rename(&mut self, tid: i32, comm: Name) {
        if tid > 0
            && comm.is_some()
            && let Some(thread) = self.at(tid)
        {
            thread.comm = comm;
        }
    }

    /// A thread is created by a thread, in its process or as a process of its own.
    pub(super) fn born(&mut self, tid: i32, comm: Name, by: i32, in_process: bool, ts: u64) {
        let tgid = if in_process { self.of(by, ts).1 } else { Some(tid) };
        if let Some(thread) = self.at(tid) {
            (thread.comm, thread.born) = (comm, tgid);
        }
    }

    /// Name and process of a thread at this time.
    pub(super) fn of(&self, tid: i32, ts: u64) -> (Name, Option<i32>) {
        if tid == 0 {
            return (self.idle, None);
        }
        let Some(thread) = self.known.get(&tid) else { return (Name::NONE, None) };
        let after = thread.later.partition_point(|life| life.since <= ts);
        let life = after.checked_sub(1).and_then(|at| thread.later.get(at)).or(thread.first.as_ref());
        let comm =
            if thread.comm.is_some() { thread.comm } else { life.map_or(Name::NONE, |life| life.comm) };
        (comm, thread.born.or(life.map(|life| life.tgid)))
    }

    fn at(&mut self, tid: i32) -> Option<&mut Thread> {
        if self.known.len() >= MOST && !self.known.contains_key(&tid) {
            return None;
        }
        Some(self.known.entry(tid).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Prio;

    #[test]
    fn a_thread_id_that_is_used_again_has_the_process_of_that_time() {
        let mut names = Names::default();
        let (old, new) = (names.intern("old"), names.intern("new"));
        let mut threads = Threads::new(&mut names);
        threads.learn(7, 1, old, 100);
        threads.learn(7, 1, Name::NONE, 200);
        threads.learn(7, 2, new, 300);
        assert_eq!(threads.of(7, 50), (old, Some(1)));
        assert_eq!(threads.of(7, 299), (old, Some(1)));
        assert_eq!(threads.of(7, 300), (new, Some(2)));
        assert_eq!((threads.of(8, 0), names.text(threads.of(0, 0).0)), ((Name::NONE, None), "<idle>"));
    }

    #[test]
    fn events_know_names_and_processes_better() {
        let mut names = Names::default();
        let (table, seen) = (names.intern("table"), names.intern("seen"));
        let mut threads = Threads::new(&mut names);
        threads.learn(7, 1, table, 100);
        threads.meet(&Task { tid: 7, comm: seen, prio: Prio(120) });
        assert_eq!(threads.of(7, 100), (seen, Some(1)));
        threads.born(8, seen, 7, true, 100);
        threads.born(7, table, 8, false, 200);
        assert_eq!((threads.of(8, 200).1, threads.of(7, 200)), (Some(1), (table, Some(7))));
    }
}
