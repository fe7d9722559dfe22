//! Stream of one CPU: its event bundles, each with events and with switches and wake-ups in a compact form.
//! Not here: an event's message (`decode`).
//! Facts: `ftrace_event_bundle.proto`. In the compact form each kind of event is a list of columns, times are
//! differences, names are numbers of the bundle's own list. A switch does not say who leaves, nor a wake-up who wakes: it
//! is the thread that ran.

use std::io::{Read, Seek};
use std::ops::Range;

use super::clocks::{BOOT, Clocks, FTRACE, MONOTONIC_RAW};
use super::decode::{Decoder, Origin, time};
use super::index::{Bundle, CpuBundles};
use super::source::{Source, unread};
use super::wire::{Fields, Value, offset_in, varint};
use crate::event::{Context, Event, Kind, Name, Prio, State, Task, Wake};
use crate::report::{ProblemKind, Report};
use crate::schema;

/// `FtraceEventBundle`.
const EVENT: u32 = 2;
const COMPACT_SCHED: u32 = 4;
const FTRACE_CLOCK: u32 = 5;

/// `FTRACE_CLOCK_UNKNOWN`.
pub(super) const UNKNOWN_CLOCK: u64 = 1;

/// Priority of a task whose own is not known: nice 0.
const USUAL: Prio = Prio(120);

/// Clock of a bundle's events.
/// Fact: `FtraceClock`: 0 is the boot clock, 1 one that the recorder does not know ([`UNKNOWN_CLOCK`]), 4 the raw monotonic
/// one; others are only in the bundles themselves.
pub(super) fn clock(ftrace_clock: u64) -> u32 {
    match ftrace_clock {
        0 => BOOT,
        4 => MONOTONIC_RAW,
        other => FTRACE + u32::try_from(other.min(16)).unwrap_or(0),
    }
}

/// Stream of one CPU.
#[derive(Debug)]
pub(super) struct CpuLane {
    cpu: u32,
    bundles: std::vec::IntoIter<Bundle>,
    /// The open bundle.
    bytes: Vec<u8>,
    clock: u32,
    symbols: u32,
    /// Where the next event is looked for.
    at: usize,
    event: Option<(u64, Range<usize>)>,
    /// Time of the last event of the list that has one, by the bundle's clock.
    since: u64,
    switches: Columns<5>,
    wakings: Columns<6>,
    comms: Vec<Name>,
    /// Events before the open bundle are missing.
    gap: bool,
    /// Running task, by the last switch or event; `None` behind a gap.
    running: Option<Task>,
    last: u64,
}

/// Columns of numbers, read row by row.
#[derive(Clone, Debug)]
struct Columns<const N: usize> {
    rest: [Range<usize>; N],
    /// Time of the next row, and its other values.
    next: Option<(u64, [u64; N])>,
    base: u64,
}

impl<const N: usize> Default for Columns<N> {
    fn default() -> Self {
        Self { rest: [const { 0..0 }; N], next: None, base: 0 }
    }
}

impl<const N: usize> Columns<N> {
    /// Goes to the next row. The first column is the time, as a difference; `optional` columns may be shorter.
    fn step(&mut self, bytes: &[u8], optional: usize) {
        self.next = None;
        let mut row = [0; N];
        for (index, (column, value)) in self.rest.iter_mut().zip(&mut row).enumerate() {
            let mut rest = bytes.get(column.clone()).unwrap_or_default();
            match varint(&mut rest) {
                Some(found) => *value = found,
                None if index >= N - optional => {}
                None => return,
            }
            column.start = column.end - rest.len();
        }
        self.base = self.base.wrapping_add(row[0]);
        self.next = Some((self.base, row));
    }

    fn time(&self) -> u64 {
        self.next.map_or(u64::MAX, |(ts, _)| ts)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
fn int(number: u64) -> i32 {
    (number as u32).cast_signed()
}

impl CpuLane {
    pub(super) fn new(index: CpuBundles) -> Self {
        Self {
            cpu: index.cpu,
            bundles: index.bundles.into_iter(),
            bytes: Vec::new(),
            clock: BOOT,
            symbols: 0,
            at: 0,
            event: None,
            since: 0,
            switches: Columns::default(),
            wakings: Columns::default(),
            comms: Vec::new(),
            gap: false,
            running: None,
            last: 0,
        }
    }

    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Time of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Time of the next event, if there is one; opens the next bundle for it.
    pub(super) fn peek<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        decoder: &mut Decoder,
        clocks: &Clocks,
        report: &mut Report,
    ) -> Option<u64> {
        loop {
            let next = self.next_time();
            if next != u64::MAX {
                return Some(clocks.to_boot(self.clock, next).unwrap_or(next));
            }
            // A gap that nothing follows is at the end.
            let Some(bundle) = self.bundles.next() else {
                source.release(&mut self.bytes);
                return self.gap.then_some(self.last);
            };
            if let Err(error) = source.refill(bundle.place, &mut self.bytes) {
                report.note(unread(&error), || format!("reading events of cpu {}: {error}", self.cpu));
                self.bytes.clear();
                self.gap = true;
            }
            self.open(bundle, decoder);
        }
    }

    fn next_time(&self) -> u64 {
        let event = self.event.as_ref().map_or(u64::MAX, |(ts, _)| *ts);
        event.min(self.switches.time()).min(self.wakings.time())
    }

    fn open(&mut self, bundle: Bundle, decoder: &mut Decoder) {
        self.symbols = bundle.symbols();
        self.gap |= bundle.is_behind_a_gap();
        (self.at, self.clock, self.since) = (0, BOOT, 0);
        (self.switches, self.wakings) = (Columns::default(), Columns::default());
        self.comms.clear();
        let bytes = std::mem::take(&mut self.bytes);
        for (number, value) in Fields::of(&bytes) {
            match (number, value) {
                (COMPACT_SCHED, Value::Bytes(compact)) => {
                    self.open_compact(compact, offset_in(&bytes, compact), decoder);
                }
                (FTRACE_CLOCK, Value::Number(number)) => self.clock = clock(number),
                _ => {}
            }
        }
        self.switches.step(&bytes, 0);
        self.wakings.step(&bytes, 2);
        self.find_event(&bytes);
        self.bytes = bytes;
    }

    fn open_compact(&mut self, compact: &[u8], at: usize, decoder: &mut Decoder) {
        for (number, value) in Fields::of(compact) {
            let Value::Bytes(bytes) = value else { continue };
            let start = at + offset_in(compact, bytes);
            let range = start..start + bytes.len();
            match number {
                1 => self.switches.rest[0] = range,
                2..=4 => self.switches.rest[number as usize - 1] = range,
                6 => self.switches.rest[4] = range,
                5 => self.comms.push(decoder.names.intern_bytes(bytes)),
                7..=12 => self.wakings.rest[number as usize - 7] = range,
                _ => {}
            }
        }
    }

    /// Finds the next event of the list.
    fn find_event(&mut self, bytes: &[u8]) {
        let rest = bytes.get(self.at..).unwrap_or_default();
        let mut fields = Fields::of(rest);
        self.event = None;
        for (number, value) in fields.by_ref() {
            if let (EVENT, Value::Bytes(message)) = (number, value) {
                let start = offset_in(bytes, message);
                // An event without a time is of the time of the one before.
                self.since = Some(time(message)).filter(|at| *at > 0).unwrap_or(self.since).max(1);
                self.event = Some((self.since, start..start + message.len()));
                break;
            }
        }
        self.at = bytes.len() - fields.left();
    }

    /// Takes the next event, for which [`CpuLane::peek`] returned the time `ts`.
    pub(super) fn take(&mut self, ts: u64, decoder: &mut Decoder, report: &mut Report) -> Event {
        if std::mem::take(&mut self.gap) {
            self.running = None;
            return Event::lost(ts.max(self.last), self.cpu, None);
        }
        if ts < self.last {
            let (cpu, back) = (self.cpu, self.last - ts);
            report.note(ProblemKind::ClockBackwards, || format!("by {back} ns to {ts} ns on cpu {cpu}"));
        }
        self.last = ts;
        let next = self.next_time();
        let bytes = std::mem::take(&mut self.bytes);
        // A wake-up goes before the switch that it leads to.
        let event = if let Some((_, range)) = self.event.take_if(|(at, _)| *at == next) {
            self.find_event(&bytes);
            let origin = Origin { cpu: self.cpu, symbols: self.symbols };
            decoder.event(bytes.get(range).unwrap_or_default(), ts, origin, report)
        } else if let Some((_, row)) = self.wakings.next.filter(|(at, _)| *at == next) {
            self.wakings.step(&bytes, 2);
            self.waking(ts, row, decoder)
        } else {
            let row = self.switches.next.map_or([0; 5], |(_, row)| row);
            self.switches.step(&bytes, 0);
            self.switch(ts, row, decoder)
        };
        self.bytes = bytes;
        self.note_running(&event);
        event
    }

    fn note_running(&mut self, event: &Event) {
        match event.kind {
            Kind::Switch { next, .. } => self.running = Some(next),
            // Any event shows who runs.
            _ if event.tid >= 0 && self.running.is_none_or(|task| task.tid != event.tid) => {
                self.running = Some(Task { tid: event.tid, comm: event.comm, prio: USUAL });
            }
            _ => {}
        }
    }

    fn comm(&self, index: u64) -> Name {
        usize::try_from(index).ok().and_then(|index| self.comms.get(index)).copied().unwrap_or(Name::NONE)
    }

    fn switch(&self, ts: u64, row: [u64; 5], decoder: &mut Decoder) -> Event {
        let [_, state, tid, prio, comm] = row;
        let next = Task { tid: int(tid), comm: self.comm(comm), prio: Prio(int(prio)) };
        let prev = self.running.unwrap_or(Task { tid: -1, comm: Name::NONE, prio: USUAL });
        let kind = Kind::Switch { prev, state: State::of_letter(schema::state_letter(state)), next };
        decoder.meet(&kind);
        self.event(ts, prev.tid, Context::default(), kind, decoder)
    }

    fn waking(&self, ts: u64, row: [u64; 6], decoder: &mut Decoder) -> Event {
        let [_, tid, cpu, prio, comm, flags] = row;
        let task = Task { tid: int(tid), comm: self.comm(comm), prio: Prio(int(prio)) };
        let kind = Kind::Waking(Wake { task, target_cpu: int(cpu).cast_unsigned() });
        decoder.meet(&kind);
        let waker = self.running.map_or(-1, |task| task.tid);
        self.event(ts, waker, Context::of_flags(flags.to_le_bytes()[0]), kind, decoder)
    }

    fn event(&self, ts: u64, tid: i32, context: Context, kind: Kind, decoder: &Decoder) -> Event {
        let (comm, tgid) = decoder.threads.of(tid, ts);
        Event { ts, cpu: self.cpu, tid, tgid, comm, context, kind }
    }
}
