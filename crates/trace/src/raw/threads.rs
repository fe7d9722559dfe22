//! Names and processes of threads, from the recording's tables and from events.
//! Facts: `saved_cmdlines` and `saved_tgids` of tracefs: `TID NAME` and `TID TGID` lines.

use crate::event::{Name, Names, Task};
use crate::hash::FastHash;
use std::collections::HashMap;

/// Maximum number of threads remembered: more than Linux has pids by default.
const MOST: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    comm: Name,
    /// From the kernel's table, which has the last name: more useful than the name at creation.
    saved: bool,
    tgid: Option<i32>,
}

/// Known threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    known: HashMap<i32, Thread, FastHash>,
    idle: Name,
}

impl Threads {
    pub(super) fn new(cmdlines: &[u8], tgids: &[u8], names: &mut Names) -> Self {
        let mut threads = Self { known: HashMap::default(), idle: names.intern("<idle>") };
        for (tid, comm) in pairs(cmdlines) {
            // The kernel's placeholder for a lost name.
            if comm != "<...>" {
                let comm = names.intern(comm);
                threads.at(tid, |thread| *thread = Thread { comm, saved: true, ..*thread });
                names.known.set_thread(tid, comm, None);
            }
        }
        for (tid, tgid) in pairs(tgids) {
            if let Ok(tgid) = tgid.trim().parse() {
                names.known.set_thread(tid, Name::NONE, Some(tgid));
                threads.at(tid, |thread| thread.tgid = Some(tgid));
            }
        }
        threads
    }

    /// Learns a thread's name from an event.
    pub(super) fn meet(&mut self, task: &Task) {
        if task.tid != 0 && task.comm.is_some() {
            self.at(task.tid, |thread| {
                if !thread.saved {
                    thread.comm = task.comm;
                }
            });
        }
    }

    /// Name and process of a thread.
    pub(super) fn of(&self, tid: i32) -> (Name, Option<i32>) {
        if tid == 0 {
            return (self.idle, None);
        }
        self.known.get(&tid).map_or((Name::NONE, None), |thread| (thread.comm, thread.tgid))
    }

    fn at(&mut self, tid: i32, change: impl FnOnce(&mut Thread)) {
        if self.known.len() < MOST || self.known.contains_key(&tid) {
            change(self.known.entry(tid).or_default());
        }
    }
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (i32, &str)> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| {
        let (tid, rest) = line.split_once(' ')?;
        Some((tid.parse().ok()?, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Prio;

    #[test]
    fn the_kernels_table_goes_before_names_in_events() {
        let mut names = Names::default();
        let mut threads = Threads::new(b"7 Binder:1_1\n8 <...>\nx y\n", b"7 1\n8 z\n", &mut names);
        let (young, old) = (names.intern("young"), names.intern("Binder:1_1"));
        for tid in [7, 8, 0] {
            threads.meet(&Task { tid, comm: young, prio: Prio(120) });
        }
        assert_eq!(threads.of(7), (old, Some(1)));
        assert_eq!(threads.of(8), (young, None));
        assert_eq!(threads.of(9), (Name::NONE, None));
        assert_eq!(names.text(threads.of(0).0), "<idle>");
    }
}
