//! Traces that we write for Perfetto and read again: the same calls, with the same causes.

use std::io::Cursor;

use crate::perfetto::Exporter;
use crate::verdict::{Analysis, AnalysisOptions, Analyzer, TransactionEvent};

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    std::fs::read(path).expect("a fixture")
}

/// A file with the events and the calls.
fn exported(trace: &[u8]) -> Vec<u8> {
    let mut reader = crate::open(Cursor::new(trace)).expect("a trace");
    let mut file = Vec::new();
    let mut exporter = Exporter::new(&mut file, reader.head());
    let mut analyzer = Analyzer::new(AnalysisOptions::default());
    let mut met = Vec::new();
    while let Some(event) = reader.next() {
        exporter.event(&event, reader.names());
        analyzer.take_with(&event, reader.names(), &mut |what| {
            if let TransactionEvent::Ended(call) = what {
                met.push(call.clone());
            }
        });
        met.drain(..).for_each(|call| exporter.call(&call, None, reader.names()));
    }
    exporter.finish().expect("memory takes all");
    file
}

/// All calls, each as a text of all that the analysis says about it, and the analysis.
fn calls(trace: &[u8]) -> (Vec<String>, Analysis) {
    let mut reader = crate::open(Cursor::new(trace)).expect("a trace");
    let mut analyzer = Analyzer::new(AnalysisOptions::default());
    let mut calls = Vec::new();
    let names = |reader: &crate::Reader<_>, calls: &mut Vec<String>, met: Vec<crate::model::Transaction>| {
        for call in met {
            let comm = |peer: &crate::model::Peer| reader.names().text(peer.comm).to_owned();
            let server = call.server.as_ref().map(|peer| (peer.tid, comm(peer)));
            let parts: Vec<_> =
                call.parts.iter().map(|part| (part.begin, part.end, part.cause.name())).collect();
            calls.push(format!(
                "{} {:?} {server:?} {}..{} {:?} {:?} {parts:?}",
                call.debug_id,
                (call.client.tid, comm(&call.client)),
                call.begin,
                call.end,
                call.received,
                call.outcome
            ));
        }
    };
    while let Some(event) = reader.next() {
        let mut met = Vec::new();
        analyzer.take_with(&event, reader.names(), &mut |what| {
            if let TransactionEvent::Ended(call) = what {
                met.push(call.clone());
            }
        });
        names(&reader, &mut calls, met);
    }
    let mut met = Vec::new();
    analyzer.end_with(reader.names(), &mut |what| {
        if let TransactionEvent::Ended(call) = what {
            met.push(call.clone());
        }
    });
    names(&reader, &mut calls, met);
    let report = reader.report().clone();
    (calls, analyzer.finish(reader.names(), &report))
}

#[test]
fn what_we_write_for_perfetto_comes_back_with_the_same_calls_and_causes() {
    for name in [
        "binder-c.txt",
        "inversion.txt",
        "queued.txt",
        "raised.txt",
        "sched.txt",
        "binder-rust.bptrace",
        "binder-c.bptrace",
    ] {
        let trace = fixture(name);
        let (want, before) = calls(&trace);
        let (found, after) = calls(&exported(&trace));
        for (want, found) in want.iter().zip(&found) {
            assert_eq!(found, want, "{name}");
        }
        assert_eq!(found.len(), want.len(), "{name}");
        let losses = |analysis: &Analysis| (analysis.lost + analysis.gaps > 0, analysis.problems.clone());
        assert_eq!(losses(&after), losses(&before), "{name}");
    }
}

/// Events of each name, with the CPUs and times of all of them.
fn events(trace: &[u8]) -> Vec<String> {
    let mut reader = crate::open(Cursor::new(trace)).expect("a trace");
    let mut told = Vec::new();
    while let Some(event) = reader.next() {
        use crate::event::Kind;
        let names = reader.names();
        let kind = match &event.kind {
            Kind::Tick { .. } | Kind::Lost { .. } => continue,
            Kind::Switch { prev, state, next } => {
                let task =
                    |task: &crate::event::Task| (task.tid, task.prio, names.text(task.comm).to_owned());
                format!("{:?} {state:?} {:?}", task(prev), task(next))
            }
            Kind::IrqEntry { name, .. } => format!("entry {}", names.text(*name)),
            Kind::Binder(_, binder) => format!("{binder:?}"),
            // A mark's process is written as that of its thread, outside its container.
            Kind::Print(text) => {
                text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().replace("E|", "E")
            }
            other => format!("{:?}", std::mem::discriminant(other)),
        };
        told.push(format!("{} {} {} {kind}", event.ts, event.cpu, event.tid));
    }
    told.sort();
    told
}

#[test]
fn every_event_comes_back() {
    for name in ["binder-c.txt", "sched.txt", "binder-rust.bptrace", "binder-c.bptrace"] {
        let trace = fixture(name);
        let (want, found) = (events(&trace), events(&exported(&trace)));
        for (want, found) in want.iter().zip(&found) {
            assert_eq!(found, want, "{name}");
        }
        assert_eq!(found.len(), want.len(), "{name}");
    }
}
