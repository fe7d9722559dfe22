//! Recordings of Perfetto's own recorder, read by us and by Perfetto's trace processor: every call, every time on a CPU
//! and every state of a thread agrees to the nanosecond.
//! Not here: packets by themselves (`pftrace`'s tests).
//! Facts: `tools/perfetto-fixtures` makes the recordings and the trace processor's tables: the four tests on Linux
//! 7.2.13 with the C driver and with the Rust driver, recorded by Perfetto 56. The trace processor does not know the
//! Rust driver's events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use trace::cause::Label;
use trace::event::{Binder, Flavour, Kind, State};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, TransactionEvent};

/// The tests that were recorded with each driver.
const TESTS: [&str; 4] = ["latency-binder", "latency-hwbinder", "throughput-binder", "throughput-hwbinder"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/perfetto").join(name)
}

fn opened(name: &str) -> trace::Reader<File> {
    trace::open(File::open(path(&format!("{name}.pftrace"))).expect("a fixture"))
        .expect("a trace of Perfetto")
}

/// Names of the recordings of both drivers.
fn recordings() -> impl Iterator<Item = String> {
    ["c", "rust"].into_iter().flat_map(|driver| TESTS.map(|test| format!("{driver}-{test}")))
}

/// Rows of a table of the trace processor.
fn rows(name: &str, table: &str) -> Vec<Vec<String>> {
    let mut text = String::new();
    let packed = File::open(path(&format!("{name}.{table}.csv.gz"))).expect("a fixture");
    GzDecoder::new(packed).read_to_string(&mut text).expect("packed text");
    text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// Rows as numbers; an empty field is `None`.
fn table(name: &str, table: &str) -> Vec<Vec<Option<i64>>> {
    rows(name, table).iter().map(|row| row.iter().map(|field| field.parse().ok()).collect()).collect()
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
    for test in TESTS {
        let name = format!("c-{test}");
        let (ours, analysis) = calls(&name);
        let theirs = table(&name, "calls");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(
                ours, theirs,
                "{name}: client and server: time, duration, thread, process; synchronous"
            );
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert!(ours.len() > 60 && analysis.problems.is_empty(), "{name}: {analysis}");
    }
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
    for name in recordings() {
        let ours = on_cpu(&name);
        let mut theirs = table(&name, "sched");
        // The last one of each CPU has no end.
        theirs.retain(|row| row[1].is_some_and(|dur| dur >= 0));
        theirs.sort();
        let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{name}: ours, theirs");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert!(ours.len() > 500, "{name}");
    }
}

/// State of a thread for some time: begin, duration or -1, thread, the kernel's letter.
type ThreadState = (u64, i64, i32, &'static str);
/// When each thread entered its present state.
type OpenStates = BTreeMap<i32, (u64, &'static str)>;

/// States of threads as our events tell them.
fn states(name: &str) -> Vec<ThreadState> {
    let (mut open, mut found, mut known) = (OpenStates::new(), Vec::new(), BTreeSet::new());
    let enter = |open: &mut OpenStates, ts: u64, tid: i32, state, found: &mut Vec<ThreadState>| {
        if let Some((begin, before)) = open.insert(tid, (ts, state)) {
            found.push((begin, i64::try_from(ts - begin).expect("nanoseconds"), tid, before));
        }
    };
    for event in opened(name) {
        match event.kind {
            // The trace processor leaves out the first switch of each CPU, and wake-ups before it.
            Kind::Switch { .. } if known.insert(event.cpu) => {}
            Kind::Switch { prev, state, next } => {
                let letter = match state {
                    State::Preempted => "R+",
                    State::Runnable => "R",
                    State::Sleeping => "S",
                    State::Uninterruptible => "D",
                    State::Stopped => "T",
                    State::Dead => "X",
                    State::Parked => "P",
                    State::Idle => "I",
                    other => panic!("{name}: {other:?}"),
                };
                enter(&mut open, event.ts, prev.tid, letter, &mut found);
                enter(&mut open, event.ts, next.tid, "Running", &mut found);
            }
            _ => {}
        }
        if let (Kind::Waking(wake) | Kind::WakeupNew(wake), true) = (&event.kind, known.contains(&event.cpu))
        {
            // Who runs or may run is not woken by it.
            let tid = wake.task.tid;
            if !open.get(&tid).is_some_and(|(_, state)| ["Running", "R", "R+"].contains(state)) {
                enter(&mut open, event.ts, tid, "R", &mut found);
            }
        }
    }
    found.extend(open.into_iter().map(|(tid, (begin, state))| (begin, -1, tid, state)));
    found.retain(|(_, _, tid, _)| *tid > 0);
    found.sort_unstable();
    found
}

/// All but each thread's first state: the trace processor has a thread begin with its creation, and lets a wake-up on a
/// CPU stand for ever if the switch that follows is the CPU's first.
fn behind_the_first(states: BTreeSet<(u64, i64, i32, String)>) -> BTreeSet<(u64, i64, i32, String)> {
    let mut known = BTreeSet::new();
    states.into_iter().filter(|(_, _, tid, _)| !known.insert(*tid)).collect()
}

#[test]
fn every_state_of_a_thread_is_the_trace_processors() {
    for name in recordings() {
        let ours = states(&name);
        let theirs = rows(&name, "states");
        let letter = |text: &str| match text {
            // One letter for the dead, as in our events.
            "Z" | "X" => "X".to_owned(),
            other => other.to_owned(),
        };
        let theirs: Vec<(u64, i64, i32, String)> = theirs
            .iter()
            .map(|row| {
                let number = |at: usize| row[at].parse::<i64>().expect("a number");
                (
                    row[0].parse().expect("a time"),
                    number(1),
                    i32::try_from(number(2)).expect("a thread"),
                    letter(&row[3]),
                )
            })
            .collect();
        let ours: BTreeSet<_> =
            ours.into_iter().map(|(ts, dur, tid, state)| (ts, dur, tid, state.to_owned())).collect();
        let theirs: BTreeSet<_> = theirs.into_iter().collect();
        let (ours, theirs) = (behind_the_first(ours), behind_the_first(theirs));
        let extra: Vec<_> = ours.difference(&theirs).take(8).collect();
        let missing: Vec<_> = theirs.difference(&ours).take(8).collect();
        assert!(extra.is_empty() && missing.is_empty(), "{name}: ours {extra:?}, theirs {missing:?}");
        assert!(ours.len() > 800, "{name}");
    }
}

#[test]
fn the_rust_drivers_calls_are_read_from_events_without_messages() {
    for test in TESTS {
        let (rust, analysis) = calls(&format!("rust-{test}"));
        let (c, _) = calls(&format!("c-{test}"));
        // The same test made them; only its set-up may differ by a call.
        assert!(rust.len().abs_diff(c.len()) <= 2, "{test}: {} and {}", rust.len(), c.len());
        assert!(rust.iter().flatten().all(Option::is_some), "{test}: both sides of each call are known");
        assert!(analysis.problems.is_empty() && analysis.lost == 0, "{test}: {analysis}");
    }
}

#[test]
fn the_embedded_drivers_calls_are_read_from_its_marks() {
    let (rows, analysis) = calls("c-embedded");
    let embedded = |kind: &Kind| matches!(kind, Kind::Binder(Flavour::Embedded, Binder::Transaction(_)));
    assert!(opened("c-embedded").any(|event| embedded(&event.kind)));
    assert!(
        rows.len() > 40 && rows.iter().flatten().all(Option::is_some),
        "both sides of each call are known"
    );
    assert!(analysis.problems.is_empty() && analysis.lost == 0 && analysis.marks.is_some(), "{analysis}");
}

/// Nanoseconds of a call by cause.
type Shares = BTreeMap<Label, u64>;

/// Calls of a recording that ended in it: by debug id their threads, duration, shares, and threads that the caller's chain names.
fn shares(
    input: trace::Reader<impl Read + std::io::Seek>,
) -> BTreeMap<i32, (i32, i32, u64, Shares, Vec<i32>)> {
    let mut reader = input;
    let mut analyzer = Analyzer::new(AnalysisOptions::default());
    let mut calls = BTreeMap::new();
    let mut take = |met: TransactionEvent<'_>| {
        let TransactionEvent::Ended(call) = met else { return };
        let Some(server) = call.server.as_ref().filter(|_| !call.oneway && !call.doubtful) else { return };
        let mut shares = Shares::new();
        for part in &call.parts {
            *shares.entry(part.cause.label()).or_default() += part.ns();
        }
        let chain = call.links.iter().filter(|link| link.ns() > 1_000_000).map(|link| link.tid).collect();
        calls.insert(call.debug_id, (call.client.tid, server.tid, call.ns(), shares, chain));
    };
    while let Some(event) = reader.next() {
        analyzer.take_with(&event, reader.names(), &mut take);
    }
    analyzer.end_with(reader.names(), &mut take);
    calls
}

/// Time in ns by which the two recorders of one event may differ, at one end of a share: each buffer takes its own time.
const APART_NS: u64 = 20_000;

#[test]
fn known_causes_are_the_same_in_a_recording_of_ours_made_at_the_same_time() {
    const CAUSES: &[&str] = &["inversion", "lock", "busy", "monitor", "chain", "poll"];
    let mut compared = 0;
    for (driver, causes) in [("c-both", CAUSES), ("rust-both", CAUSES), ("c-disk-both", &["io"])] {
        let theirs = shares(opened(driver));
        for cause in causes {
            let packed = File::open(path(&format!("{driver}.{cause}.trace.gz"))).expect("a fixture");
            let mut whole = Vec::new();
            GzDecoder::new(packed).read_to_end(&mut whole).expect("packed bytes");
            let ours = shares(trace::open(std::io::Cursor::new(whole)).expect("our format"));
            let mut long = 0;
            for (id, (client, server, ns, shares, chain)) in &ours {
                let words = format!("{driver}, {cause}, call {id}");
                let (their_client, their_server, their_ns, their_shares, their_chain) = &theirs[id];
                assert_eq!((client, server), (their_client, their_server), "{words}");
                assert!(ns.abs_diff(*their_ns) < APART_NS, "{words}: {ns} ns, {their_ns} ns");
                for kind in shares.keys().chain(their_shares.keys()) {
                    let [one, other] =
                        [shares, their_shares].map(|shares| shares.get(kind).copied().unwrap_or(0));
                    assert!(one.abs_diff(other) < 4 * APART_NS, "{words}, {kind:?}: {one} ns, {other} ns");
                }
                assert_eq!(chain, their_chain, "{words}: whom it waited for");
                long += u64::from(*ns > 1_000_000);
            }
            assert!(long >= 3, "{driver}, {cause}: the cause befell {long} calls");
            let held = ours.values().any(|(.., chain)| !chain.is_empty());
            assert!(
                held || !["lock", "monitor", "chain"].contains(cause),
                "{driver}, {cause}: no holder is known"
            );
            compared += ours.len();
        }
    }
    assert_eq!(compared, 337, "as docs/traces.md says");
}
