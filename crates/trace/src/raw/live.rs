//! Reader of pages as they come from a running recorder, merged over the CPUs by time.
//! Not here: getting the pages (crate `ftrace`), when all CPUs have delivered theirs (crate `live`).

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::decode::Decoder;
use super::page::Header;
use super::stream::{Lane, Pages, RawReader, Source};
use crate::event::{Event, Kind, Names};
use crate::report::Report;

/// Reader of pages that are handed to it. Its memory is that of the pages whose events were not taken, and of the names
/// met.
#[derive(Debug)]
pub struct LiveReader {
    queue: Queue,
    header: Header,
    decoder: Decoder,
    report: Report,
    lanes: Vec<Lane>,
}

/// Pages whose events were not read yet.
#[derive(Debug)]
struct Queue {
    page_size: usize,
    waiting: BTreeMap<u32, VecDeque<Vec<u8>>>,
}

impl Pages for Queue {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn read_pages(&mut self, cpu: u32, space: &mut Vec<u8>, _: usize) -> io::Result<()> {
        let next = self.waiting.get_mut(&cpu).and_then(VecDeque::pop_front);
        *space = next.unwrap_or_default();
        Ok(())
    }
}

impl LiveReader {
    /// A reader of further pages with the formats of a recording, whose own pages it leaves out.
    #[must_use]
    pub fn behind<R: io::Read + io::Seek>(recording: RawReader<R>) -> Self {
        let page_size = recording.head().page_size as usize;
        let (header, decoder) = recording.into_decoder();
        let queue = Queue { page_size, waiting: BTreeMap::new() };
        Self { queue, header, decoder, report: Report::default(), lanes: Vec::new() }
    }

    /// Takes further pages of a CPU, oldest first. What follows the last whole page is left out.
    pub fn push(&mut self, cpu: u32, mut pages: Vec<u8>) {
        pages.truncate(pages.len() - pages.len() % self.queue.page_size);
        if pages.is_empty() {
            return;
        }
        self.queue.waiting.entry(cpu).or_default().push_back(pages);
        match self.lanes.iter_mut().find(|lane| lane.cpu == cpu) {
            Some(lane) => lane.ended = false,
            None => self.lanes.push(Lane::new(cpu, None)),
        }
    }

    /// The next event that is not younger than this time; `None` if there is none yet. Events of one CPU come in their order,
    /// those of all CPUs by time if all pages with events up to this time were pushed.
    pub fn next_until(&mut self, ts: u64) -> Option<Event> {
        let Self { queue, header, decoder, report, lanes } = self;
        for lane in lanes.iter_mut().filter(|lane| lane.next.is_none()) {
            let source = Source { file: queue, header: *header, window: 0 };
            lane.next = lane.event(source, decoder, report);
        }
        let at = |lane: &&mut Lane| lane.next.as_ref().map_or(u64::MAX, |event| event.ts);
        let event = lanes.iter_mut().min_by_key(at)?.next.take_if(|event| event.ts <= ts)?;
        match event.kind {
            Kind::Lost { count } => report.lose(count),
            _ => report.events += 1,
        }
        Some(event)
    }

    /// Names that the events refer to.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.decoder.names
    }

    /// Report so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}
