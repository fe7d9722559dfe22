//! Room: transactions and what their time went to, as slices with arrows; deadline misses; gaps.
//! Not here: the events themselves (`bundle`), of which Perfetto makes its own slices.
//! Facts: `track_event.proto`, `track_descriptor.proto`.
//!
//! The slices are in tracks below their threads', not in those themselves: Perfetto ends the innermost slice
//! of a thread's own track with binder's events, and asks for the innermost one in its breakdown. A track
//! below never has two slices at the same time but for a call and its parts, so that beginnings and ends
//! cannot be mixed up: what overlaps gets a further track, which is drawn with the first as one.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::tree::Tree;
use super::wire::{Message, Output};
use super::{NEEDS_STATE, SEQUENCE_TRACKS, packet};
use crate::cause::{Inversion, Part};
use crate::event::{Event, Names};
use crate::model::Transaction;
use crate::verdict::{Slow, label, outcome};

/// `TracePacket.track_event`, `.track_descriptor`, `.sequence_flags`.
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;
const SEQUENCE_FLAGS: u32 = 13;

/// `TrackEvent.Type`.
const BEGIN: u32 = 1;
const END: u32 = 2;
const INSTANT: u32 = 3;

/// Tracks of the whole trace.
const MISSES: u64 = 1;
const LOSSES: u64 = 2;
/// A thread's track, and the first one below it.
const THREAD: u64 = 1 << 40;
const LANE: u64 = 2 << 40;

/// The most tracks below one thread's: calls nest a few deep.
const MOST_LANES: usize = 16;
/// The most threads with calls; only a forged trace has more.
const MOST_THREADS: usize = 1 << 16;

/// The tracks, and what was written of them.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// When the last slice of each track below a thread's ends.
    lanes: HashMap<i32, Vec<u64>>,
    described: HashSet<u64>,
    /// Each thread's last call that a mark may still say is a miss: its number, beginning, and arrow.
    waiting: HashMap<i32, (i32, u64, u64)>,
    flows: u64,
    /// Transactions that were drawn.
    pub(super) drawn: u64,
    /// Transactions, or a server's part of them, for which there was no track left.
    pub(super) undrawn: u64,
}

/// The thread that a track is below.
#[derive(Clone, Copy, Debug)]
struct Owner<'n> {
    tid: i32,
    process: Option<i32>,
    name: &'n str,
}

/// Where a slice goes, when, and what arrows are at it.
#[derive(Clone, Copy, Debug)]
struct Slice<'s> {
    track: u64,
    ts: u64,
    name: &'s str,
    /// Arrows that come from here or go on from here.
    flows: &'s [u64],
    /// The arrow that ends here.
    ends: Option<u64>,
}

/// What a slice is annotated with.
struct Notes<'m>(&'m mut Message);

impl Notes<'_> {
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.nested(4, |out| {
                out.text(10, name);
                out.text(6, value);
            });
        }
    }

    fn number(&mut self, name: &str, value: i64) {
        self.0.nested(4, |out| {
            out.text(10, name);
            out.signed(4, value);
        });
    }

    fn truth(&mut self, name: &str, value: bool) {
        if value {
            self.0.nested(4, |out| {
                out.text(10, name);
                out.unsigned(2, value);
            });
        }
    }
}

impl Tracks {
    /// Draws a transaction; `told` is what is said of one over the deadline.
    pub(super) fn call<W: Write>(
        &mut self,
        call: &Transaction,
        told: Option<&Slow>,
        names: &Names,
        tree: &Tree,
        out: &mut Output<W>,
    ) {
        let client = call.client;
        let process = client.tgid.or_else(|| tree.process_of(client.tid));
        let owner = Owner { tid: client.tid, process, name: names.text(client.comm) };
        let Some(track) = self.lane(owner, call.begin, call.end, out) else {
            self.undrawn += 1;
            return;
        };
        self.drawn += 1;
        self.flows += 2;
        let (there, miss) = (self.flows - 1, self.flows);
        let arrows = [there, miss];
        let name = title(call, told.is_some());
        let marked = call.label.is_some() && told.is_none() && !call.oneway;
        if marked {
            self.waiting.insert(client.tid, (call.debug_id, call.begin, miss));
        }
        let flows = if told.is_some() || marked { &arrows[..] } else { &arrows[..1] };
        begin(out, Slice { track, ts: call.begin, name: &name, flows, ends: None }, |notes| {
            describe(notes, call, told, names);
        });
        // The arrow back ends where the caller's own part begins again.
        let answered = call.replied.and_then(|at| call.parts.iter().position(|part| part.begin >= at));
        for (index, part) in call.parts.iter().enumerate() {
            let ends = (answered == Some(index)).then_some(there);
            let cause = label(part, call, names);
            begin(out, Slice { track, ts: part.begin, name: cause, flows: &[], ends }, |notes| {
                annotate(notes, part, call, names);
            });
            end(out, track, part.end);
        }
        end(out, track, call.end);
        self.served(call, there, names, out);
        if let Some(slow) = told {
            self.missed(call, slow, miss, out);
        }
    }

    /// The server's part, from receiving to replying.
    fn served<W: Write>(&mut self, call: &Transaction, flow: u64, names: &Names, out: &mut Output<W>) {
        let (Some(server), Some(received)) = (call.server, call.received) else { return };
        // A oneway call's server is not followed further than to its receiving.
        let until = if call.oneway { received } else { call.replied.unwrap_or(call.end) };
        let until = until.max(received);
        let owner = Owner { tid: server.tid, process: Some(call.to_proc), name: names.text(server.comm) };
        let lane = self.lane(owner, received, until, out);
        let Some(track) = lane else {
            self.undrawn += 1;
            return;
        };
        let name = format!("serve {}", call.debug_id);
        let ends = (call.oneway || call.replied.is_none()).then_some(flow);
        let flows = if ends.is_none() { &[flow][..] } else { &[] };
        begin(out, Slice { track, ts: received, name: &name, flows, ends }, |notes| {
            notes.number("debug_id", call.debug_id.into());
            notes.number("caller tid", call.client.tid.into());
        });
        end(out, track, until);
    }

    /// A drawn call was a miss, as its caller says.
    pub(super) fn told<W: Write>(&mut self, call: &Transaction, slow: &Slow, out: &mut Output<W>) {
        if let Some((debug_id, begin, flow)) = self.waiting.remove(&call.client.tid)
            && (debug_id, begin) == (call.debug_id, call.begin)
        {
            self.missed(call, slow, flow, out);
        }
    }

    fn missed<W: Write>(&mut self, call: &Transaction, slow: &Slow, flow: u64, out: &mut Output<W>) {
        self.describe_once(MISSES, out, |track| {
            track.text(2, "Deadline misses");
            track.text(14, "Binder calls that took longer than the deadline that was asked for");
        });
        let name = title(call, true);
        let slice = Slice { track: MISSES, ts: call.end, name: &name, flows: &[], ends: Some(flow) };
        event(out, slice, INSTANT, |notes| notes.text("verdict", &slow.verdict));
    }

    /// Says where events are missing.
    pub(super) fn lost<W: Write>(&mut self, lost: &Event, count: Option<u64>, out: &mut Output<W>) {
        self.describe_once(LOSSES, out, |track| {
            track.text(2, "Lost events");
            track.text(14, "Here, before this time on this CPU, the trace lacks events");
        });
        let name = match count {
            Some(count) => format!("cpu{}: {count} events lost", lost.cpu),
            None => format!("cpu{}: events lost", lost.cpu),
        };
        let slice = Slice { track: LOSSES, ts: lost.ts, name: &name, flows: &[], ends: None };
        event(out, slice, INSTANT, |_| {});
    }

    fn describe_once<W: Write>(&mut self, track: u64, out: &mut Output<W>, write: impl FnOnce(&mut Message)) {
        if self.described.insert(track) {
            packet(out, SEQUENCE_TRACKS, None, |packet| {
                packet.nested(TRACK_DESCRIPTOR, |descriptor| {
                    descriptor.unsigned(1, track);
                    write(descriptor);
                });
            });
        }
    }

    /// A track below a thread's on which nothing is from `from` on, taken until `to`.
    fn lane<W: Write>(&mut self, owner: Owner<'_>, from: u64, to: u64, out: &mut Output<W>) -> Option<u64> {
        let Owner { tid, process, name } = owner;
        if tid <= 0 || (self.lanes.len() >= MOST_THREADS && !self.lanes.contains_key(&tid)) {
            return None;
        }
        let lanes = self.lanes.entry(tid).or_default();
        let lane = match lanes.iter().position(|end| *end <= from) {
            Some(lane) => lane,
            None if lanes.len() < MOST_LANES => {
                lanes.push(0);
                lanes.len() - 1
            }
            None => return None,
        };
        lanes[lane] = to;
        let of_tid = u64::from(tid.cast_unsigned());
        if let Some(process) = process.filter(|process| *process > 0) {
            self.describe_once(THREAD | of_tid, out, |track| {
                track.nested(4, |thread| {
                    thread.signed(1, process);
                    thread.signed(2, tid);
                });
            });
        }
        let in_thread = self.described.contains(&(THREAD | of_tid));
        let track = (LANE + ((lane as u64) << 40)) | of_tid;
        self.describe_once(track, out, |descriptor| {
            if in_thread {
                descriptor.unsigned(5, THREAD | of_tid);
                descriptor.text(2, "binderperf");
            } else {
                // A thread of no known process has no track of its own that others could be below.
                descriptor.text(2, &format!("binderperf: {name} {tid}"));
            }
        });
        Some(track)
    }
}

/// The name of a call's slice.
fn title(call: &Transaction, missed: bool) -> String {
    let what = if call.oneway { "oneway call" } else { "call" };
    format!("{}{what} {} to {}", if missed { "MISS " } else { "" }, call.debug_id, call.to_proc)
}

fn describe(notes: &mut Notes<'_>, call: &Transaction, told: Option<&Slow>, names: &Names) {
    notes.number("debug_id", call.debug_id.into());
    notes.number("node", call.node.into());
    notes.number("code", call.code.into());
    if let Some(server) = call.server {
        notes.text("server", &format!("{} {}", names.text(server.comm), server.tid));
    }
    if let Some(prio) = call.client.prio {
        notes.text("caller's priority", &prio.to_string());
    }
    if let Some(label) = &call.label {
        notes.text("label", label);
    }
    notes.text("outcome", outcome(call.outcome));
    notes.truth("doubtful", call.doubtful);
    notes.truth("nested", call.nested);
    if let Some(slow) = told {
        notes.text("verdict", &slow.verdict);
    }
}

fn annotate(notes: &mut Notes<'_>, part: &Part, call: &Transaction, names: &Names) {
    if part.tid > 0 {
        notes.number("tid", part.tid.into());
    }
    if let Some(cpu) = part.cpu {
        notes.number("cpu", cpu.into());
    }
    if let Some(behind) = part.cause.behind() {
        notes.text("behind", &format!("{} {}", names.text(behind.comm), behind.tid));
        if let Some(prio) = behind.prio {
            notes.text("its priority", &prio.to_string());
        }
    }
    if let Some(prio) = part.prio {
        notes.text("priority", &prio.to_string());
    }
    if part.depth > 0 {
        notes.number("depth", part.depth.into());
    }
    let inversion = part.inversion(call.client.tid, call.client.prio);
    notes.truth("priority inversion", inversion == Some(Inversion::NotBoosted));
}

fn begin<W: Write>(out: &mut Output<W>, slice: Slice<'_>, notes: impl FnOnce(&mut Notes<'_>)) {
    event(out, slice, BEGIN, notes);
}

fn end<W: Write>(out: &mut Output<W>, track: u64, ts: u64) {
    packet(out, SEQUENCE_TRACKS, Some(ts), |packet| {
        packet.unsigned(SEQUENCE_FLAGS, NEEDS_STATE);
        packet.nested(TRACK_EVENT, |event| {
            event.unsigned(9, END);
            event.unsigned(11, track);
        });
    });
}

fn event<W: Write>(out: &mut Output<W>, slice: Slice<'_>, kind: u32, notes: impl FnOnce(&mut Notes<'_>)) {
    packet(out, SEQUENCE_TRACKS, Some(slice.ts), |packet| {
        packet.unsigned(SEQUENCE_FLAGS, NEEDS_STATE);
        packet.nested(TRACK_EVENT, |event| {
            notes(&mut Notes(event));
            event.unsigned(9, kind);
            event.unsigned(11, slice.track);
            event.text(22, "binderperf");
            event.text(23, slice.name);
            for flow in slice.flows {
                event.fixed(47, *flow);
            }
            if let Some(flow) = slice.ends {
                event.fixed(48, flow);
            }
        });
    });
}
