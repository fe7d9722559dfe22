//! Writes transactions and their causes as slices with flow arrows; deadline misses; gaps.
//! Not here: the events (`bundle`), from which Perfetto makes its own slices.
//! Facts: `track_event.proto`, `track_descriptor.proto`.
//!
//! Slices are in child tracks of the thread tracks: Perfetto lets binder events end the innermost slice of a thread
//! track, and uses that slice in its breakdown. A child track never has two overlapping slices except a call and its
//! segments, so begins and ends pair uniquely; overlapping calls get a further track, which Perfetto merges with the
//! first when drawing.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::process_tree::ProcessTree;
use super::wire::{Message, Output, Value};
use super::{NEEDS_STATE, SEQUENCE_TRACKS, packet};
use crate::cause::{Inversion, Segment};
use crate::event::{Event, Names};
use crate::model::Transaction;
use crate::verdict::SlowCall;

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
/// UUIDs of a thread's track and of its first child track.
const THREAD: u64 = 1 << 40;
const LANE: u64 = 2 << 40;

/// Maximum child tracks per thread: calls nest a few deep.
const MOST_LANES: usize = 16;
/// Maximum number of threads with calls; only a forged trace has more.
const MOST_THREADS: usize = 1 << 16;

/// Child tracks, and statistics of the drawn transactions.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// End of the last slice of each child track, per thread.
    lanes: HashMap<i32, Vec<u64>>,
    described: HashSet<u64>,
    /// Last call per thread that its caller may still report as a miss: number, begin, flow.
    waiting: HashMap<i32, (i32, u64, u64)>,
    flows: u64,
    /// Transactions drawn.
    pub(super) drawn: u64,
    /// Transactions, or their server slices, without a free track.
    pub(super) undrawn: u64,
}

/// Thread that a track belongs to.
#[derive(Clone, Copy, Debug)]
struct Owner<'n> {
    tid: i32,
    process: Option<i32>,
    name: &'n str,
}

/// Position, time and flows of a slice.
#[derive(Clone, Copy, Debug)]
struct Slice<'s> {
    track: u64,
    ts: u64,
    name: &'s str,
    /// Flows that start here or pass through.
    flows: &'s [u64],
    /// Flow that ends here.
    ends: Option<u64>,
}

/// Annotations of a slice.
struct Annotations<'m>(&'m mut Message);

impl Annotations<'_> {
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.add(name, 6, value);
        }
    }

    fn number<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        self.add(name, 4, value);
    }

    fn truth(&mut self, name: &str, value: bool) {
        if value {
            self.add(name, 2, value);
        }
    }

    fn add<'v>(&mut self, name: &str, field: u32, value: impl Into<Value<'v>>) {
        self.0.nested(4, |out| {
            out.field(10, name);
            out.field(field, value);
        });
    }
}

impl Tracks {
    /// Draws a transaction; `miss` describes it if it missed its deadline.
    pub(super) fn call<W: Write>(
        &mut self,
        call: &Transaction,
        miss: Option<&SlowCall>,
        names: &Names,
        tree: &ProcessTree,
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
        let (reply_flow, miss_flow) = (self.flows - 1, self.flows);
        let arrows = [reply_flow, miss_flow];
        let name = title(call, miss.is_some());
        let marked = call.label.is_some() && miss.is_none() && !call.oneway;
        if marked {
            self.waiting.insert(client.tid, (call.debug_id, call.begin, miss_flow));
        }
        let flows = if miss.is_some() || marked { &arrows[..] } else { &arrows[..1] };
        event(out, Slice { track, ts: call.begin, name: &name, flows, ends: None }, BEGIN, |notes| {
            describe(notes, call, miss, names);
        });
        // The reply's flow ends where the caller's own segment begins.
        let answered = call.replied.and_then(|at| call.parts.iter().position(|part| part.begin >= at));
        for (index, part) in call.parts.iter().enumerate() {
            let ends = (answered == Some(index)).then_some(reply_flow);
            let cause = part.cause.name();
            event(out, Slice { track, ts: part.begin, name: cause, flows: &[], ends }, BEGIN, |notes| {
                annotate(notes, part, call, names);
            });
            end(out, track, part.end);
        }
        end(out, track, call.end);
        self.served(call, reply_flow, names, out);
        if let Some(slow) = miss {
            self.missed(call, slow, miss_flow, out);
        }
    }

    /// Draws the server's slice, from receiving to replying.
    fn served<W: Write>(&mut self, call: &Transaction, flow: u64, names: &Names, out: &mut Output<W>) {
        let (Some(server), Some(received)) = (call.server, call.received) else { return };
        // A oneway call's server is followed only until it receives the call.
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
        event(out, Slice { track, ts: received, name: &name, flows, ends }, BEGIN, |notes| {
            notes.number("debug_id", call.debug_id);
            notes.number("caller tid", call.client.tid);
        });
        end(out, track, until);
    }

    /// Marks a drawn call as a miss that its caller reported.
    pub(super) fn miss<W: Write>(&mut self, call: &Transaction, slow: &SlowCall, out: &mut Output<W>) {
        if let Some((debug_id, begin, flow)) = self.waiting.remove(&call.client.tid)
            && (debug_id, begin) == (call.debug_id, call.begin)
        {
            self.missed(call, slow, flow, out);
        }
    }

    fn missed<W: Write>(&mut self, call: &Transaction, slow: &SlowCall, flow: u64, out: &mut Output<W>) {
        self.describe_once(MISSES, out, |track| {
            track.field(2, "Deadline misses");
            track.field(14, "Binder calls that took longer than the deadline that was asked for");
        });
        let name = title(call, true);
        let slice = Slice { track: MISSES, ts: call.end, name: &name, flows: &[], ends: Some(flow) };
        event(out, slice, INSTANT, |notes| notes.text("verdict", &slow.verdict));
    }

    /// Marks a gap with missing events.
    pub(super) fn lost<W: Write>(&mut self, lost: &Event, count: Option<u64>, out: &mut Output<W>) {
        self.describe_once(LOSSES, out, |track| {
            track.field(2, "Lost events");
            track.field(14, "Here, before this time on this CPU, the trace lacks events");
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
                    descriptor.field(1, track);
                    write(descriptor);
                });
            });
        }
    }

    /// Allocates a child track that is free between `from` and `to`.
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
                    thread.field(1, process);
                    thread.field(2, tid);
                });
            });
        }
        let in_thread = self.described.contains(&(THREAD | of_tid));
        let track = (LANE + ((lane as u64) << 40)) | of_tid;
        self.describe_once(track, out, |descriptor| {
            if in_thread {
                descriptor.field(5, THREAD | of_tid);
                descriptor.field(2, "binderperf");
            } else {
                // A thread of unknown process has no thread track that could be the parent.
                descriptor.field(2, &*format!("binderperf: {name} {tid}"));
            }
        });
        Some(track)
    }
}

/// Title of a call's slice.
fn title(call: &Transaction, missed: bool) -> String {
    let what = if call.oneway { "oneway call" } else { "call" };
    format!("{}{what} {} to {}", if missed { "MISS " } else { "" }, call.debug_id, call.to_proc)
}

fn describe(notes: &mut Annotations<'_>, call: &Transaction, miss: Option<&SlowCall>, names: &Names) {
    notes.number("debug_id", call.debug_id);
    notes.number("node", call.node);
    notes.number("code", call.code);
    if let Some(server) = call.server {
        notes.text("server", &format!("{} {}", names.text(server.comm), server.tid));
    }
    if let Some(prio) = call.client.prio {
        notes.text("caller's priority", &prio.to_string());
    }
    if let Some(label) = &call.label {
        notes.text("label", label);
    }
    notes.text("outcome", call.outcome.name());
    notes.truth("doubtful", call.doubtful);
    notes.truth("nested", call.nested);
    if let Some(slow) = miss {
        notes.text("verdict", &slow.verdict);
    }
}

fn annotate(notes: &mut Annotations<'_>, part: &Segment, call: &Transaction, names: &Names) {
    if part.tid > 0 {
        notes.number("tid", part.tid);
    }
    if let Some(cpu) = part.cpu {
        notes.number("cpu", cpu);
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
        notes.number("depth", u32::from(part.depth));
    }
    let inversion = part.inversion(call.client.tid, call.client.prio);
    notes.truth("priority inversion", inversion == Some(Inversion::NotBoosted));
}

fn end<W: Write>(out: &mut Output<W>, track: u64, ts: u64) {
    packet(out, SEQUENCE_TRACKS, Some(ts), |packet| {
        packet.field(SEQUENCE_FLAGS, NEEDS_STATE);
        packet.nested(TRACK_EVENT, |event| {
            event.field(9, END);
            event.field(11, track);
        });
    });
}

fn event<W: Write>(
    out: &mut Output<W>,
    slice: Slice<'_>,
    kind: u32,
    notes: impl FnOnce(&mut Annotations<'_>),
) {
    packet(out, SEQUENCE_TRACKS, Some(slice.ts), |packet| {
        packet.field(SEQUENCE_FLAGS, NEEDS_STATE);
        packet.nested(TRACK_EVENT, |event| {
            notes(&mut Annotations(event));
            event.field(9, kind);
            event.field(11, slice.track);
            event.field(22, "binderperf");
            event.field(23, slice.name);
            for flow in slice.flows {
                event.fixed(47, *flow);
            }
            if let Some(flow) = slice.ends {
                event.fixed(48, flow);
            }
        });
    });
}
