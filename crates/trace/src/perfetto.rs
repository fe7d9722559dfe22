//! Exports a trace for ui.perfetto.dev: the kernel's events and the rebuilt transactions.
//! Not here: reading traces, the model, sentences.
//! Facts: `protos/perfetto/trace/trace_packet.proto` of Perfetto. Events are written as `FtraceEventBundle`s, which
//! fill Perfetto's own tables of binder calls and their breakdown; transactions, causes and misses as `TrackEvent`s.
//!
//! Memory: only what is not written yet, some megabytes. Times are those of the trace clock, whichever it is:
//! Perfetto takes them for the boot clock, and the file has no other clock.

mod bundle;
mod ftrace;
mod process_tree;
mod tracks;
mod wire;

use std::io::{self, Write};

use crate::event::{Event, Kind, Names};
use crate::file::Head;
use crate::model::Transaction;
use crate::verdict::SlowCall;
use bundle::Bundles;
use ftrace::TaskStateFormat;
use process_tree::ProcessTree;
use tracks::Tracks;
use wire::{Message, Output};

/// Packet sequences; each has its own interned names.
const SEQUENCE_FTRACE: u32 = 1;
const SEQUENCE_TRACKS: u32 = 2;
/// `TracePacket.sequence_flags`: reset interned state, or reuse it.
const CLEARS_STATE: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// Writer of a Perfetto trace.
#[derive(Debug)]
pub struct Exporter<W> {
    out: Output<W>,
    bundles: Bundles,
    tree: ProcessTree,
    tracks: Tracks,
}

/// Statistics of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportStats {
    /// Bytes written.
    pub bytes: u64,
    /// Packets written.
    pub packets: u64,
    /// Transactions drawn with their causes.
    pub calls: u64,
    /// Transactions, or their server slices, that were not drawn because too many threads or calls overlap.
    pub undrawn: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter. `writer` should be buffered. `head` is the trace file's header, if it has one.
    #[must_use]
    pub fn new(writer: W, head: Option<&Head>) -> Self {
        let mut out = Output::new(writer);
        let release = head.map(|head| head.kernel.as_str()).filter(|release| has_new_states(release));
        for sequence in [SEQUENCE_FTRACE, SEQUENCE_TRACKS] {
            packet(&mut out, sequence, None, |packet| {
                packet.field(13, CLEARS_STATE);
                packet.field(87, true);
                if let Some(release) = release.filter(|_| sequence == SEQUENCE_FTRACE) {
                    packet.nested(45, |info| {
                        info.nested(1, |utsname| {
                            utsname.field(1, "Linux");
                            utsname.field(3, release);
                        });
                    });
                }
            });
        }
        let states = if release.is_some() { TaskStateFormat::New } else { TaskStateFormat::Old };
        Self { out, bundles: Bundles::new(states), tree: ProcessTree::default(), tracks: Tracks::default() }
    }

    /// Takes the next event. `names` are the reader's.
    pub fn event(&mut self, event: &Event, names: &Names) {
        if self.out.has_failed() {
            return;
        }
        self.tree.take(event, names, &mut self.out);
        self.bundles.take(event, names, &mut self.out);
        if let Kind::Lost { count } = event.kind {
            self.tracks.lost(event, count, &mut self.out);
        }
    }

    /// Takes an ended transaction; `miss` describes it if it missed its deadline.
    pub fn call(&mut self, call: &Transaction, miss: Option<&SlowCall>, names: &Names) {
        if !self.out.has_failed() {
            self.tracks.call(call, miss, names, &self.tree, &mut self.out);
        }
    }

    /// Takes the miss that a caller reported for a transaction taken before.
    pub fn miss(&mut self, call: &Transaction, miss: &SlowCall) {
        if !self.out.has_failed() {
            self.tracks.miss(call, miss, &mut self.out);
        }
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first write error; nothing after it was written.
    pub fn finish(mut self) -> io::Result<ExportStats> {
        self.tree.flush(&mut self.out);
        self.bundles.finish(&mut self.out);
        let written = ExportStats {
            bytes: self.out.bytes,
            packets: self.out.packets,
            calls: self.tracks.drawn,
            undrawn: self.tracks.undrawn,
        };
        self.out.finish().map(|()| written)
    }
}

/// Whether this kernel uses the task-state numbers of Linux 4.14 and later.
fn has_new_states(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (4, 14),
        _ => false,
    }
}

/// Writes a packet of a sequence.
fn packet<W: Write>(out: &mut Output<W>, sequence: u32, ts: Option<u64>, write: impl FnOnce(&mut Message)) {
    out.packet(|packet| {
        if let Some(ts) = ts {
            packet.field(8, ts);
        }
        packet.field(10, sequence);
        write(packet);
    });
}

#[cfg(test)]
mod tests;
