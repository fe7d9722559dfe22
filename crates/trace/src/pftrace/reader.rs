//! Reader of Perfetto's traces: the streams of CPUs and writers, merged by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{Read, Seek};

use super::bundle::CpuLane;
use super::clocks::Clocks;
use super::decode::Decoder;
use super::packet::Tracks;
use super::scan::{Scan, scan};
use super::source::Source;
use super::tracks::{Known, Slice, TrackLane};
use crate::event::{Context, Event, Kind, Names};
use crate::fields;
use crate::file::OpenError;
use crate::hash::FastHash;
use crate::report::{ProblemKind, Report};

/// Reader of a Perfetto trace: an iterator of its events in time order, on the boot clock.
#[derive(Debug)]
pub struct PerfettoReader<R> {
    source: Source<R>,
    decoder: Decoder,
    clocks: Clocks,
    tracks: Tracks,
    report: Report,
    lanes: Vec<Lane>,
    /// Time of each lane's next event, and the lane.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// CPU on which each thread ran last, if slices need it.
    ran_on: Option<HashMap<i32, u32, FastHash>>,
    /// Gaps of each CPU.
    gaps: HashMap<u32, u64>,
    /// Events that each CPU lost, by the kernel's counters.
    lost: Vec<(u32, u64)>,
    /// Last time of each CPU, once the trace has ended.
    ends: Option<HashMap<u32, u64>>,
    last: u64,
}

/// Stream of events.
#[derive(Debug)]
enum Lane {
    Cpu(Box<CpuLane>),
    Track(Box<TrackLane>),
}

impl<R: Read + Seek> PerfettoReader<R> {
    /// Opens a trace: reads it once to its end.
    ///
    /// # Errors
    /// I/O errors of the input. Problems of the trace are in the [`Report`].
    pub fn open(input: R) -> Result<Self, OpenError> {
        let mut source = Source::new(input)?;
        let Scan {
            mut names,
            mut report,
            threads,
            clocks,
            tracks,
            symbols,
            descriptors,
            losses,
            cpus,
            runs,
            ..
        } = scan(&mut source)?;
        if cpus.is_empty() {
            report.note(ProblemKind::Unsupported, || {
                "this trace of Perfetto has no events of the kernel; record the data source linux.ftrace, as \
                 `binderperf trace config` has it"
                    .into()
            });
        }
        let local_timer = names.intern("local_timer");
        let ran_on = (!runs.is_empty()).then(HashMap::default);
        let of_cpus = cpus.into_values().flatten().map(|list| Lane::Cpu(Box::new(CpuLane::new(list))));
        let of_tracks =
            runs.into_iter().map(|(number, runs)| Lane::Track(Box::new(TrackLane::new(number, runs.places))));
        let lanes: Vec<Lane> = of_cpus.chain(of_tracks).collect();
        let decoder = Decoder { names, threads, descriptors, symbols: symbols.known, local_timer };
        let lost = losses.lost.into_iter().collect();
        let mut reader = Self {
            source,
            decoder,
            clocks,
            tracks,
            report,
            lanes,
            order: BinaryHeap::new(),
            ran_on,
            gaps: HashMap::new(),
            lost,
            ends: None,
            last: 0,
        };
        for lane in 0..reader.lanes.len() {
            reader.advance(lane);
        }
        Ok(reader)
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

    /// Finds a lane's next event and puts the lane into the order.
    fn advance(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let next = match lane {
            Lane::Cpu(lane) => lane.peek(&mut self.source, &mut self.decoder, &self.clocks, &mut self.report),
            Lane::Track(lane) => {
                let known = Known { tracks: &self.tracks, clocks: &self.clocks };
                let next = lane.peek(&mut self.source, &known, &mut self.report);
                let nameless = lane.nameless;
                if next.is_none() && nameless > 0 {
                    let told = || format!("{} without a name or a time", units::counted(nameless, "slice"));
                    self.report.note(ProblemKind::Unsupported, told);
                }
                next
            }
        };
        if let Some(ts) = next {
            self.order.push(Reverse((ts, index)));
        }
    }

    fn slice(&mut self, slice: Slice) -> Event {
        let Slice { ts, tid, .. } = slice;
        let (comm, tgid) = self.decoder.threads.of(tid, ts);
        let cpu = self.ran_on.as_ref().and_then(|ran_on| ran_on.get(&tid)).copied().unwrap_or(0);
        let kind = fields::mark(slice.mark().as_bytes(), &mut self.decoder.names);
        Event { ts, cpu, tid, tgid, comm, context: Context::default(), kind }
    }

    /// What the kernel's counters say was lost and no gap shows yet.
    fn uncounted(&mut self) -> Option<Event> {
        if self.lost.is_empty() {
            return None;
        }
        let lanes = &self.lanes;
        let ends = self.ends.get_or_insert_with(|| {
            let mut ends = HashMap::new();
            for lane in lanes {
                if let Lane::Cpu(lane) = lane {
                    let end: &mut u64 = ends.entry(lane.cpu()).or_default();
                    *end = lane.last().max(*end);
                }
            }
            ends
        });
        while let Some((cpu, count)) = self.lost.pop() {
            let gaps = self.gaps.get(&cpu).copied().unwrap_or(0);
            if gaps > 0 {
                self.report.count_gaps(gaps, count);
                continue;
            }
            let last = ends.get(&cpu).copied().unwrap_or(self.last);
            self.report.lose(Some(count));
            return Some(Event::lost(last, cpu, Some(count)));
        }
        None
    }
}

impl<R: Read + Seek> Iterator for PerfettoReader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let Some(Reverse((ts, index))) = self.order.pop() else { return self.uncounted() };
        self.last = ts;
        let event = match self.lanes.get_mut(index)? {
            Lane::Cpu(lane) => lane.take(ts, &mut self.decoder, &mut self.report),
            Lane::Track(lane) => {
                let slice = lane.take()?;
                self.slice(slice)
            }
        };
        match (&event.kind, &mut self.ran_on) {
            (Kind::Lost { count }, _) => {
                *self.gaps.entry(event.cpu).or_default() += 1;
                self.report.lose(*count);
            }
            (Kind::Switch { next, .. }, Some(ran_on)) => {
                ran_on.insert(next.tid, event.cpu);
            }
            _ => {}
        }
        if !matches!(event.kind, Kind::Lost { .. }) {
            self.report.events += 1;
        }
        self.advance(index);
        Some(event)
    }
}
