//! Room: which thread belongs to which process, as far as the trace says it, as Perfetto's process tree.
//! Not here: names of threads while they run, which Perfetto takes from `sched_switch`.
//! Facts: `process_tree.proto`. Perfetto draws threads whose process it does not know in no process, and its
//! table of binder calls needs both processes.

use std::collections::HashMap;
use std::io::Write;

use super::wire::{Message, Output};
use super::{SEQUENCE_FTRACE, packet};
use crate::event::{Binder, Event, Flavour, Kind, Name, Names};
use crate::model::world::Spreading;

/// The most threads that are known; only a forged trace has more.
const MOST_THREADS: usize = 1 << 18;
/// The most transactions of which it is known where they go.
const MOST_SENT: usize = 1 << 16;
/// What is new is written when it has so many bytes.
const FULL: usize = 16 << 10;

/// `TracePacket.process_tree`.
const PROCESS_TREE: u32 = 2;

/// What is known of threads.
#[derive(Debug, Default)]
pub(super) struct Tree {
    process: HashMap<i32, i32, Spreading>,
    /// The process that a transaction goes to, until somebody receives it.
    sent: HashMap<(bool, i32), i32>,
    new: Message,
    /// Before the first event, so that all of them find their threads in their processes.
    since: Option<u64>,
}

impl Tree {
    /// A thread's process, where it is known.
    pub(super) fn process_of(&self, tid: i32) -> Option<i32> {
        self.process.get(&tid).copied()
    }

    /// Takes what an event says of threads.
    pub(super) fn take<W: Write>(&mut self, event: &Event, names: &Names, out: &mut Output<W>) {
        self.since.get_or_insert(event.ts.saturating_sub(1));
        if let Some(tgid) = event.tgid {
            self.learn(event.tid, tgid, event.comm, names);
        }
        if let Kind::Binder(flavour, binder) = &event.kind {
            self.sent(event, *flavour, binder, names);
        }
        if self.new.len() >= FULL {
            self.flush(out);
        }
    }

    /// Who receives a transaction is of the process that it was sent to.
    fn sent(&mut self, event: &Event, flavour: Flavour, binder: &Binder, names: &Names) {
        let key = |debug_id| (flavour == Flavour::Embedded, debug_id);
        match *binder {
            Binder::Transaction(sent) => {
                if self.sent.len() >= MOST_SENT {
                    self.sent.clear();
                }
                self.sent.insert(key(sent.debug_id), sent.to_proc);
            }
            Binder::Received { debug_id } => {
                if let Some(process) = self.sent.remove(&key(debug_id)) {
                    self.learn(event.tid, process, event.comm, names);
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, tid: i32, tgid: i32, comm: Name, names: &Names) {
        if tid <= 0 || tgid <= 0 || self.process.contains_key(&tid) || self.process.len() >= MOST_THREADS {
            return;
        }
        self.process.insert(tid, tgid);
        let name = names.text(comm);
        if tid == tgid {
            self.new.nested(1, |out| {
                out.signed(1, tgid);
                if !name.is_empty() {
                    out.text(3, name);
                    // Only the thread's name: what the program was started as is in no trace.
                    out.unsigned(9, true);
                }
            });
        }
        self.new.nested(2, |out| {
            out.signed(1, tid);
            if !name.is_empty() {
                out.text(2, name);
            }
            out.signed(3, tgid);
        });
    }

    /// Writes what is new.
    pub(super) fn flush<W: Write>(&mut self, out: &mut Output<W>) {
        if !self.new.is_empty() {
            packet(out, SEQUENCE_FTRACE, self.since, |packet| packet.raw(PROCESS_TREE, self.new.bytes()));
            self.new.clear();
        }
    }
}
