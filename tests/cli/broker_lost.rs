//! Runs whose broker is killed: they end, and say what was lost.

use super::support::names::keeps_open;
use super::support::{Called, Folder, broker, end, read, signal, wait_until, with_servers};

/// Runs a test on the embedded driver, and kills its broker once its servers run.
fn without_its_broker(words: &[&str]) -> (Called, record::Run) {
    let folder = Folder::new("broker-lost");
    let path = folder.path("r.json");
    let words = [words, &["--driver=embedded", "--record", &path]].concat();
    let (child, _servers) = with_servers(&words);
    let of_child = || broker(|directory| keeps_open(child.id(), directory));
    // Servers may run before it, and wait for it.
    wait_until("it has a broker", || of_child().is_some());
    let broker = of_child().expect("it has a broker");
    // The servers serve by now, or are about to.
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(broker, "KILL");
    let called = end(child).ended(1);
    (called, read(&path))
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
    for lanes in ["on", "off"] {
        let lanes = format!("--lanes={lanes}");
        let words = [
            "throughput",
            "binder",
            "--benchmark_filter=binder/4$",
            "--controls=none",
            "--benchmark_min_time=3s",
            "--benchmark_repetitions=9",
            &lanes,
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
    for lanes in ["on", "off"] {
        let lanes = format!("--lanes={lanes}");
        let words = ["latency", "binder", "--rate=200", "-i", "6000", "--format=table", &lanes];
        let (called, run) = without_its_broker(&words);
        says_so(&called, &run, "the calls of 1 pair");
        called.printed("INCOMPLETE");
    }
}
