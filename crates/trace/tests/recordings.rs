//! Recordings of Perfetto's own recorder, read by us and by Perfetto's trace processor: every call and every time on a
//! CPU agrees to the nanosecond.
//! Not here: packets by themselves (`pftrace`'s tests).
//! Facts: `tools/perfetto-fixtures` makes the recordings and the trace processor's tables: a latency test on Linux
//! 7.2.13 with the C driver and with the Rust driver, recorded by Perfetto 56. The trace processor does not know the
//! Rust driver's events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use trace::event::{Binder, Kind, State};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, TransactionEvent};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/perfetto").join(name)
}

fn opened(name: &str) -> trace::Reader<File> {
    trace::open(File::open(path(name)).expect("a fixture")).expect("a trace of Perfetto")
}

/// Rows of a table as numbers; an empty field is `None`.
fn table(name: &str) -> Vec<Vec<Option<i64>>> {
    let text = std::fs::read_to_string(path(name)).expect("a fixture");
    let rows = text.lines().skip(1);
    rows.map(|row| row.split(',').map(|field| field.parse().ok()).collect()).collect()
}

/// When each reply was received, by the time at which it was sent, and the receiver.
fn answers(name: &str) -> BTreeMap<(u64, i32), u64> {
    let (mut sent, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for event in opened(name) {
        match event.kind {
            Kind::Binder(_, Binder::Transaction(reply)) if reply.reply => {
                sent.insert(reply.debug_id, event.ts);
            }
            Kind::Binder(_, Binder::Received { debug_id }) => {
                if let Some(at) = sent.remove(&debug_id) {
                    answers.insert((at, event.tid), event.ts);
                }
            }
            _ => {}
        }
    }
    answers
}

/// Calls as the trace processor has them: times and durations of both sides, threads and processes, whether synchronous.
fn calls(name: &str) -> (Vec<Vec<Option<i64>>>, Analysis) {
    let mut reader = opened(name);
    let mut analyzer = Analyzer::new(AnalysisOptions::default());
    let mut rows = Vec::new();
    let answers = answers(name);
    let mut take = |met: TransactionEvent<'_>| {
        let TransactionEvent::Ended(call) = met else { return };
        // The trace processor ends a call when its reply is received; the model when the thread has left the driver.
        let answered = call.replied.and_then(|at| answers.get(&(at, call.client.tid)).copied());
        assert!(answered.is_none_or(|at| at <= call.end), "{call:?}");
        let ns = |ns: u64| i64::try_from(ns).expect("nanoseconds");
        let (Some(received), Some(server)) = (call.received, call.server.as_ref()) else { return };
        // A oneway call has no end on either side.
        let dur =
            |begin: u64, end: Option<u64>| end.filter(|_| !call.oneway).map_or(0, |end| ns(end - begin));
        rows.push(vec![
            Some(ns(call.sent)),
            Some(dur(call.sent, answered)),
            Some(call.client.tid.into()),
            call.client.tgid.map(i64::from),
            Some(ns(received)),
            Some(dur(received, call.replied)),
            Some(server.tid.into()),
            Some(call.to_proc.into()),
            Some(i64::from(!call.oneway)),
        ]);
    };
    while let Some(event) = reader.next() {
        analyzer.take_with(&event, reader.names(), &mut take);
    }
    analyzer.end_with(reader.names(), &mut take);
    rows.sort();
    let analysis = analyzer.finish(reader.names(), reader.report());
    (rows, analysis)
}

#[test]
fn every_call_is_the_trace_processors() {
    let (ours, analysis) = calls("c.pftrace");
    let theirs = table("c.calls.csv");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "client and server: time, duration, thread, process; synchronous");
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() > 100 && analysis.problems.is_empty(), "{analysis}");
}

/// Times on a CPU that our events have: begin, duration, CPU, thread, priority.
fn on_cpu(name: &str) -> Vec<Vec<Option<i64>>> {
    let mut running: BTreeMap<u32, (u64, i32, i32)> = BTreeMap::new();
    let (mut rows, mut first) = (Vec::new(), BTreeSet::new());
    for event in opened(name) {
        let Kind::Switch { prev, next, state } = event.kind else { continue };
        let numbers = |begin: u64, tid: i32, prio: i32| {
            let number = |value: u64| i64::try_from(value).ok();
            let cpu = Some(i64::from(event.cpu));
            vec![number(begin), number(event.ts - begin), cpu, Some(tid.into()), Some(prio.into())]
        };
        if let Some((begin, tid, prio)) = running.insert(event.cpu, (event.ts, next.tid, next.prio.0)) {
            assert_eq!(tid, prev.tid, "who leaves is who ran: {name} at {} ns", event.ts);
            assert!(state != State::Other, "{name} at {} ns", event.ts);
            // The trace processor leaves out the first switch of each CPU, which does not say who leaves.
            if !first.insert(event.cpu) {
                rows.push(numbers(begin, tid, prio));
            }
        }
    }
    rows.sort();
    rows
}

#[test]
fn every_time_on_a_cpu_is_the_trace_processors() {
    for name in ["c", "rust"] {
        let ours = on_cpu(&format!("{name}.pftrace"));
        let mut theirs = table(&format!("{name}.sched.csv"));
        // The last one of each CPU has no end.
        theirs.retain(|row| row[1].is_some_and(|dur| dur >= 0));
        theirs.sort();
        let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{name}: ours, theirs");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert!(ours.len() > 1000, "{name}");
    }
}

#[test]
fn the_rust_drivers_calls_are_read_from_events_without_messages() {
    let (rust, analysis) = calls("rust.pftrace");
    let (c, _) = calls("c.pftrace");
    // The same test made them; only its set-up may differ by a call.
    assert!(rust.len().abs_diff(c.len()) <= 2, "{} and {}", rust.len(), c.len());
    assert!(rust.iter().flatten().all(Option::is_some), "both sides of each call are known");
    assert!(analysis.problems.is_empty() && analysis.lost == 0, "{analysis}");
}
