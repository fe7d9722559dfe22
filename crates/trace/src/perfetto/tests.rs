//! Tests of the exporter, by decoding its output: bundles, slice nesting, arrows, gaps, full disks, memory.
//! Not here: import into Perfetto (`tests/cli/perfetto.rs` of the workspace).

use std::collections::BTreeMap;
use std::io::Cursor;

use super::*;
use crate::event::{Name, Softirq, State, fixtures};
use crate::verdict::{AnalysisOptions, Analyzer, TransactionEvent};

/// Decoded message: fields in order.
#[derive(Clone, Debug, PartialEq)]
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    unreachable!("a varint ends")
}

fn parse(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                fields.push((key >> 3, Field::Number(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).expect("a length"),
            other => panic!("wire type {other}"),
        };
        let (field, rest) = bytes.split_at(length);
        bytes = rest;
        fields.push(match key & 7 {
            1 => (key >> 3, Field::Number(u64::from_le_bytes(field.try_into().expect("eight")))),
            _ => (key >> 3, Field::Bytes(field)),
        });
    }
    fields
}

/// All messages in a field.
fn all<'b>(message: &[(u64, Field<'b>)], field: u64) -> Vec<Vec<(u64, Field<'b>)>> {
    let of = message.iter().filter(|(number, _)| *number == field);
    of.map(|(_, field)| match field {
        Field::Bytes(bytes) => parse(bytes),
        Field::Number(_) => panic!("a number"),
    })
    .collect()
}

fn numbers(message: &[(u64, Field<'_>)], field: u64) -> Vec<u64> {
    let of = message.iter().filter(|(number, _)| *number == field);
    of.map(|(_, field)| match field {
        Field::Number(number) => *number,
        Field::Bytes(_) => panic!("bytes"),
    })
    .collect()
}

fn number(message: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    numbers(message, field).first().copied()
}

fn text(message: &[(u64, Field<'_>)], field: u64) -> String {
    let found = message.iter().find(|(number, _)| *number == field);
    match found {
        Some((_, Field::Bytes(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// Exports a trace with this deadline.
fn exported(trace: &[u8], deadline_ns: Option<u64>) -> (Vec<u8>, ExportStats) {
    let mut reader = crate::open(Cursor::new(trace)).expect("a trace");
    let mut file = Vec::new();
    let mut exporter = Exporter::new(&mut file, reader.head());
    let mut analyzer = Analyzer::new(AnalysisOptions { deadline_ns, ..AnalysisOptions::default() });
    let mut all = Vec::new();
    let kept = |met: TransactionEvent<'_>| match met {
        TransactionEvent::Ended(call) => (call.clone(), None),
        TransactionEvent::Missed(call, miss) => (call.clone(), Some(miss)),
    };
    let mut write = |analyzer: &Analyzer, all: &mut Vec<(Transaction, _)>, names: &Names| {
        for (call, miss) in all.drain(..) {
            let slow = analyzer.describe_miss(&call, miss, names);
            match miss {
                Some(_) => exporter.miss(&call, &slow.expect("a miss")),
                None => exporter.call(&call, slow.as_ref(), names),
            }
        }
    };
    let mut events = Vec::new();
    while let Some(event) = reader.next() {
        analyzer.take_with(&event, reader.names(), &mut |met| all.push(kept(met)));
        write(&analyzer, &mut all, reader.names());
        events.push(event);
    }
    analyzer.end_with(reader.names(), &mut |met| all.push(kept(met)));
    write(&analyzer, &mut all, reader.names());
    for event in &events {
        exporter.event(event, reader.names());
    }
    let written = exporter.finish().expect("memory takes all");
    (file, written)
}

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    std::fs::read(path).expect("a fixture")
}

#[test]
fn a_kernels_age_goes_by_its_release() {
    for release in ["4.14.0", "4.19.95-perf+", "7.2.13", "10.0"] {
        assert!(has_new_states(release), "{release}");
    }
    for release in ["4.13.16", "3.18.0", "4.4", "", "unknown", "4"] {
        assert!(!has_new_states(release), "{release}");
    }
}

#[test]
fn each_event_is_in_a_bundle_of_its_cpu_in_the_order_of_times() {
    for name in [
        "binder-c.bptrace",
        "binder-rust.bptrace",
        "binder-c.txt",
        "sched.bptrace",
        "inversion.txt",
        "queued.txt",
    ] {
        let trace = fixture(name);
        let mut want: BTreeMap<u64, u64> = BTreeMap::new();
        let reader = crate::open(Cursor::new(&trace)).expect("a trace");
        for event in reader.filter(|event| !matches!(event.kind, Kind::Lost { .. })) {
            *want.entry(event.cpu.into()).or_default() += 1;
        }
        let (file, _) = exported(&trace, None);
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        for bundle in all(&parse(&file), 1).iter().flat_map(|packet| all(packet, 1)) {
            let events = all(&bundle, 2);
            let times: Vec<u64> = events.iter().filter_map(|event| number(event, 1)).collect();
            assert!(times.is_sorted() && times.len() == events.len(), "{name}");
            // Time, thread, and one action.
            assert!(events.iter().all(|event| (3..=4).contains(&event.len())), "{name}");
            *found.entry(number(&bundle, 1).expect("a CPU")).or_default() += events.len() as u64;
        }
        assert_eq!(found, want, "{name}");
    }
}

/// Slices of each track, each with its depth; unbalanced begins and ends are an error.
fn slices(file: &[u8]) -> BTreeMap<u64, Vec<(usize, u64, u64, String)>> {
    let mut events: Vec<(u64, u64, u64, String)> = Vec::new();
    for packet in all(&parse(file), 1) {
        for event in all(&packet, 11) {
            let (ts, kind) = (number(&packet, 8).expect("a time"), number(&event, 9).expect("a type"));
            events.push((ts, number(&event, 11).expect("a track"), kind, text(&event, 23)));
        }
    }
    // Perfetto's order: by time, then by position in the file.
    events.sort_by_key(|(ts, ..)| *ts);
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut done: BTreeMap<u64, Vec<(usize, u64, u64, String)>> = BTreeMap::new();
    for (ts, track, kind, name) in events {
        let stack = open.entry(track).or_default();
        match kind {
            1 => stack.push((ts, name)),
            2 => {
                let (begin, name) = stack.pop().expect("an end without a beginning");
                done.entry(track).or_default().push((stack.len(), begin, ts, name));
            }
            3 => {}
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "slices that do not end");
    done
}

#[test]
fn a_calls_parts_are_all_of_it_and_within_it() {
    for name in ["binder-c.bptrace", "binder-rust.bptrace", "inversion.txt", "queued.txt", "raised.txt"] {
        let (file, written) = exported(&fixture(name), Some(2_000_000));
        let tracks = slices(&file);
        let mut calls = 0;
        for (depth, begin, end, title) in tracks.values().flatten() {
            if *depth != 0 || title.starts_with("serve ") {
                continue;
            }
            calls += 1;
            let track = tracks.values().find(|track| track.contains(&(0, *begin, *end, title.clone())));
            let inside =
                track.into_iter().flatten().filter(|(depth, b, e, _)| *depth == 1 && b >= begin && e <= end);
            let sum: u64 = inside.map(|(_, begin, end, _)| end - begin).sum();
            assert_eq!(sum, end - begin, "{name}: {title}");
        }
        assert_eq!(calls, written.calls, "{name}");
        assert!(calls > 0 && written.undrawn == 0, "{name}");
    }
}

#[test]
fn arrows_go_there_and_back_and_to_the_miss() {
    let (file, written) = exported(&fixture("inversion.txt"), Some(2_000_000));
    let mut flows: BTreeMap<u64, Vec<(u64, String, bool)>> = BTreeMap::new();
    for packet in all(&parse(&file), 1) {
        for event in all(&packet, 11) {
            for (field, ends) in [(47, false), (48, true)] {
                for flow in numbers(&event, field) {
                    let at = number(&packet, 8).expect("a time");
                    flows.entry(flow).or_default().push((at, text(&event, 23), ends));
                }
            }
        }
    }
    let (mut back, mut misses) = (0, 0);
    for stops in flows.values_mut() {
        stops.sort_by_key(|(at, ..)| *at);
        let (_, last, ends) = stops.last().expect("a stop");
        assert!(ends, "an arrow that goes nowhere: {stops:?}");
        assert_eq!(stops.iter().filter(|(.., ends)| *ends).count(), 1, "{stops:?}");
        if last.starts_with("MISS") {
            assert_eq!(stops.len(), 2);
            assert_eq!(stops[0].1, *last);
            misses += 1;
        } else {
            assert!(stops[1].1.starts_with("serve "), "{stops:?}");
            back += u64::from(stops.len() == 3);
        }
    }
    assert!(back >= written.calls - 1 && misses >= 9, "{back} back, {misses} misses, {written:?}");
}

#[test]
fn a_miss_reported_afterwards_is_drawn_once() {
    let trace = b"# tracer: nop\n\
        a-10 (   10) [000] ..... 1.000000: tracing_mark_write: binderperf: call pair=0 n=1\n\
        a-10 (   10) [000] ..... 1.000001: binder_transaction: transaction=2 dest_node=1 dest_proc=20 dest_thread=0 reply=0 flags=0x0 code=0x1\n\
        b-20 (   20) [001] ..... 1.000002: binder_transaction_received: transaction=2\n\
        b-20 (   20) [001] ..... 1.000007: binder_transaction: transaction=3 dest_node=0 dest_proc=10 dest_thread=10 reply=1 flags=0x0 code=0x0\n\
        a-10 (   10) [000] ..... 1.000008: binder_transaction_received: transaction=3\n\
        a-10 (   10) [000] ..... 1.000009: tracing_mark_write: binderperf: miss pair=0 n=1 took_ns=9000 deadline_ns=5000\n";
    // By the trace clock it may be a miss too, or not.
    for deadline_ns in [None, Some(2_000), Some(1_000_000)] {
        let (file, _) = exported(trace, deadline_ns);
        let mut marks = 0;
        let mut arrows: BTreeMap<u64, u32> = BTreeMap::new();
        for event in all(&parse(&file), 1).iter().flat_map(|packet| all(packet, 11)) {
            marks += u32::from(number(&event, 9) == Some(3));
            for flow in numbers(&event, 47).into_iter().chain(numbers(&event, 48)) {
                *arrows.entry(flow).or_default() += 1;
            }
        }
        assert_eq!(marks, 1, "{deadline_ns:?}");
        assert!(arrows.values().all(|stops| *stops >= 2), "{deadline_ns:?}: {arrows:?}");
    }
}

#[test]
fn calls_that_overlap_on_one_thread_go_to_tracks_of_their_own() {
    // Thread 10 serves call 1 while it waits for its own call 2, and calls 3 meanwhile.
    let trace = b"# tracer: nop\n\
        a-10 (   10) [000] ..... 1.000001: binder_transaction: transaction=2 dest_node=1 dest_proc=20 dest_thread=0 reply=0 flags=0x0 code=0x1\n\
        b-20 (   20) [001] ..... 1.000002: binder_transaction_received: transaction=2\n\
        b-20 (   20) [001] ..... 1.000003: binder_transaction: transaction=3 dest_node=1 dest_proc=10 dest_thread=10 reply=0 flags=0x0 code=0x1\n\
        a-10 (   10) [000] ..... 1.000004: binder_transaction_received: transaction=3\n\
        a-10 (   10) [000] ..... 1.000005: binder_transaction: transaction=4 dest_node=1 dest_proc=30 dest_thread=0 reply=0 flags=0x0 code=0x1\n\
        c-30 (   30) [001] ..... 1.000006: binder_transaction_received: transaction=4\n\
        c-30 (   30) [001] ..... 1.000007: binder_transaction: transaction=5 dest_node=0 dest_proc=10 dest_thread=10 reply=1 flags=0x0 code=0x0\n\
        a-10 (   10) [000] ..... 1.000008: binder_transaction_received: transaction=5\n\
        a-10 (   10) [000] ..... 1.000009: binder_transaction: transaction=6 dest_node=0 dest_proc=20 dest_thread=20 reply=1 flags=0x0 code=0x0\n\
        b-20 (   20) [001] ..... 1.000010: binder_transaction_received: transaction=6\n\
        b-20 (   20) [001] ..... 1.000011: binder_transaction: transaction=7 dest_node=0 dest_proc=10 dest_thread=10 reply=1 flags=0x0 code=0x0\n\
        a-10 (   10) [000] ..... 1.000012: binder_transaction_received: transaction=7\n";
    let (file, written) = exported(trace, None);
    assert_eq!((written.calls, written.undrawn), (3, 0));
    let tracks = slices(&file);
    let of_ten = |track: &u64| track & 0xffff == 10;
    let on_ten: Vec<_> = tracks.keys().filter(|track| of_ten(track)).collect();
    assert_eq!(on_ten.len(), 3, "call 4, serving 3, call 2: {tracks:?}");
}

fn switch(ts: u64, cpu: u32) -> Event {
    let task = fixtures::task(1, Name::NONE);
    fixtures::event(ts, cpu, 1, fixtures::switch(task, State::Sleeping, task))
}

#[test]
fn a_gap_and_a_clock_that_goes_back_end_a_bundle() {
    let names = Names::default();
    let mut file = Vec::new();
    let mut exporter = Exporter::new(&mut file, None);
    let lost = |ts| Event { tid: -1, kind: Kind::Lost { count: Some(7) }, ..switch(ts, 0) };
    for event in [switch(10, 0), switch(20, 0), lost(30), switch(40, 0), switch(5, 0), lost(50)] {
        exporter.event(&event, &names);
    }
    exporter.finish().expect("memory takes all");
    let packets = all(&parse(&file), 1);
    let bundles: Vec<(usize, bool)> = packets
        .iter()
        .flat_map(|packet| all(packet, 1))
        .map(|bundle| (all(&bundle, 2).len(), number(&bundle, 3) == Some(1)))
        .collect();
    // Before the gap, behind it, behind the clock jump, and a last gap that nothing follows.
    assert_eq!(bundles, [(2, false), (1, true), (1, false), (0, true)]);
    let stats: Vec<_> = packets.iter().flat_map(|packet| all(packet, 34)).collect();
    let overrun: Vec<_> = stats.iter().map(|stats| number(&all(stats, 2)[0], 3)).collect();
    assert_eq!(overrun, [Some(0), Some(14)]);
    let miss: Vec<String> =
        packets.iter().flat_map(|packet| all(packet, 11)).map(|event| text(&event, 23)).collect();
    assert_eq!(miss, ["cpu0: 7 events lost", "cpu0: 7 events lost"]);
}

/// Writer that counts the bytes it is given.
#[derive(Default)]
struct Counting {
    bytes: u64,
}

impl Write for &mut Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_not_written_yet_is_bounded_however_many_cpus_there_are() {
    let names = Names::default();
    let mut written = Counting::default();
    let mut exporter = Exporter::new(&mut written, None);
    let mut given = 0;
    for round in 0..200_u64 {
        for cpu in 0..4096 {
            exporter.event(&switch(round, cpu), &names);
            given += 1;
        }
    }
    // Each of these events has more than 20 bytes; events not yet written are held in memory.
    let held = 20 * given - exporter.out.bytes.min(20 * given);
    assert!(held < 20 << 20, "{held} bytes of {given} events are held");
    let all = exporter.finish().expect("it takes all");
    assert_eq!(all.bytes, written.bytes);
}

#[test]
fn a_write_error_ends_the_export() {
    let names = Names::default();
    let mut room = vec![0_u8; 100_000];
    let mut exporter = Exporter::new(&mut room[..], None);
    for ts in 0..100_000 {
        exporter.event(&switch(ts, 0), &names);
    }
    assert!(exporter.out.has_failed());
    let raised = Event { kind: Kind::SoftirqRaise(Softirq(1)), ..switch(100_000, 0) };
    exporter.event(&raised, &names);
    assert_eq!(exporter.finish().expect_err("full").kind(), io::ErrorKind::WriteZero);
}
