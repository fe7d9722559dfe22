//! Runs whose broker is killed or stopped: they end, and say what was lost.

use std::path::Path;
use std::time::{Duration, Instant};

use super::support::names::keeps_open;
use super::support::{Called, Folder, broker, end, read, signal, start, wait_until, with_servers};

/// Runs a test on the embedded driver, and kills its broker once its servers run.
fn without_its_broker(words: &[&str]) -> (Called, record::Run) {
    let folder = Folder::new("broker-lost");
    let path = folder.path("r.json");
    let words = [words, &["--driver=embedded", "--record", &path]].concat();
    let (child, _servers) = with_servers(&words);
    let broker = broker_of(child.id());
    signal(broker, "KILL");
    let called = end(child).ended(1);
    (called, read(&path))
}

/// The broker of a program's private context. Servers may run before it, and wait for it.
fn broker_of(program: u32) -> u32 {
    let found = || broker(|directory| keeps_open(program, directory));
    wait_until("it has a broker", || found().is_some());
    found().expect("it has a broker")
}

/// The words of a test that needs its broker for each call.
const WITHOUT_LANES: [&[&str]; 2] = [
    &[
        "throughput",
        "binder",
        "--benchmark_filter=binder/4$",
        "--controls=none",
        "--benchmark_min_time=3s",
        "--benchmark_repetitions=90",
        "--direct=off",
    ],
    &["latency", "binder", "--rate=200", "-i", "60000", "--format=table", "--direct=off"],
];

#[test]
fn a_stopped_broker_ends_a_test() {
    for words in WITHOUT_LANES {
        let folder = Folder::new("broker-stopped");
        let path = folder.path("r.json");
        let (child, _servers) = with_servers(&[words, &["--driver=embedded", "--record", &path]].concat());
        let broker = broker_of(child.id());
        std::thread::sleep(Duration::from_secs(1));
        signal(broker, "STOP");
        let start = Instant::now();
        let called = end(child).ended(1);
        // 10 s on a machine with nothing else to do.
        assert!(!sys::patience::is_over(start, Duration::from_secs(60)), "{:?}", start.elapsed());
        called
            .complained("was stopped by a signal (SIGSTOP)")
            .complained("what was measured until then is kept");
        let run = read(&path);
        assert!(!run.complete && run.findings.iter().any(|finding| finding.id == "broker-lost"), "{called}");
        let is_there = || Path::new(&format!("/proc/{broker}/exe")).exists();
        wait_until("the stopped broker is gone", || !is_there());
    }
}

#[test]
fn a_stopped_broker_of_somebody_else_ends_a_test_and_goes_on() {
    for words in WITHOUT_LANES {
        let folder = Folder::new("broker-shared");
        let directory = folder.path("binderperf");
        let keeper = start(&["broker", "--context-dir", &directory]);
        let pid = keeper.id();
        wait_until("the broker listens", || Path::new(&format!("{directory}/broker.lock")).exists());
        let (child, _servers) = with_servers(&[words, &["--context-dir", &directory]].concat());
        std::thread::sleep(Duration::from_secs(1));
        signal(pid, "STOP");
        let begun = Instant::now();
        let called = end(child).ended(1);
        assert!(!sys::patience::is_over(begun, Duration::from_secs(60)), "{:?}", begun.elapsed());
        called.complained("was stopped by a signal (SIGSTOP)");
        // It is not this test's to kill.
        assert!(Path::new(&format!("/proc/{pid}/exe")).exists());
        signal(pid, "KILL");
        end(keeper);
    }
}

/// Asserts what the record and the screen of such a run say.
#[track_caller]
fn says_so(called: &Called, run: &record::Run, doing: &str) {
    called.complained("the embedded driver's broker").complained("what was measured until then is kept");
    assert!(!run.complete);
    let why = run.incomplete_reason.as_deref().unwrap_or_default();
    assert!(why.contains("after the start") && why.contains(doing), "{why}");
    let found = run.findings.iter().find(|finding| finding.id == "broker-lost").expect("a finding");
    assert!(found.severity == record::Severity::Error && found.fix.is_some(), "{found:?}");
}

#[test]
fn a_throughput_run_ends_and_says_so() {
    // Without call slots each call needs the broker; with them the calls go on without it.
    for direct in ["on", "off"] {
        let direct = format!("--direct={direct}");
        let words = [
            "throughput",
            "binder",
            "--benchmark_filter=binder/4$",
            "--controls=none",
            "--benchmark_min_time=3s",
            "--benchmark_repetitions=9",
            &direct,
        ];
        let (called, run) = without_its_broker(&words);
        says_so(&called, &run, "BM_sendVec_binder/4");
        let outcomes = &run.cases[0].repetitions;
        let last = outcomes.last().map(|repetition| &repetition.outcome);
        assert!(matches!(last, Some(record::Outcome::Failed { .. })), "{outcomes:?}");
        assert!(outcomes.len() < 9, "it ended");
    }
}

#[test]
fn a_latency_test_ends_and_says_so() {
    for direct in ["on", "off"] {
        let direct = format!("--direct={direct}");
        let words = ["latency", "binder", "--rate=200", "-i", "6000", "--format=table", &direct];
        let (called, run) = without_its_broker(&words);
        says_so(&called, &run, "the calls of 1 pair");
        called.printed("INCOMPLETE");
    }
}
