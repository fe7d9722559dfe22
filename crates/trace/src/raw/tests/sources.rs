//! Tests that recordings of real kernels give the same events from raw pages and from the kernel's text.
//! Facts: the fixtures come from Linux 7.2.13 with the C driver, in a guest that ran a binder test, and from a 6.18
//! kernel whose buffer overflowed: `cat trace`, then `per_cpu/cpuN/trace_pipe_raw`. The Rust driver's is from `trace
//! record` around four calls of each class, on 7.2.13.

use crate::event::{Binder, CodeLocation, Event, Flavour, Irq, Kind, Name, Names};
use crate::open;
use crate::report::Report;
use std::collections::BTreeMap;
use std::io::Cursor;

struct Recording {
    events: Vec<Event>,
    names: Names,
    report: Report,
}

fn read(bytes: &'static [u8]) -> Recording {
    let mut reader = open(Cursor::new(bytes)).expect("opened");
    let events = reader.by_ref().collect();
    Recording { events, names: reader.names().clone(), report: reader.report().clone() }
}

/// Event as text, without what only one source has: the binder group, addresses or symbols of functions, and
/// nanoseconds.
fn neutral(event: &Event, names: &Names) -> String {
    let mut event = event.clone();
    let known = |name: Name| names.text(name).to_owned();
    let mut comms = known(event.comm);
    match &mut event.kind {
        Kind::Switch { prev, next, .. } => {
            for task in [prev, next] {
                comms += &format!("/{}", known(task.comm));
                task.comm = Name::NONE;
            }
        }
        Kind::Waking(wake) | Kind::Wakeup(wake) | Kind::WakeupNew(wake) => {
            comms += &format!("/{}", known(wake.task.comm));
            wake.task.comm = Name::NONE;
        }
        Kind::Migrate { task, .. } | Kind::PiSetprio { task, .. } => {
            comms += &format!("/{}", known(task.comm));
            task.comm = Name::NONE;
        }
        Kind::IrqEntry { name, .. } | Kind::IrqExit { name, .. } | Kind::Other { name } => {
            comms += &format!("/{}", known(*name));
            *name = Name::NONE;
        }
        Kind::IpiSend { reason, .. } => *reason = Name::NONE,
        Kind::WorkStart { work, function } => (*work, *function) = (0, CodeLocation::default()),
        Kind::WorkEnd { work } => *work = 0,
        Kind::Binder(flavour, _) => *flavour = Flavour::C,
        _ => {}
    }
    event.comm = Name::NONE;
    let micros = (event.ts + 500) / 1000;
    format!(
        "{micros} {} {} {:?} {comms} {:?} {:?}",
        event.cpu, event.tid, event.tgid, event.context, event.kind
    )
}

fn compare(raw: &Recording, text: &Recording) {
    assert!(raw.report.problems.is_empty(), "{}", raw.report);
    assert!(text.report.problems.is_empty(), "{}", text.report);
    let lines = |recording: &Recording| {
        let events = recording.events.iter().filter(|event| !matches!(event.kind, Kind::Lost { .. }));
        events.map(|event| neutral(event, &recording.names)).collect::<Vec<_>>()
    };
    let (raw, text) = (lines(raw), lines(text));
    for (index, (raw, text)) in raw.iter().zip(&text).enumerate() {
        assert_eq!(raw, text, "event {index}");
    }
    assert_eq!(raw.len(), text.len());
}

/// Number of events of each kind, by the name of the variant.
fn census(recording: &Recording) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in &recording.events {
        let text = match &event.kind {
            Kind::Binder(_, binder) => format!("{binder:?}"),
            kind => format!("{kind:?}"),
        };
        let word = text.split([' ', '(', '{']).next().unwrap_or_default();
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn the_c_driver_reads_alike_raw_and_as_text() {
    let raw = read(include_bytes!("../../../fixtures/binder-c.bptrace"));
    let text = read(include_bytes!("../../../fixtures/binder-c.txt"));
    compare(&raw, &text);
    let counts = census(&raw);
    for (kind, count) in [
        ("Transaction", 20),
        ("Received", 20),
        ("AllocBuf", 20),
        ("BufferRelease", 20),
        ("LatencyFree", 20),
        ("Command", 40),
        ("WaitForWork", 30),
        ("Switch", 76),
        ("Wakeup", 43),
        ("Waking", 44),
        ("Migrate", 3),
        ("Print", 2),
        ("IrqEntry", 56),
        ("CpuIdle", 38),
    ] {
        assert_eq!(counts.get(kind), Some(&count), "{kind}: {counts:?}");
    }
}

/// TP-01: the group differs, names and fields are the same.
#[test]
fn the_rust_drivers_events_are_read_as_its_own() {
    let raw = read(include_bytes!("../../../fixtures/binder-rust.bptrace"));
    assert!(raw.report.problems.is_empty(), "{}", raw.report);
    let counts = census(&raw);
    for (kind, count) in [("Transaction", 28), ("Received", 28), ("Switch", 337), ("Print", 16)] {
        assert_eq!(counts.get(kind), Some(&count), "{kind}: {counts:?}");
    }
    let binder = raw.events.iter().filter_map(|event| match &event.kind {
        Kind::Binder(flavour, _) => Some(*flavour),
        _ => None,
    });
    assert!(binder.clone().count() == 56 && binder.clone().all(|flavour| flavour == Flavour::Rust));
}

/// TP-09: the kernel's text has flags and code swapped; both sources must agree with the transaction.
#[test]
fn the_swapped_labels_are_swapped_back() {
    for source in [
        read(include_bytes!("../../../fixtures/binder-c.bptrace")),
        read(include_bytes!("../../../fixtures/binder-c.txt")),
    ] {
        let mut sent = BTreeMap::new();
        let mut checked = 0;
        for event in &source.events {
            match &event.kind {
                Kind::Binder(_, Binder::Transaction(call)) => {
                    sent.insert(call.debug_id, (call.code, call.flags));
                }
                Kind::Binder(_, Binder::LatencyFree(end)) => {
                    if let Some(begun) = sent.get(&end.debug_id) {
                        assert_eq!((end.code, end.flags), *begun);
                        checked += usize::from(end.code != end.flags);
                    }
                }
                _ => {}
            }
        }
        assert!(checked >= 8, "{checked}");
    }
}

#[test]
fn an_ordinary_kernel_reads_alike() {
    let raw = read(include_bytes!("../../../fixtures/sched.bptrace"));
    let text = read(include_bytes!("../../../fixtures/sched.txt"));
    compare(&raw, &text);
    // One CPU's first page had room for the count; the other's had not, so its statistics give the count.
    assert_eq!((raw.report.lost, raw.report.gaps), (1707, 0));
    assert_eq!((text.report.lost, text.report.gaps), (1707, 0));
    let line = raw.events.iter().any(|event| matches!(event.kind, Kind::IrqEntry { irq: Irq::Line(_), .. }));
    assert!(line, "no interrupt of a line in the recording");
    let counts = census(&raw);
    assert!(counts.contains_key("WorkStart") && counts.contains_key("WorkEnd"), "{counts:?}");
}
