//! Room: bundles of events, one at a time for each CPU, with what they say of lost events; kernel symbols by
//! number.
//! Not here: an event's own message (`ftrace`).
//! Facts: `ftrace_event_bundle.proto`; the events of a bundle are of one CPU and in the order of their times.
//!
//! `sched_switch` is written whole and not in the bundle's compact form: that one has no priority and no name
//! of the task that leaves, and takes the last one that came for it, which is wrong behind a gap.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use super::ftrace::{self, States};
use super::wire::{Message, Output};
use super::{NEEDS_STATE, SEQUENCE_FTRACE, packet};
use crate::event::{Event, Kind, Name, Names};

/// A bundle is written when it has so many bytes, and all when they have so many together.
const FULL: usize = 64 << 10;
const ALL_FULL: usize = 16 << 20;

/// `TracePacket.ftrace_events`, `.ftrace_stats`, `.interned_data`.
const FTRACE_EVENTS: u32 = 1;
const FTRACE_STATS: u32 = 34;
const INTERNED_DATA: u32 = 12;
/// `InternedData.kernel_symbols`.
const KERNEL_SYMBOLS: u32 = 26;

/// Kernel symbols: each is written once, with the number that events use for it.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    known: HashSet<Name>,
    /// `InternedData` that no packet carries so far.
    new: Message,
}

impl Symbols {
    /// A symbol's number; never 0.
    pub(super) fn intern(&mut self, symbol: Name, names: &Names) -> u64 {
        let number = symbol.index() as u64;
        if self.known.insert(symbol) {
            self.new.nested(KERNEL_SYMBOLS, |out| {
                out.unsigned(1, number);
                out.raw(2, names.text(symbol).as_bytes());
            });
        }
        number
    }
}

#[derive(Debug, Default)]
struct Bundle {
    events: Message,
    last: u64,
    /// Events before the first one are missing.
    lost: bool,
    /// How many events of this CPU the trace says are missing.
    missing: u64,
}

/// The bundles being filled.
#[derive(Debug)]
pub(super) struct Bundles {
    cpus: BTreeMap<u32, Bundle>,
    bytes: usize,
    symbols: Symbols,
    states: States,
}

impl Bundles {
    pub(super) fn new(states: States) -> Self {
        Self { cpus: BTreeMap::new(), bytes: 0, symbols: Symbols::default(), states }
    }

    /// Takes an event.
    pub(super) fn take<W: Write>(&mut self, event: &Event, names: &Names, out: &mut Output<W>) {
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
        bundle.events.nested(2, |out| {
            ftrace::write(out, event, names, *states, symbols);
        });
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
            // Thousands of CPUs, which only a forged trace has, must not keep a full bundle's memory each.
            bundle.events = Message::default();
        }
        self.bytes = 0;
    }

    /// Writes what is left, and how many events each CPU lost.
    pub(super) fn finish<W: Write>(&mut self, out: &mut Output<W>) {
        self.flush(out);
        if self.cpus.values().all(|bundle| bundle.missing == 0) {
            return;
        }
        // Perfetto shows what was lost between these two.
        for (phase, at_end) in [(1_u32, false), (2, true)] {
            packet(out, SEQUENCE_FTRACE, None, |packet| {
                packet.nested(FTRACE_STATS, |stats| {
                    stats.unsigned(1, phase);
                    for (cpu, bundle) in &self.cpus {
                        stats.nested(2, |stats| {
                            stats.unsigned(1, *cpu);
                            stats.unsigned(3, if at_end { bundle.missing } else { 0 });
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
            packet.unsigned(13, NEEDS_STATE);
            packet.nested(FTRACE_EVENTS, |bundle| {
                bundle.unsigned(1, cpu);
                if self.lost {
                    bundle.unsigned(3, true);
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
