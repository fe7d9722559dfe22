//! The chaos test on the embedded driver, and proof that each of its checks can fail.
//! Not here: the test (crate `chaos`), a kernel's driver (`guest::inside::chaos`).

use std::sync::{Mutex, PoisonError};

use crate::support::{Called, binderperf, stopped_when_servers_run};

/// One test at a time: they take all CPUs, and a patient wait must not fail for that.
static ONE: Mutex<()> = Mutex::new(());

fn chaos(words: &[&str]) -> Called {
    let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    binderperf(&[&["chaos", "--driver", "embedded"], words].concat())
}

/// What was counted under this name.
fn count(called: &Called, name: &str) -> u64 {
    let words: Vec<&str> = called.stdout.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
    let at =
        words.iter().position(|word| *word == name).unwrap_or_else(|| panic!("no {name}: {}", called.stdout));
    words[at + 1].trim().parse().unwrap_or_else(|_| panic!("{name} has no count: {}", called.stdout))
}

fn assert_passed(called: &Called) {
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
    for name in ["calls", "nested", "oneways", "objects", "descriptors"] {
        assert!(count(called, name) > 0, "{}", called.stdout);
    }
}

#[test]
fn nothing_is_lost_among_processes_that_are_killed() {
    let lacks = |called: &Called| {
        ["kills", "deaths", "pauses", "visits"].into_iter().find(|name| count(called, name) == 0)
    };
    for direct in ["on", "off"] {
        let mut called = chaos(&["--direct", direct, "--seconds", "6"]);
        // On a loaded machine a short run may not see all of them.
        if called.code == Some(0) && lacks(&called).is_some() {
            called = chaos(&["--direct", direct, "--seconds", "40"]);
        }
        assert_passed(&called);
        assert_eq!(lacks(&called), None, "{}", called.stdout);
        called.printed("the broker was left empty, and ended");
    }
}

#[test]
fn nothing_is_refused_among_processes_that_live() {
    let called = chaos(&["--seconds", "2", "--processes", "3", "--no-kill"]);
    assert_passed(&called);
    assert_eq!((count(&called, "kills"), count(&called, "refused")), (0, 0), "{}", called.stdout);
}

/// Each fault, whether it takes kills to show, and how it must be named: in one of these ways.
const FAULTS: [(&str, bool, &[&str]); 14] = [
    ("wrong-bytes", false, &["answered"]),
    ("wrong-file", false, &["with other content"]),
    ("drop-oneway", false, &["and what was before it did not", "for the arrival of oneway call"]),
    ("repeat-oneway", false, &["again, or too late"]),
    ("leak-buffer", false, &["buffer "]),
    ("leak-fd", false, &["leaks descriptors"]),
    ("leak-object", false, &["are still held"]),
    ("hang", false, &["hangs: "]),
    ("false-refusal", false, &["was refused by a process that lives"]),
    ("lose-death", true, &["was not notified of the death"]),
    ("false-death", false, &["was notified of the death of"]),
    ("mute-visit", false, &["the manager did not answer", "for the end of a visit"]),
    ("false-freeze", false, &["as to frozen processes, and none was frozen"]),
    ("vanish", false, &["0.0 ended unexpectedly"]),
];

#[test]
fn every_fault_is_noticed() {
    for (fault, kills, complaints) in FAULTS {
        let run = |seconds| {
            // Leaks show at the end, and in the state only where every buffer is the broker's.
            let words = ["--processes=3", seconds, "--patience=2", "--direct=off", "--inject", fault];
            chaos(&[&words[..], if kills { &[] } else { &["--no-kill"] }].concat())
        };
        // On a loaded machine a short run may have no occasion for the fault.
        let called =
            ["--seconds=8", "--seconds=30"].into_iter().fold(run("--seconds=2"), |called, longer| {
                if called.code == Some(0) { run(longer) } else { called }
            });
        let called = called.ended(1);
        let told = called.stdout.split("the driver's state then").next().unwrap_or_default();
        assert!(complaints.iter().any(|complaint| told.contains(complaint)), "{fault}: {}", called.stdout);
    }
}

#[test]
fn a_stopped_test_tells_its_seed() {
    let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let words = ["chaos", "--driver", "embedded", "--seconds", "60", "--seed", "7"];
    let called = stopped_when_servers_run(&words, "INT").ended(1);
    assert!(called.stdout.starts_with("chaos: stopped by SIGINT, seed 7; "), "{}", called.stdout);
}

#[test]
fn wrong_calls_say_how_to_call() {
    for words in [&["--processes", "1"][..], &["--seconds", "0"], &["--inject", "burn"], &["--seed", "x"]] {
        let called = chaos(words).ended(2);
        assert!(called.stdout.is_empty() && !called.stderr.is_empty(), "{words:?}");
    }
}
