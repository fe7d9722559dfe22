//! First pass over a trace: indexes bundles and slices, and steps over damage.
//! Not here: what is taken out of a packet besides (`packet`).
//! Facts: `trace.proto` and `trace_packet.proto`. Perfetto's service writes a packet with a marker of 16 bytes at its end
//! now and then, behind which a reader finds packets again.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek};

use super::bundle::{UNKNOWN_CLOCK, clock};
use super::clocks::{BOOT, Clocks, readings};
use super::decode::time;
use super::generic::Descriptors;
use super::index::{Block, Bundle, CpuBundles, Form, PLAIN, Place};
use super::inflate::inflate;
use super::packet::{KernelSymbols, Losses, Tracks, process_stats, process_tree};
use super::source::Source;
use super::threads::Threads;
use super::wire::{Fields, Value, first, offset_in, varint};
use crate::event::Names;
use crate::hash::FastHash;
use crate::report::{ProblemKind, Report};

const MARKER: [u8; 16] =
    [0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79];

/// Largest packet in bytes that is read; larger ones hold no events.
const LARGEST: u64 = 16 << 20;
/// Maximum number of bundles and of runs of slices: 96 MB of index.
const MOST_PLACES: usize = 4 << 20;
/// Maximum number of lists of one CPU, in traces that were joined.
const MOST_LISTS: usize = 64;
/// Maximum number of CPUs; more than Linux supports.
const MOST_CPUS: u32 = 8192;
/// Longest run of slices that is read at once, in bytes.
const LONGEST_RUN: u32 = 64 << 10;
/// Maximum bytes of all compressed packets' content: this, and so many times the file's length. Traces shrink to a tenth or so.
const MOST_CONTENT: u64 = 64 << 20;
const MOST_TIMES: u64 = 64;
/// Maximum number of packet sequences.
const MOST_SEQUENCES: usize = 1 << 16;

/// State of a packet sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    /// Generation of its kernel symbols.
    symbols: u32,
    /// Number of times that its packets were lost.
    losses: u64,
}

/// Packets of a sequence, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pub(super) places: Vec<Place>,
    /// Whether they hold slices.
    pub(super) has_events: bool,
}

/// What the first pass found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) names: Names,
    pub(super) report: Report,
    pub(super) threads: Threads,
    pub(super) clocks: Clocks,
    pub(super) tracks: Tracks,
    pub(super) symbols: KernelSymbols,
    pub(super) descriptors: Descriptors,
    pub(super) losses: Losses,
    pub(super) cpus: BTreeMap<u32, Vec<CpuBundles>>,
    pub(super) runs: BTreeMap<u32, Runs>,
    sequences: HashMap<u32, Sequence, FastHash>,
    generations: u32,
    places: usize,
    /// Damage that may have cost packets of any sequence.
    damages: u64,
    /// Packets of other machines.
    foreign: u64,
    /// Bytes of all compressed packets' content.
    content: u64,
}

/// Bytes of a packet: where they are, and with their key and length.
struct Packet<'p> {
    bytes: &'p [u8],
    place: Place,
    /// Offset of the key.
    key_at: u64,
}

/// Whether the beginning of a file is a trace of Perfetto: a packet with a known field, or a marker somewhere.
pub(crate) fn looks_like_trace(start: &[u8]) -> bool {
    let known = |packet: &[u8]| {
        let mut fields = Fields::of(packet);
        let known = fields.by_ref().any(|(number, value)| match value {
            Value::Number(_) => matches!(number, 3 | 8 | 10 | 13 | 42 | 58 | 79 | 87 | 98),
            Value::Bytes(_) => matches!(number, 1 | 2 | 6 | 9 | 11 | 12 | 33..=36 | 45 | 50 | 59 | 60 | 133),
        });
        known && fields.all(|_| true) && !fields.is_broken()
    };
    let mut rest = start;
    // Empty packets, as some writers begin with.
    while let Some(behind) = rest.strip_prefix(&[0x0a, 0]) {
        rest = behind;
    }
    let first = (varint(&mut rest) == Some(0x0a)).then(|| varint(&mut rest)).flatten();
    let begins = match first.and_then(|length| usize::try_from(length).ok()) {
        Some(length) if length > 0 && length <= rest.len() => known(&rest[..length]),
        // A packet longer than what was read: its first field must be of a known kind.
        Some(length) if length > rest.len() && start.len() > 4096 => {
            rest.starts_with(&[0x92, 0x03])
                || matches!(rest.first(), Some(0x0a | 0x12 | 0x18 | 0x32 | 0x40 | 0x50 | 0x5a | 0x62 | 0x68))
        }
        _ => false,
    };
    begins || start.windows(MARKER.len()).any(|window| window == MARKER)
}

/// Position of what is behind the next marker, from `at` on.
fn behind_marker<R: Read + Seek>(source: &mut Source<R>, mut at: u64) -> io::Result<Option<u64>> {
    const STEP: usize = 1 << 20;
    while at < source.end {
        let window = source.window(at, STEP)?;
        if let Some(found) = window.windows(MARKER.len()).position(|bytes| bytes == MARKER) {
            return Ok(Some(at + (found + MARKER.len()) as u64));
        }
        if window.len() < STEP {
            break;
        }
        at += (STEP - MARKER.len()) as u64;
    }
    Ok(None)
}

/// Reads a trace to its end.
///
/// # Errors
/// I/O errors of the input. Damage is in the report.
pub(super) fn scan<R: Read + Seek>(source: &mut Source<R>) -> io::Result<Scan> {
    let mut scan = Scan::new();
    let mut at = 0;
    while at < source.end {
        let mut head = source.window(at, 16)?;
        let whole = head.len();
        let key = varint(&mut head);
        let length = (key == Some(0x0a)).then(|| varint(&mut head)).flatten();
        let start = at + (whole - head.len()) as u64;
        match length {
            Some(length) if length <= source.end - start => {
                if length > LARGEST {
                    scan.report.note(ProblemKind::Unsupported, || {
                        format!("a packet of {length} bytes at byte {at} is left out")
                    });
                    scan.damages += 1;
                } else {
                    scan.file_packet(source, at, start, length)?;
                }
                at = start + length;
            }
            _ => match behind_marker(source, at)? {
                Some(next) => {
                    scan.report.note(ProblemKind::Corrupt, || {
                        format!("{} bytes at byte {at} are no packet", next - at)
                    });
                    scan.damages += 1;
                    at = next;
                }
                None => {
                    let left = source.end - at;
                    let kind = if length.is_some() { ProblemKind::Truncated } else { ProblemKind::Corrupt };
                    let told = match length {
                        Some(length) => {
                            format!(
                                "the packet at byte {at} says {length} bytes, {left} are left with its head"
                            )
                        }
                        None => format!("the last {left} bytes, at byte {at}, are no packet"),
                    };
                    scan.report.note(kind, || told);
                    break;
                }
            },
        }
    }
    scan.finish();
    source.drop_window();
    Ok(scan)
}

impl Scan {
    fn new() -> Self {
        let mut names = Names::default();
        Self {
            threads: Threads::new(&mut names),
            names,
            report: Report::default(),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            symbols: KernelSymbols::default(),
            descriptors: Descriptors::default(),
            losses: Losses::default(),
            cpus: BTreeMap::new(),
            runs: BTreeMap::new(),
            sequences: HashMap::default(),
            generations: 0,
            places: 0,
            damages: 0,
            foreign: 0,
            content: 0,
        }
    }

    fn finish(&mut self) {
        let foreign = self.foreign;
        if foreign > 0 {
            let packets = if foreign == 1 { "packet" } else { "packets" };
            self.report.note(ProblemKind::Unsupported, || {
                format!("{foreign} {packets} of other machines in this trace are left out")
            });
        }
        self.runs.retain(|_, runs| runs.has_events);
    }

    /// Takes a packet of the file, and those in it if it is compressed.
    fn file_packet<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        key_at: u64,
        at: u64,
        length: u64,
    ) -> io::Result<()> {
        let len = u32::try_from(length).unwrap_or(u32::MAX);
        let most = MOST_CONTENT + MOST_TIMES * source.end;
        let bytes = source.window(at, len as usize)?;
        let place = Place { at, len, block: PLAIN };
        let packed = Fields::of(bytes).find_map(|(number, value)| match number {
            50 => Some((Form::Zlib, value.bytes())),
            133 => Some((Form::Zstd, value.bytes())),
            _ => None,
        });
        let Some((form, packed)) = packed else {
            self.packet(&Packet { bytes, place, key_at });
            return Ok(());
        };
        if self.content > most {
            self.report.note(ProblemKind::Unsupported, || {
                format!("the compressed packet at byte {at} and later ones hold far more than their bytes; they are left out")
            });
            self.damages += 1;
            return Ok(());
        }
        let block_at = at + offset_in(bytes, packed) as u64;
        let block = Block { at: block_at, len: packed.len() as u32, form };
        match inflate(packed, form) {
            Ok(content) => {
                self.content += content.len() as u64;
                if let Some(number) = source.note_block(block, content.len()) {
                    self.block(&content, number);
                }
            }
            Err(error) => {
                self.report
                    .note(ProblemKind::Corrupt, || format!("a compressed packet at byte {at}: {error}"));
                self.damages += 1;
            }
        }
        Ok(())
    }

    fn block(&mut self, content: &[u8], block: u32) {
        let mut fields = Fields::of(content);
        let mut key_at = 0;
        while let Some((number, value)) = fields.next() {
            let bytes = value.bytes();
            if number == 1 {
                let place = Place { at: offset_in(content, bytes) as u64, len: bytes.len() as u32, block };
                self.packet(&Packet { bytes, place, key_at });
            }
            key_at = (content.len() - fields.left()) as u64;
        }
        if fields.is_broken() {
            self.report.note(ProblemKind::Corrupt, || "packets in a compressed packet".into());
            self.damages += 1;
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        let (mut sequence, mut flags, mut dropped, mut machine, mut ts) = (0, 0, false, 0, None);
        let mut fields = Fields::of(packet.bytes);
        for (number, value) in fields.by_ref() {
            match number {
                8 => ts = Some(value.number()),
                10 => sequence = value.word(),
                13 => flags = value.number(),
                42 => dropped = value.number() != 0,
                98 => machine = value.number(),
                _ => {}
            }
        }
        if fields.is_broken() {
            let at = packet.place.at;
            self.report.note(ProblemKind::Corrupt, || format!("a packet at byte {at}"));
            self.damages += 1;
            return;
        }
        if machine != 0 {
            self.foreign += 1;
            return;
        }
        let state = self.sequence(sequence, flags, dropped);
        // Whether slices, or what they need, are in it: names, defaults, a clock, or a step of an incremental clock.
        let mut has_slices = false;
        for (number, value) in Fields::of(packet.bytes) {
            if number == 1 {
                self.bundle(packet, value.bytes(), state);
            } else {
                has_slices |= matches!(number, 6 | 11 | 12 | 59 | 60) || (number == 13 && flags & 1 != 0);
                self.others(number, value, sequence, state, ts.unwrap_or(0));
            }
        }
        if has_slices {
            self.run(packet, sequence, first(packet.bytes, 11).is_some());
        }
    }

    /// State of a packet's sequence.
    fn sequence(&mut self, number: u32, flags: u64, dropped: bool) -> Sequence {
        if self.sequences.len() >= MOST_SEQUENCES && !self.sequences.contains_key(&number) {
            return Sequence::default();
        }
        let state = self.sequences.entry(number).or_default();
        if flags & 1 != 0 || state.symbols == 0 {
            self.generations += 1;
            state.symbols = self.generations;
        }
        state.losses += u64::from(dropped);
        *state
    }

    fn others(&mut self, number: u32, value: Value<'_>, sequence: u32, state: Sequence, ts: u64) {
        let (threads, names) = (&mut self.threads, &mut self.names);
        match number {
            2 => process_tree(value.bytes(), ts, threads, names),
            6 => drop(self.clocks.take(&readings(value.bytes()))),
            9 => process_stats(value.bytes(), ts, threads),
            12 => self.symbols.take(value.bytes(), state.symbols, names),
            34 => self.losses.take(value.bytes()),
            44 => self.tracks.of_sequence(sequence, value.bytes(), ts, threads, names),
            60 => self.tracks.descriptor(value.bytes(), ts, threads, names),
            _ => {}
        }
    }

    fn bundle(&mut self, packet: &Packet<'_>, bundle: &[u8], state: Sequence) {
        let (mut cpu, mut lost, mut since) = (0, false, u64::MAX);
        let (mut its_clock, mut here, mut boot) = (BOOT, None, None);
        let mut fields = Fields::of(bundle);
        for (number, value) in fields.by_ref() {
            match number {
                1 => cpu = value.word(),
                2 if since == u64::MAX => {
                    since = Some(time(value.bytes())).filter(|at| *at > 0).unwrap_or(since);
                }
                3 => lost = value.number() != 0,
                4 => since = since.min(first_of_compact(value.bytes())),
                5 => {
                    its_clock = clock(value.number());
                    if value.number() == UNKNOWN_CLOCK {
                        let text = || format!("events of cpu {cpu}; 1 ns is assumed to be one of its units");
                        self.report.note(ProblemKind::OtherClock, text);
                    }
                }
                6 => here = Some(value.number()),
                7 => boot = Some(value.number()),
                11 => self.descriptors.take(value.bytes()),
                _ => {}
            }
        }
        if fields.is_broken() || cpu >= MOST_CPUS {
            self.report.note(ProblemKind::Corrupt, || format!("a bundle of events of cpu {cpu}"));
            self.damages += 1;
            return;
        }
        if let (Some(here), Some(boot)) = (here, boot) {
            self.clocks.pair(its_clock, here, boot);
        }
        if since == u64::MAX && !lost {
            return;
        }
        if self.places >= MOST_PLACES {
            return self.report.note(ProblemKind::Unsupported, || {
                format!("the trace has more than {MOST_PLACES} bundles; the rest is left out")
            });
        }
        self.places += 1;
        let lists = self.cpus.entry(cpu).or_default();
        // A bundle without events has only its gap, which belongs before the next one.
        let back = since != u64::MAX && lists.last().is_some_and(|list| since < list.last);
        if lists.is_empty() || (back && lists.len() < MOST_LISTS) {
            lists.push(CpuBundles { cpu, losses: state.losses + self.damages, ..CpuBundles::default() });
        }
        let Some(list) = lists.last_mut() else { return };
        let losses = state.losses + self.damages;
        lost |= std::mem::replace(&mut list.losses, losses) != losses;
        if since != u64::MAX {
            list.last = since;
        }
        let at = packet.place.at + offset_in(packet.bytes, bundle) as u64;
        let place = Place { at, len: bundle.len() as u32, ..packet.place };
        list.bundles.push(Bundle::new(place, state.symbols, lost));
    }

    /// Adds a packet to the runs of its sequence.
    fn run(&mut self, packet: &Packet<'_>, sequence: u32, event: bool) {
        if self.places >= MOST_PLACES
            || (self.runs.len() >= MOST_SEQUENCES && !self.runs.contains_key(&sequence))
        {
            return;
        }
        let Packet { place, key_at, .. } = packet;
        let end = place.at + u64::from(place.len);
        let runs = self.runs.entry(sequence).or_default();
        runs.has_events |= event;
        if let Some(last) = runs.places.last_mut()
            && last.block == place.block
            && last.at + u64::from(last.len) == *key_at
            && end - last.at <= u64::from(LONGEST_RUN)
        {
            last.len = (end - last.at) as u32;
            return;
        }
        self.places += 1;
        let len = (end - key_at) as u32;
        runs.places.push(Place { at: *key_at, len, block: place.block });
    }
}

/// First time of the compact form.
fn first_of_compact(compact: &[u8]) -> u64 {
    let columns = Fields::of(compact).filter(|(number, _)| matches!(number, 1 | 7));
    columns.filter_map(|(_, value)| varint(&mut value.bytes())).min().unwrap_or(u64::MAX)
}
