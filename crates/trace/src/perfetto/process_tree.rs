//! Collects the process of each thread and writes it as Perfetto's process tree.
//! Not here: thread names while they run, which Perfetto takes from `sched_switch`.
//! Facts: `process_tree.proto`. Perfetto draws threads of unknown process outside all processes, and its table of
//! binder calls needs both processes.

use std::collections::HashMap;
use std::io::Write;

use super::wire::{Message, Output};
use super::{SEQUENCE_FTRACE, packet};
use crate::event::{Binder, Event, Flavour, Kind, Name, Names};
use crate::hash::FastHash;

/// Maximum number of threads; only a forged trace has more.
const MOST_THREADS: usize = 1 << 18;
/// Maximum number of transactions whose target process is remembered.
const MOST_SENT: usize = 1 << 16;
/// Size of unwritten data that triggers writing, in bytes.
const FULL: usize = 16 << 10;

/// `TracePacket.process_tree`.
const PROCESS_TREE: u32 = 2;

/// Known threads and processes.
#[derive(Debug, Default)]
pub(super) struct ProcessTree {
    process: HashMap<i32, i32, FastHash>,
    /// Target process of each transaction that nobody received yet.
    sent: HashMap<(bool, i32), i32>,
    new: Message,
    /// Time of the first event, so that all events find their threads in their processes.
    since: Option<u64>,
}

impl ProcessTree {
    /// Process of a thread, if known.
    pub(super) fn process_of(&self, tid: i32) -> Option<i32> {
        self.process.get(&tid).copied()
    }

    /// Learns threads and processes from an event.
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

    /// The thread that receives a transaction belongs to the process that it was sent to.
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
                out.field(1, tgid);
                if !name.is_empty() {
                    out.field(3, name);
                    // The thread's name only: traces have no command line.
                    out.field(9, true);
                }
            });
        }
        self.new.nested(2, |out| {
            out.field(1, tid);
            if !name.is_empty() {
                out.field(2, name);
            }
            out.field(3, tgid);
        });
    }

    /// Writes new entries.
    pub(super) fn flush<W: Write>(&mut self, out: &mut Output<W>) {
        if !self.new.is_empty() {
            packet(out, SEQUENCE_FTRACE, self.since, |packet| packet.raw(PROCESS_TREE, self.new.bytes()));
            self.new.clear();
        }
    }
}
