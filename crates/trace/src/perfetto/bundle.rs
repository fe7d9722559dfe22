//! Event bundles, one open bundle per CPU, with lost-event counts.
//! Not here: an event's own message (`ftrace`).
//! Facts: `ftrace_event_bundle.proto`; the events of a bundle are of one CPU and in time order.
//!
//! `sched_switch` does not use the bundle's compact form: that form lacks the priority and name of the leaving task
//! and derives it from the previous event, which is wrong behind a gap.

use std::collections::BTreeMap;
use std::io::Write;

use super::ftrace::{self, Symbols, TaskStateFormat};
use super::wire::{Message, Output};
use super::{NEEDS_STATE, SEQUENCE_FTRACE, packet};
use crate::event::{Event, Kind, Names};

/// Bundle size that triggers writing it, and total size that triggers writing all, in bytes.
const FULL: usize = 64 << 10;
const ALL_FULL: usize = 16 << 20;

/// `TracePacket.ftrace_events`, `.ftrace_stats`, `.interned_data`.
const FTRACE_EVENTS: u32 = 1;
const FTRACE_STATS: u32 = 34;
const INTERNED_DATA: u32 = 12;

#[derive(Debug, Default)]
struct Bundle {
    events: Message,
    last: u64,
    /// Events before the first one are missing.
    lost: bool,
    /// Number of events that this CPU lost.
    missing: u64,
}

/// Open bundles.
#[derive(Debug)]
pub(super) struct Bundles {
    cpus: BTreeMap<u32, Bundle>,
    bytes: usize,
    symbols: Symbols,
    states: TaskStateFormat,
}

impl Bundles {
    pub(super) fn new(states: TaskStateFormat) -> Self {
        Self { cpus: BTreeMap::new(), bytes: 0, symbols: Symbols::default(), states }
    }

    /// Takes an event.
    pub(super) fn take<W: Write>(&mut self, event: &Event, names: &Names, out: &mut Output<W>) {
        if let Kind::Tick { .. } = event.kind {
            return;
        }
        let Self { cpus, bytes, symbols, states } = self;
        let bundle = cpus.entry(event.cpu).or_default();
        let lost = matches!(event.kind, Kind::Lost { .. });
        // A clock that goes backwards ends a bundle, as a gap does.
        if (lost || event.ts < bundle.last) && !bundle.events.is_empty() {
            *bytes -= bundle.events.len();
            bundle.write(event.cpu, symbols, out);
        }
        if let Kind::Lost { count } = event.kind {
            bundle.lost = true;
            bundle.missing = bundle.missing.saturating_add(count.unwrap_or(0));
            return;
        }
        let before = bundle.events.len();
        bundle.events.nested(2, |out| ftrace::write(out, event, names, *states, symbols));
        bundle.last = event.ts;
        *bytes += bundle.events.len() - before;
        if bundle.events.len() >= FULL {
            *bytes -= bundle.events.len();
            bundle.write(event.cpu, symbols, out);
        } else if *bytes >= ALL_FULL {
            self.flush(out);
        }
    }

    fn flush<W: Write>(&mut self, out: &mut Output<W>) {
        for (cpu, bundle) in &mut self.cpus {
            if bundle.lost || !bundle.events.is_empty() {
                bundle.write(*cpu, &mut self.symbols, out);
            }
            // A forged trace may have thousands of CPUs, so no CPU keeps the memory of a full bundle.
            bundle.events = Message::default();
        }
        self.bytes = 0;
    }

    /// Writes the open bundles, and each CPU's number of lost events.
    pub(super) fn finish<W: Write>(&mut self, out: &mut Output<W>) {
        self.flush(out);
        if self.cpus.values().all(|bundle| bundle.missing == 0) {
            return;
        }
        // Perfetto shows the difference of these two as lost.
        for (phase, at_end) in [(1_u32, false), (2, true)] {
            packet(out, SEQUENCE_FTRACE, None, |packet| {
                packet.nested(FTRACE_STATS, |stats| {
                    stats.field(1, phase);
                    for (cpu, bundle) in &self.cpus {
                        stats.nested(2, |stats| {
                            stats.field(1, *cpu);
                            stats.field(3, if at_end { bundle.missing } else { 0 });
                        });
                    }
                });
            });
        }
    }
}

impl Bundle {
    fn write<W: Write>(&mut self, cpu: u32, symbols: &mut Symbols, out: &mut Output<W>) {
        packet(out, SEQUENCE_FTRACE, None, |packet| {
            packet.field(13, NEEDS_STATE);
            packet.nested(FTRACE_EVENTS, |bundle| {
                bundle.field(1, cpu);
                if self.lost {
                    bundle.field(3, true);
                }
                bundle.fields(self.events.bytes());
            });
            if !symbols.new.is_empty() {
                packet.raw(INTERNED_DATA, symbols.new.bytes());
            }
        });
        symbols.new.clear();
        self.events.clear();
        self.lost = false;
    }
}
