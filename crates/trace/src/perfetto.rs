//! Room: a trace as a file that ui.perfetto.dev opens: the kernel's events, and what our model makes of them.
//! Not here: reading traces, the model, sentences.
//! Facts: `protos/perfetto/trace/trace_packet.proto` of Perfetto. Events go out as `FtraceEventBundle`s, so that
//! Perfetto's own tables of binder calls and their breakdown are filled; transactions, causes and misses as
//! `TrackEvent`s.
//!
//! Nothing is kept but what is not written yet, some megabytes. Times are those of the trace's clock, whichever
//! that is: Perfetto takes them for the boot clock's, and nothing else in the file has another.

mod binder;
mod bundle;
mod ftrace;
mod tracks;
mod tree;
mod wire;

use std::io::{self, Write};

use crate::event::{Event, Kind, Names};
use crate::file::Head;
use crate::model::Transaction;
use crate::verdict::Slow;
use bundle::Bundles;
use ftrace::States;
use tracks::Tracks;
use tree::Tree;
use wire::{Message, Output};

/// Writers of packets; each has its own numbers for names.
const SEQUENCE_FTRACE: u32 = 1;
const SEQUENCE_TRACKS: u32 = 2;
/// `TracePacket.sequence_flags`: numbers of names begin anew, or those from before hold.
const CLEARS_STATE: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// Writes a trace for Perfetto.
#[derive(Debug)]
pub struct Exporter<W> {
    out: Output<W>,
    bundles: Bundles,
    tree: Tree,
    tracks: Tracks,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Transactions with their causes.
    pub calls: u64,
    /// Transactions, or servers' parts of them, without: more threads or more calls at once than are drawn.
    pub undrawn: u64,
}

impl<W: Write> Exporter<W> {
    /// One that writes to `writer`, which should be buffered. `head` is what the trace's file says of itself.
    #[must_use]
    pub fn new(writer: W, head: Option<&Head>) -> Self {
        let mut out = Output::new(writer);
        let release = head.map(|head| head.kernel.as_str()).filter(|release| has_new_states(release));
        for sequence in [SEQUENCE_FTRACE, SEQUENCE_TRACKS] {
            packet(&mut out, sequence, None, |packet| {
                packet.unsigned(13, CLEARS_STATE);
                packet.unsigned(87, true);
                if let Some(release) = release.filter(|_| sequence == SEQUENCE_FTRACE) {
                    packet.nested(45, |info| {
                        info.nested(1, |utsname| {
                            utsname.text(1, "Linux");
                            utsname.text(3, release);
                        });
                    });
                }
            });
        }
        let states = if release.is_some() { States::New } else { States::Old };
        Self { out, bundles: Bundles::new(states), tree: Tree::default(), tracks: Tracks::default() }
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

    /// Takes a transaction that has ended; `told` is what is said of it if it was over its deadline.
    pub fn call(&mut self, call: &Transaction, told: Option<&Slow>, names: &Names) {
        if !self.out.has_failed() {
            self.tracks.call(call, told, names, &self.tree, &mut self.out);
        }
    }

    /// Takes what is said of a transaction that was taken before, and was a miss as its caller told later.
    pub fn miss(&mut self, call: &Transaction, told: &Slow) {
        if !self.out.has_failed() {
            self.tracks.told(call, told, &mut self.out);
        }
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The first one that writing met; what follows it was not written.
    pub fn finish(mut self) -> io::Result<Written> {
        self.tree.flush(&mut self.out);
        self.bundles.finish(&mut self.out);
        let written = Written {
            bytes: self.out.bytes,
            packets: self.out.packets,
            calls: self.tracks.drawn,
            undrawn: self.tracks.undrawn,
        };
        self.out.finish().map(|()| written)
    }
}

/// Whether states are written as since Linux 4.14.
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
            packet.unsigned(8, ts);
        }
        packet.unsigned(10, sequence);
        write(packet);
    });
}

#[cfg(test)]
mod tests;
