//! Stream of one writer's slices on thread tracks, as the marks that atrace writes for the same.
//! Not here: which thread a track is (`packet`), ftrace (`bundle`).
//! Facts: `track_event.proto`, `trace_packet_defaults.proto`; a sequence's interned names and defaults hold until it clears
//! its state.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Seek};
use std::sync::Arc;

use super::clocks::{BOOT, Clocks, OF_SEQUENCE, Reading, readings};
use super::index::Place;
use super::packet::Tracks;
use super::source::{Source, unread};
use super::wire::{Fields, Value, first};
use crate::report::Report;

/// Fields of `TracePacket`.
const CLOCK_SNAPSHOT: u32 = 6;
const TIMESTAMP: u32 = 8;
const TRACK_EVENT: u32 = 11;
const INTERNED_DATA: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const PREVIOUS_DROPPED: u32 = 42;
const TIMESTAMP_CLOCK: u32 = 58;
const DEFAULTS: u32 = 59;

/// Longest name of a slice that is kept, in characters.
const LONGEST_NAME: usize = 1024;
/// Maximum number of interned names.
const MOST_NAMES: usize = 1 << 18;

/// Category of the slices that `trace analyze --perfetto` draws.
const OWN: &[u8] = b"binderperf";

/// Slice of a thread that begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) ts: u64,
    pub(super) tid: i32,
    pub(super) tgid: i32,
    /// Name of the slice that begins; `None` if one ends.
    pub(super) begins: Option<Arc<str>>,
}

impl Slice {
    /// The mark that atrace writes for it. A short trace may have many slices of one long name, so it is made late.
    pub(super) fn mark(&self) -> String {
        match &self.begins {
            Some(name) => format!("B|{}|{name}", self.tgid),
            None => format!("E|{}", self.tgid),
        }
    }
}

/// Stream of one packet sequence.
#[derive(Debug)]
pub(super) struct TrackLane {
    sequence: u32,
    runs: std::vec::IntoIter<Place>,
    bytes: Vec<u8>,
    slices: VecDeque<Slice>,
    names: HashMap<u64, Arc<str>>,
    default_track: Option<u64>,
    default_clock: u32,
    /// Clocks of this sequence: at a snapshot, what boot time it was; the sum of an incremental clock.
    clocks: HashMap<u32, (Reading, u64, u64)>,
    /// Names depend on packets that are missing.
    blind: bool,
    /// Slices whose name or time is unknown.
    pub(super) nameless: u64,
}

/// Tables of the first pass.
pub(super) struct Known<'k> {
    pub(super) tracks: &'k Tracks,
    pub(super) clocks: &'k Clocks,
}

impl TrackLane {
    pub(super) fn new(sequence: u32, runs: Vec<Place>) -> Self {
        Self {
            sequence,
            runs: runs.into_iter(),
            bytes: Vec::new(),
            slices: VecDeque::new(),
            names: HashMap::new(),
            default_track: None,
            default_clock: BOOT,
            clocks: HashMap::new(),
            blind: false,
            nameless: 0,
        }
    }

    /// Time of the next slice; reads on for it.
    pub(super) fn peek<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        known: &Known<'_>,
        report: &mut Report,
    ) -> Option<u64> {
        while self.slices.is_empty() {
            let place = self.runs.next()?;
            let mut bytes = std::mem::take(&mut self.bytes);
            match source.read(place, &mut bytes) {
                Ok(()) => {
                    for (_, packet) in Fields::of(&bytes).filter(|(number, _)| *number == 1) {
                        self.packet(packet.bytes(), known);
                    }
                }
                Err(error) => report.note(unread(&error), || format!("reading slices: {error}")),
            }
            self.bytes = bytes;
        }
        self.slices.front().map(|slice| slice.ts)
    }

    /// Takes the next slice.
    pub(super) fn take(&mut self) -> Option<Slice> {
        self.slices.pop_front()
    }

    fn packet(&mut self, packet: &[u8], known: &Known<'_>) {
        let (mut ts, mut clock, mut event, mut flags, mut dropped) = (None, None, None, 0, false);
        for (number, value) in Fields::of(packet) {
            match number {
                SEQUENCE_FLAGS => flags = value.number(),
                PREVIOUS_DROPPED => dropped = value.number() != 0,
                TIMESTAMP => ts = Some(value.number()),
                TIMESTAMP_CLOCK => clock = Some(value.word()),
                TRACK_EVENT => event = Some(value.bytes()),
                _ => {}
            }
        }
        let (clears, needs_state) = (flags & 1 != 0, flags & 2 != 0);
        if clears {
            self.names.clear();
            (self.default_track, self.default_clock) = (None, BOOT);
        }
        // A packet that clears needs none of those that were lost before it.
        self.blind = !clears && (self.blind || dropped);
        // What an event needs may stand behind it in its packet.
        for (number, value) in Fields::of(packet) {
            match number {
                INTERNED_DATA => self.intern(value.bytes()),
                DEFAULTS => self.set_defaults(value.bytes()),
                CLOCK_SNAPSHOT => self.snapshot(value.bytes(), known.clocks),
                _ => {}
            }
        }
        // A packet without an event moves an incremental clock too.
        let ts = ts.and_then(|ts| self.boot_time(clock.unwrap_or(self.default_clock), ts, known.clocks));
        let Some(event) = event else { return };
        let kind = first(event, 9).map_or(0, Value::number);
        let own = Fields::of(event).any(|(field, value)| field == 22 && value.bytes() == OWN);
        // Instants and counters say nothing about a thread's time; our own slices come from the events anew.
        if !matches!(kind, 1 | 2) || own {
            return;
        }
        let ts = ts.filter(|_| !(needs_state && self.blind));
        match ts {
            Some(ts) => self.slice(event, kind, ts, known.tracks),
            None => self.nameless += 1,
        }
    }

    fn intern(&mut self, interned: &[u8]) {
        for (_, name) in Fields::of(interned).filter(|(number, _)| *number == 2) {
            if self.names.len() < MOST_NAMES
                && let (Some(number), Some(text)) = (first(name.bytes(), 1), first(name.bytes(), 2))
            {
                // A longer one is of no program, and each of its slices would carry it.
                let text: String = text.text().chars().take(LONGEST_NAME).collect();
                self.names.insert(number.number(), text.into());
            }
        }
    }

    fn set_defaults(&mut self, defaults: &[u8]) {
        let event = first(defaults, 11).map_or(&[][..], Value::bytes);
        self.default_track = first(event, 11).map(Value::number).or(self.default_track);
        self.default_clock = first(defaults, 58).map_or(self.default_clock, Value::word);
    }

    fn snapshot(&mut self, snapshot: &[u8], clocks: &Clocks) {
        let readings = readings(snapshot);
        let boot = readings.iter().find_map(|reading| match reading.clock {
            BOOT => Some(reading.ts),
            _ => clocks.to_boot(reading.clock, reading.ts),
        });
        let Some(boot) = boot else { return };
        for reading in readings.into_iter().filter(|reading| OF_SEQUENCE.contains(&reading.clock)) {
            self.clocks.insert(reading.clock, (reading, boot, reading.ts));
        }
    }

    fn boot_time(&mut self, clock: u32, ts: u64, clocks: &Clocks) -> Option<u64> {
        if !OF_SEQUENCE.contains(&clock) {
            return clocks.to_boot(clock, ts);
        }
        let (reading, boot, sum) = self.clocks.get_mut(&clock)?;
        let ts = if reading.incremental { sum.wrapping_add(ts) } else { ts };
        *sum = ts;
        Some(boot.wrapping_add(ts.wrapping_sub(reading.ts).wrapping_mul(reading.unit)))
    }

    /// Takes a `TrackEvent`, if its track is a thread's.
    fn slice(&mut self, event: &[u8], kind: u64, ts: u64, tracks: &Tracks) {
        let (mut track, mut name, mut number) = (None, None, None);
        for (field, value) in Fields::of(event) {
            match field {
                10 => number = Some(value.number()),
                11 => track = Some(value.number()),
                23 => name = Some(value.text()),
                _ => {}
            }
        }
        let Some(thread) = tracks.thread(self.sequence, track.or(self.default_track)) else { return };
        let begins = (kind == 1).then(|| {
            let interned = || self.names.get(&number?).cloned();
            // One without a name is a slice all the same: its end must not end another.
            name.map(Into::into).or_else(interned).unwrap_or_else(|| {
                self.nameless += 1;
                "".into()
            })
        });
        self.slices.push_back(Slice { ts, tid: thread.tid, tgid: thread.tgid, begins });
    }
}
