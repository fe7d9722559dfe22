//! Tests of the reader: our own files come back as they were, packets that real recorders write, damage.
//! Not here: recordings of Perfetto itself (`tests/recordings.rs`).

mod damage;
mod packets;
mod round_trip;

use std::io::Cursor;

use crate::event::{Event, Kind};
use crate::report::Report;

/// A message under construction.
#[derive(Clone, Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.put(field << 3);
        self.put(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.put(field << 3 | 2);
        self.put(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    fn packed(self, field: u64, values: &[u64]) -> Self {
        let mut column = Self::default();
        values.iter().for_each(|value| column.put(*value));
        self.bytes(field, column)
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn new() -> Bytes {
    Bytes::default()
}

/// A trace of packets.
fn trace(packets: &[Bytes]) -> Vec<u8> {
    packets.iter().fold(new(), |trace, packet| trace.bytes(1, packet)).0
}

/// `sched_waking` of thread 9 by `by`, at `ts`.
fn waking(ts: u64, by: u64) -> Bytes {
    let message = new().bytes(1, "woken").number(2, 9).number(3, 120).number(5, 1);
    new().number(1, ts).number(2, by).bytes(20, message)
}

/// Packet of writer 1 with events of a CPU.
fn bundle(cpu: u64, events: &[Bytes]) -> Bytes {
    let bundle = events.iter().fold(new().number(1, cpu), |bundle, event| bundle.bytes(2, event));
    new().bytes(1, bundle).number(10, 1)
}

fn read(file: &[u8]) -> (Vec<Event>, Report) {
    let mut reader = crate::open(Cursor::new(file)).expect("a trace of Perfetto");
    let events = reader.by_ref().collect();
    (events, reader.report().clone())
}

/// Times and CPUs.
fn times(events: &[Event]) -> Vec<(u64, u32)> {
    let kept = events.iter().filter(|event| !matches!(event.kind, Kind::Lost { .. }));
    kept.map(|event| (event.ts, event.cpu)).collect()
}
