//! Room: the conformance suite on the driver of a real kernel, in a guest, and on the embedded driver, here,
//! and proof that it can fail.
//! Not here: the tests of the promises (`lab::conformance`), their text (`contract/`).
//! Most of these tests boot guests.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use lab::conformance::catalogue;
use support::{Called, binderperf};

/// One CPU: switching tracepoints, which some items do again and again, patches the kernel, and QEMU's emulation of
/// several CPUs trips over that, with a stray breakpoint or for good. The same items are kept with two. So there may be as
/// many guests at a time as there are tests, of which each has a CPU.
fn in_guest(words: &[&str]) -> Called {
    binderperf(&[&["vm", "--smp", "1"], words].concat())
}

/// How an item ended according to its line.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Ok,
    NotOk,
    Skip(String),
}

/// Reads KTAP back: the plan, and each item's end by its number. Checks the running numbers.
fn results(text: &str) -> (usize, BTreeMap<String, Line>) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"), "{text}");
    let plan =
        lines.next().and_then(|line| line.strip_prefix("1..")).expect("a plan").parse().expect("a count");
    let mut found = BTreeMap::new();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (failed, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("ok ").unwrap_or_else(|| panic!("no result: {line}"))),
        };
        let mut words = rest.split(' ');
        assert_eq!(words.next(), Some((found.len() + 1).to_string().as_str()), "{line}");
        let id = words.next().expect("an item").to_owned();
        let skip = rest.split_once("# SKIP ").map(|(_, why)| Line::Skip(why.to_owned()));
        let end = if failed { Line::NotOk } else { skip.unwrap_or(Line::Ok) };
        assert!(found.insert(id, end).is_none(), "twice: {line}");
    }
    (plan, found)
}

/// Prints how many items were covered, whether or not the test passes.
fn print_counts(text: &str) {
    let line = text.lines().rfind(|line| line.contains(" items on the ")).expect("the counts");
    // Not through `println`, which is swallowed when a test passes.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn every_promise_is_kept_by_the_newest_kernel() {
    let called = in_guest(&["--", "conformance", "--driver", "kernel"]);
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
    print_counts(&called.stdout);
    let (plan, found) = results(&called.stdout);
    assert_eq!((plan, found.len()), (catalogue().count(), catalogue().count()));
    for item in catalogue() {
        let end = &found[item.id];
        assert!(!item.seen || *end == Line::Ok, "{} was seen on a real driver before, now: {end:?}", item.id);
        assert_ne!(*end, Line::Skip(String::new()), "{}: a skip must say why", item.id);
    }
}

#[test]
fn an_older_kernel_keeps_all_but_what_came_later() {
    let called = in_guest(&["--kernel", "6.1", "--", "conformance", "--driver", "kernel"]);
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
    print_counts(&called.stdout);
    let (plan, found) = results(&called.stdout);
    assert_eq!((plan, found.len()), (catalogue().count(), catalogue().count()));
    let skipped: Vec<_> = found.iter().filter(|(_, end)| **end != Line::Ok).collect();
    // WR-07 waits for a race, which may not come up. Debian builds binderfs out. Some promises
    // are other drivers'.
    let expected = |(id, end): &(&String, &Line)| match end {
        Line::Skip(why) if id.starts_with("FS-") => why == "this kernel has no binderfs",
        Line::Skip(why) => {
            why.contains("brought by Linux")
                // No security module gives contexts there.
                || ["OBJ-21", "ID-04"].contains(&id.as_str())
                || why.contains("Rust driver only")
                || why.contains("Android's drivers only")
                || id.as_str() == "WR-07"
        }
        _ => false,
    };
    assert!(skipped.iter().all(expected), "{skipped:?}");
    assert!(found["WR-09"] != Line::Ok, "freeze notifications came with 6.12");
}

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

fn embedded(lanes: &str) {
    let called = binderperf(&["conformance", "--driver", "embedded", "--lanes", lanes]);
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
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
        // Buffers differ with lanes only; whether a signal and work meet is chance.
        let may_hold = id == "WR-07" || lanes == "off" && id.starts_with("BUF-");
        assert!(
            differing.contains(id) == item.differs || may_hold,
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
fn every_promise_is_kept_by_the_embedded_driver_without_lanes() {
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
    let called = binderperf(&words);
    assert_eq!(called.code, Some(1), "{}{}", called.stdout, called.stderr);
    let (_, found) = results(&called.stdout);
    for (fault, id) in BROKEN_EMBEDDED {
        assert_eq!(found[id], Line::NotOk, "{fault} breaks {id}: {}", called.stdout);
    }
    for id in untouched {
        assert_eq!(found[id], Line::Ok, "{id}: {}", called.stdout);
    }
}

/// Each fault with items that it breaks.
const BROKEN: [(&str, &str); 22] = [
    ("drop-noop", "WR-03"),
    ("reply-first", "WR-15"),
    ("reply-first", "TX-01"),
    ("claim-all-written", "WR-12"),
    ("claim-all-written", "WR-13"),
    ("fail-for-dead", "OPN-09"),
    ("fail-for-dead", "TX-10"),
    ("fail-for-dead", "CTX-04"),
    ("never-spawn", "LP-01"),
    ("mute-references", "REF-08"),
    ("mute-references", "REF-13"),
    ("hide-errors", "WR-11"),
    ("mute-state", "DBG-01"),
    ("mute-state", "DBG-05"),
    ("fail-for-frozen", "FRZ-01"),
    ("fail-for-frozen", "FRZ-02"),
    ("lose-freezes", "FRZ-06"),
    ("lose-freezes", "FRZ-08"),
    ("keep-nice", "SCH-01"),
    ("keep-nice", "SCH-02"),
    ("keep-nice", "SCH-04"),
    ("forget-exit", "EXT-01"),
];

/// Items that none of the faults touches.
const UNTOUCHED: [&str; 10] =
    ["OPN-02", "OPN-03", "OPN-05", "OPN-08", "IOC-01", "IOC-02", "TX-24", "CTX-01", "CTX-02", "EXT-04"];

#[test]
fn a_broken_driver_is_told_from_a_good_one() {
    let mut faults: Vec<&str> = BROKEN.iter().map(|(fault, _)| *fault).collect();
    faults.dedup();
    let items = [&BROKEN.map(|(_, id)| id)[..], &UNTOUCHED].concat();
    let words = ["--", "conformance", "--inject", &faults.join(","), "--filter", &items.join(",")];
    let called = in_guest(&words);
    assert_eq!(called.code, Some(1), "{}{}", called.stdout, called.stderr);
    let (plan, found) = results(&called.stdout);
    assert_eq!((plan, found.len()), (items.len(), items.len()), "every item has its line");
    for (fault, id) in BROKEN {
        assert_eq!(found[id], Line::NotOk, "{fault} breaks {id}");
    }
    for id in UNTOUCHED {
        assert_eq!(found[id], Line::Ok, "{id}");
    }
}

#[test]
fn a_hanging_driver_does_not_hang_the_suite() {
    let words = ["--", "conformance", "--inject", "hang", "--limit", "3", "--filter", "OPN-02,WR-04,LP-01"];
    let called = in_guest(&words);
    assert_eq!(called.code, Some(1), "{}{}", called.stdout, called.stderr);
    let (plan, found) = results(&called.stdout);
    assert_eq!(plan, 3);
    assert_eq!(
        ["OPN-02", "WR-04", "LP-01"].map(|id| found[id].clone()),
        [Line::Ok, Line::NotOk, Line::NotOk]
    );
    assert!(called.stdout.contains("# WR-04: it did not end within 3s"), "{}", called.stdout);
}

#[test]
fn a_stopped_suite_tells_what_it_has_and_a_reader_may_leave() {
    let words = ["conformance", "--driver", "embedded"];
    let called = support::stopped_when_servers_run(&words, "TERM");
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert!(called.stderr.contains("stopped by SIGTERM"), "{}", called.stderr);
    assert!(
        called.stdout.contains("# Totals: pass:") && called.stdout.contains(" fail:0 "),
        "{}",
        called.stdout
    );
    let unread = support::with_stdout_unread(&words);
    assert_eq!((unread.code, unread.stderr.as_str()), (Some(0), ""));
}

#[test]
fn wrong_calls_say_how_to_call() {
    for words in [&["conformance", "--filter", "no such item"][..], &["conformance", "--device", ""]] {
        let called = binderperf(words);
        assert_eq!(called.code, Some(2), "{words:?}: {}", called.stderr);
        assert!(called.stdout.is_empty() && !called.stderr.is_empty(), "{words:?}");
    }
    let called = binderperf(&["conformance", "--inject", "rust"]);
    assert_eq!(called.code, Some(2));
    assert!(called.stderr.contains("drop-noop"), "the known faults are named: {}", called.stderr);
    let called = binderperf(&["conformance", "--device", "/dev/no-such-binder"]);
    assert_eq!(called.code, Some(3), "{}", called.stderr);
    assert!(called.stderr.contains("/dev/no-such-binder"), "{}", called.stderr);
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
