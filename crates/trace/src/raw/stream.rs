//! Reader of raw traces: one page of each CPU at a time, and the marks of processes, merged by time.
//! Not here: records (`page`), events (`decode`).

use super::decode::{CommonFields, Decoder};
use super::format::Format;
use super::layout::Layout;
use super::marks::Marks;
use super::page::{Cursor, Header, Missed, Record};
use super::symbols::Symbols;
use super::threads::Threads;
use crate::event::{Event, Kind, Names};
use crate::file::{Container, Head, TracefsText};
use crate::number;
use crate::report::{ProblemKind, Report};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Read, Seek};
use std::sync::Arc;

/// Maximum window of each CPU, and of all of them together, in bytes.
const WINDOW: usize = 256 << 10;
const ALL_WINDOWS: usize = 32 << 20;

/// Reader of a binderperf trace file: an iterator of its events in time order.
///
/// Memory does not grow with the trace: a window per CPU, the texts, and the names met.
#[derive(Debug)]
pub struct RawReader<R> {
    file: Container<R>,
    header: Header,
    decoder: Decoder,
    report: Report,
    lanes: Vec<Lane>,
    /// The lane behind all others.
    marks: Marks,
    /// Window size per CPU in bytes.
    window: usize,
    /// Time of each lane's next event, and the lane.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Statements of the head about CPUs; they come before the first event.
    ticks: Vec<Event>,
}

/// Pages of each CPU, oldest first.
pub(super) trait Pages {
    /// Size of a page in bytes.
    fn page_size(&self) -> usize;
    /// Replaces `space` with the next whole pages of a CPU, `most` bytes at most; leaves it empty if there are none.
    fn read_pages(&mut self, cpu: u32, space: &mut Vec<u8>, most: usize) -> io::Result<()>;
}

impl<R: Read + Seek> Pages for Container<R> {
    fn page_size(&self) -> usize {
        self.head().page_size as usize
    }

    fn read_pages(&mut self, cpu: u32, space: &mut Vec<u8>, most: usize) -> io::Result<()> {
        Container::read_pages(self, cpu, space, most)
    }
}

/// Source of pages for lanes.
pub(super) struct Source<'s, P> {
    pub(super) file: &'s mut P,
    pub(super) header: Header,
    pub(super) window: usize,
}

/// Stream of one CPU.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cpu: u32,
    window: Vec<u8>,
    /// Offset of the cursor's page in the window.
    page: usize,
    cursor: Option<Cursor>,
    ts: u64,
    pub(super) next: Option<Event>,
    /// No pages remain.
    pub(super) ended: bool,
    /// Dropped events, from the CPU's statistics.
    dropped: u64,
    /// Overwritten events, from the statistics, not counted by any page yet.
    overrun: u64,
    /// Gaps without a count: a full page has no room for it.
    uncounted: u64,
}

/// Whether a clock of this name in `trace_clock` counts something else than nanoseconds.
/// Fact: `trace_clocks` of `kernel/trace/trace.c`: all but these have `in_ns` 0: `uptime` is of clock ticks, `counter` of
/// events, `x86-tsc`, `ppc-tb` and the like of the CPU's own units.
fn counts(clock: &str) -> bool {
    !matches!(clock, "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai" | "")
}

impl<R: Read + Seek> RawReader<R> {
    /// Creates a reader of an opened file without formats; those of another one count. For many short inputs, as a fuzz target
    /// has, most of whose time would go into formats.
    pub fn with_formats_of<S>(file: Container<R>, other: &RawReader<S>) -> Self {
        let report = Report { stolen_ns: file.head().stolen_ns, ..file.report().clone() };
        Self::of(file, other.header, other.decoder.clone(), report)
    }

    /// Creates a reader of an opened file.
    pub fn new(file: Container<R>) -> Self {
        let mut report = Report { stolen_ns: file.head().stolen_ns, ..file.report().clone() };
        let text = |part| file.text(part, 0).unwrap_or_default();
        let header = if text(TracefsText::HeaderPage).is_empty() {
            Header::default()
        } else {
            Header::parse(text(TracefsText::HeaderPage)).unwrap_or_else(|| {
                report.note(ProblemKind::Unsupported, || "the pages' header is of an unknown form".into());
                Header::default()
            })
        };
        let mut names = Names::default();
        let layouts = layouts(&file, &mut names, &mut report);
        let threads =
            Threads::new(text(TracefsText::SavedCmdlines), text(TracefsText::SavedTgids), &mut names);
        let symbols = Symbols::new(text(TracefsText::Symbols), text(TracefsText::PrintkFormats));
        let decoder = Decoder { layouts: layouts.into(), names, threads, symbols: Arc::new(symbols) };
        Self::of(file, header, decoder, report)
    }

    fn of(file: Container<R>, header: Header, decoder: Decoder, mut report: Report) -> Self {
        let clock = &file.head().clock;
        if counts(clock) {
            let clock: String = clock.chars().take(32).collect();
            let text = || format!("the trace's clock is {clock}; 1 ns is assumed to be one of its units");
            report.note(ProblemKind::OtherClock, text);
        }
        let mut cpus: Vec<u32> = file.cpus().chain(file.cpus_with(TracefsText::Stats)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let window = (ALL_WINDOWS / cpus.len().max(1)).min(WINDOW);
        let lanes = cpus.into_iter().map(|cpu| Lane::new(cpu, file.text(TracefsText::Stats, cpu))).collect();
        let text = file.text(TracefsText::ProcessMarks, 0).unwrap_or_default();
        let marks = Marks::new(text, &mut report);
        let mut reader = Self {
            file,
            header,
            decoder,
            report,
            lanes,
            marks,
            window,
            order: BinaryHeap::new(),
            ticks: Vec::new(),
        };
        for lane in 0..=reader.lanes.len() {
            reader.advance(lane);
        }
        reader.ticks = reader.ticks();
        reader
    }

    /// Decoder of further pages.
    pub(super) fn into_decoder(self) -> (Header, Decoder) {
        (self.header, self.decoder)
    }

    /// Header of the file.
    pub fn head(&self) -> &Head {
        self.file.head()
    }

    /// Names that the events refer to.
    pub fn names(&self) -> &Names {
        &self.decoder.names
    }

    /// Report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Report, for what was found before the trace itself.
    pub(crate) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    fn ticks(&self) -> Vec<Event> {
        let Head { tick_ns: Some(period), tickless, .. } = self.head() else { return Vec::new() };
        let ts = self.order.peek().map_or(0, |Reverse((ts, _))| *ts);
        let tickless: HashSet<&u32> = tickless.iter().collect();
        let ticking = self.lanes.iter().map(|lane| lane.cpu).filter(|cpu| !tickless.contains(cpu));
        ticking
            .map(|cpu| Event { kind: Kind::Tick { period: *period }, ..Event::lost(ts, cpu, None) })
            .collect()
    }

    /// Reads a lane's next event and re-inserts the lane into the order.
    fn advance(&mut self, index: usize) {
        let Self { file, header, decoder, report, lanes, marks, window, order, .. } = self;
        let next = match lanes.get_mut(index) {
            Some(lane) => {
                let source = Source { file, header: *header, window: *window };
                lane.next = lane.event(source, decoder, report);
                lane.next.as_ref().map(|event| event.ts)
            }
            None => marks.ts(),
        };
        order.extend(next.map(|ts| Reverse((ts, index))));
    }
}

impl<R: Read + Seek> Iterator for RawReader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if let Some(tick) = self.ticks.pop() {
            return Some(tick);
        }
        let Reverse((_, index)) = self.order.pop()?;
        let event = match self.lanes.get_mut(index) {
            Some(lane) => lane.next.take()?,
            None => self.marks.next(&self.decoder.threads, &mut self.decoder.names)?,
        };
        match event.kind {
            Kind::Lost { count } => self.report.lose(count),
            _ => self.report.events += 1,
        }
        self.advance(index);
        Some(event)
    }
}

impl Lane {
    pub(super) fn new(cpu: u32, stats: Option<&[u8]>) -> Self {
        let value = |key: &[u8]| {
            let mut lines = stats.unwrap_or_default().split(|byte| *byte == b'\n');
            let value = lines.find_map(|line| line.strip_prefix(key))?;
            number::decimal(value.trim_ascii()).map(|(value, _)| value)
        };
        let stat = |key| value(key).unwrap_or(0);
        Self {
            cpu,
            window: Vec::new(),
            page: 0,
            cursor: None,
            ts: 0,
            next: None,
            ended: false,
            dropped: stat(b"dropped events:").saturating_add(stat(b"commit overrun:")),
            overrun: stat(b"overrun:"),
            uncounted: 0,
        }
    }

    pub(super) fn event(
        &mut self,
        mut source: Source<'_, impl Pages>,
        decoder: &mut Decoder,
        report: &mut Report,
    ) -> Option<Event> {
        let size = source.file.page_size();
        while !self.ended {
            let Some(cursor) = &mut self.cursor else {
                if let Some(lost) = self.open_page(&mut source, report) {
                    return Some(lost);
                }
                continue;
            };
            let page = self.window.get(self.page..self.page + size).unwrap_or_default();
            match cursor.next(page) {
                Record::Data { ts, bytes } => {
                    let Some(common) = CommonFields::of(bytes) else {
                        report.note(ProblemKind::Corrupt, || {
                            format!("an event of {} bytes on cpu {}", bytes.len(), self.cpu)
                        });
                        continue;
                    };
                    if ts < self.ts {
                        let (cpu, back) = (self.cpu, self.ts - ts);
                        report.note(ProblemKind::ClockBackwards, || {
                            format!("by {back} ns to {ts} ns on cpu {cpu}")
                        });
                    }
                    self.ts = ts;
                    let kind = decoder.kind(common.id, bytes, report);
                    let (comm, tgid) = decoder.threads.of(common.tid);
                    let CommonFields { tid, context, .. } = common;
                    return Some(Event { ts, cpu: self.cpu, tid, tgid, comm, context, kind });
                }
                Record::Corrupt(what) => {
                    let (cpu, ts) = (self.cpu, cursor.ts());
                    report.note(ProblemKind::Corrupt, || format!("{what}, on cpu {cpu} behind {ts} ns"));
                    self.close_page(size);
                    // The number of events behind it is unknown.
                    return Some(Event::lost(ts, self.cpu, None));
                }
                Record::End => self.close_page(size),
            }
        }
        if self.uncounted > 0 && self.overrun > 0 {
            report.count_gaps(std::mem::take(&mut self.uncounted), std::mem::take(&mut self.overrun));
        }
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then(|| Event::lost(self.ts, self.cpu, Some(dropped)))
    }

    fn close_page(&mut self, size: usize) {
        self.cursor = None;
        self.page += size;
    }

    /// Opens the next page; returns what is missing before it.
    fn open_page(&mut self, source: &mut Source<'_, impl Pages>, report: &mut Report) -> Option<Event> {
        let size = source.file.page_size();
        if self.page >= self.window.len() {
            self.page = 0;
            if let Err(error) = source.file.read_pages(self.cpu, &mut self.window, source.window) {
                self.window.clear();
                report.note(ProblemKind::Truncated, || format!("reading pages of cpu {}: {error}", self.cpu));
            }
            self.ended = self.window.is_empty();
            if self.ended {
                return None;
            }
        }
        match Cursor::open(self.window.get(self.page..self.page + size).unwrap_or_default(), source.header) {
            Ok(cursor) => {
                self.cursor = Some(cursor);
                match cursor.missed {
                    Missed::Nothing => None,
                    Missed::Some => {
                        self.uncounted += 1;
                        Some(Event::lost(cursor.ts(), self.cpu, None))
                    }
                    Missed::Count(count) => {
                        self.overrun = self.overrun.saturating_sub(count);
                        Some(Event::lost(cursor.ts(), self.cpu, Some(count)))
                    }
                }
            }
            Err(what) => {
                report.note(ProblemKind::Corrupt, || {
                    format!("{what}, on cpu {} behind {} ns", self.cpu, self.ts)
                });
                self.close_page(size);
                Some(Event::lost(self.ts, self.cpu, None))
            }
        }
    }
}

/// Layouts by event number.
fn layouts<R>(file: &Container<R>, names: &mut Names, report: &mut Report) -> Vec<Option<Layout>> {
    let mut layouts: Vec<Option<Layout>> = Vec::new();
    for (group, text) in file.formats() {
        let Some(format) = Format::parse(group, text) else {
            report.note(ProblemKind::Corrupt, || {
                format!("a format of the group {group} without a name or a number")
            });
            continue;
        };
        let index = usize::from(format.id);
        if layouts.len() <= index {
            layouts.resize(index + 1, None);
        }
        layouts[index] = Some(Layout::of(&format, names, report));
    }
    layouts
}
