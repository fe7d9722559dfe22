//! The conformance suite on the embedded driver, and proof that it can fail.
//! Not here: kernels (`guest::conformance`), the tests of the items (crate `conformance`), their text (`contract/`).

use std::collections::BTreeSet;

use crate::support::ktap::{Line, print_counts, results};
use crate::support::{Folder, binderperf, stopped_once_begun, with_stdout_unread};
use conformance::catalogue;

/// Items that the embedded driver cannot be asked about (docs/differences.md): other drivers' promises.
const NOT_EMBEDDED: [&str; 2] = ["DBG-06", "TP-14"];

/// What a skip says where something around is missing, on any driver: a right, or a security module.
const MISSING: [&str; 6] = [
    "needs ",
    "may not raise",
    "no security module",
    "labels processes",
    "no thread got the number",
    "no tracefs",
];

/// Which items differ according to the results.
fn differing(text: &str) -> BTreeSet<String> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("# differs ")?.split_once(':'));
    ids.map(|(id, _)| id.to_owned()).collect()
}

fn embedded(direct: &str) {
    let called = binderperf(&["conformance", "--driver", "embedded", "--direct", direct]).ended(0);
    print_counts(&called.stdout);
    let (plan, found) = results(&called.stdout);
    assert_eq!((plan, found.len()), (catalogue().count(), catalogue().count()));
    let differing = differing(&called.stdout);
    for item in catalogue() {
        let (id, end) = (item.id, &found[item.id]);
        if NOT_EMBEDDED.contains(&id) {
            assert!(matches!(end, Line::Skip(why) if !why.is_empty()), "{id}: {end:?}");
            continue;
        }
        if let Line::Skip(why) = end {
            assert!(MISSING.iter().any(|missing| why.contains(missing)), "{id} is skipped: {why}");
            continue;
        }
        assert_eq!(*end, Line::Ok, "{id}");
        // Buffers differ with direct calls only; whether a signal and work meet is chance.
        let may_hold = id == "WR-07" || direct == "off" && id.starts_with("BUF-");
        // In REF-16 a kernel's driver differs, the embedded one does not.
        let should_differ = item.differs && id != "REF-16";
        assert!(
            differing.contains(id) == should_differ || may_hold,
            "{id} differs: {}",
            differing.contains(id)
        );
    }
}

#[test]
fn every_promise_is_kept_by_the_embedded_driver() {
    embedded("on");
}

#[test]
fn every_promise_is_kept_by_the_embedded_driver_without_direct_calls() {
    embedded("off");
}

/// Faults in front of the embedded driver, with items that they break.
const BROKEN_EMBEDDED: [(&str, &str); 6] = [
    ("reply-first", "WR-15"),
    ("fail-for-dead", "OPN-09"),
    ("never-spawn", "LP-01"),
    ("lose-deaths", "DTH-01"),
    ("forge-sender", "ID-02"),
    ("mute-state", "FS-04"),
];

#[test]
fn a_broken_embedded_driver_is_told_from_a_good_one() {
    let untouched = ["OPN-03", "OPN-07", "IOC-01", "TX-24", "CTX-01", "FS-02"];
    let items = [&BROKEN_EMBEDDED.map(|(_, id)| id)[..], &untouched].concat();
    let faults = BROKEN_EMBEDDED.map(|(fault, _)| fault).join(",");
    let filter = items.join(",");
    let words = ["conformance", "--driver", "embedded", "--inject", &faults, "--filter", &filter];
    let called = binderperf(&words).ended(1);
    let (_, found) = results(&called.stdout);
    for (fault, id) in BROKEN_EMBEDDED {
        assert_eq!(found[id], Line::NotOk, "{fault} breaks {id}: {}", called.stdout);
    }
    for id in untouched {
        assert_eq!(found[id], Line::Ok, "{id}: {}", called.stdout);
    }
}

#[test]
fn a_stopped_suite_tells_what_it_has_and_a_reader_may_leave() {
    let words = ["conformance", "--driver", "embedded"];
    stopped_once_begun(&words, "TERM")
        .ended(1)
        .complained("stopped by SIGTERM")
        .printed("# Totals: pass:")
        .printed(" fail:0 ");
    let unread = with_stdout_unread(&words);
    assert_eq!((unread.code, unread.stderr.as_str()), (Some(0), ""));
}

#[test]
fn wrong_calls_say_how_to_call() {
    for words in [&["conformance", "--filter", "no such item"][..], &["conformance", "--device", ""]] {
        let called = binderperf(words).ended(2);
        assert!(called.stdout.is_empty() && !called.stderr.is_empty(), "{words:?}");
    }
    let called = binderperf(&["conformance", "--inject", "rust"]).ended(2);
    assert!(called.stderr.contains("drop-noop"), "the known faults are named: {}", called.stderr);
    binderperf(&["conformance", "--device", "/dev/no-such-binder"])
        .ended(3)
        .complained("/dev/no-such-binder");
}

#[test]
fn items_can_be_listed_anywhere() {
    let called = binderperf(&["conformance", "--list"]);
    assert_eq!((called.code, called.stdout.lines().count()), (Some(0), catalogue().count()));
    let called = binderperf(&["conformance", "--list", "--filter", "ctx-05"]);
    assert!(
        called.stdout.starts_with("CTX-05  C ") && called.stdout.lines().count() == 1,
        "{}",
        called.stdout
    );
}

#[test]
fn the_order_of_the_items_changes_no_result() {
    let filter = "OBJ-0,ID-01,REF-,CTX-,DTH-";
    let run = |more: &[&str]| {
        let words = ["conformance", "--driver", "embedded", "--filter", filter];
        binderperf(&[&words[..], more].concat()).ended(0).stdout
    };
    let (in_order, shuffled) = (run(&[]), run(&["--shuffle", "7"]));
    assert_eq!(results(&shuffled).1, results(&in_order).1);
    assert!(shuffled.contains("# evidence: order of the items: --shuffle 7\n"), "{shuffled}");
    let first = |text: &str| text.lines().find(|line| line.starts_with("ok 1 ")).map(str::to_owned);
    assert_ne!(first(&shuffled), first(&in_order));
}

#[test]
fn in_ci_each_item_of_the_plan_has_a_line_and_status_4_is_a_skip() {
    let words = ["conformance", "--driver", "embedded", "--filter", "DTH-,REF-02", "--inject", "lose-deaths"];
    let run = |more: &[&str]| binderperf(&[&words[..], more].concat()).ended(1);
    let first = run(&["--stop-at-failure"]);
    first.complained("DTH-01 failed: not all of the");
    let (plan, found) = results(&first.stdout);
    assert!(plan > 2 && found.len() == 2 && found["DTH-01"] == Line::NotOk, "{}", first.stdout);
    let (plan, found) = results(&run(&["--stop-at-failure", "--for-ci"]).stdout);
    assert_eq!(found.len(), plan);
    assert_eq!(found["DTH-02"], Line::Skip("DTH-01 failed".to_owned()));
    binderperf(&["conformance", "--for-ci", "--device", "/dev/no-such-binder"])
        .ended(4)
        .complained("/dev/no-such-binder");
}

#[test]
fn a_file_of_the_driver_is_cleared_before_an_item_and_read_after_it() {
    let folder = Folder::new("read-after");
    let file = folder.write("counters", "old");
    let run = |file: &str| {
        let words = ["conformance", "--driver", "embedded", "--filter", "WR-01", "--read-after", file];
        binderperf(&words).ended(0).stdout
    };
    let text = run(&file);
    assert!(text.contains("# WR-01: 0\n") && !text.contains("old"), "{text}");
    let text = run(&folder.path("none/such"));
    assert!(text.contains("none/such: ENOENT"), "{text}");
}
