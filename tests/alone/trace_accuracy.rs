//! Whether known causes are named by the analysis of a recording: on the embedded driver on this machine's tracefs,
//! and on the kernel's driver in a guest that counts instructions, so that this machine's other work does not show.
//! Not here: single situations (`crates/trace`).
//! Without tracefs, or the right to use it, the first says so and looks at nothing.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use needs::need;

use crate::alone;
use crate::support::{Called, binderperf, end, signal, start, tracing_switch};

/// The row of a cause, and whether it is right.
fn row<'o>(called: &'o Called, cause: &str) -> (&'o str, bool) {
    let row = called.stdout.lines().find(|line| line.starts_with(cause));
    let row = row.unwrap_or_else(|| panic!("no row {cause}: {}{}", called.stdout, called.stderr));
    (row, row.ends_with("  right"))
}

#[test]
fn every_cause_that_is_put_in_is_named_and_no_other_call_is_accused() {
    let _alone = alone();
    need!(tracing_switch());
    let look = |causes: &str, iterations: &str| {
        binderperf(&["trace", "accuracy", "--driver=embedded", "--causes", causes, "-i", iterations])
    };
    let causes = ["rt-hog", "inversion", "lock", "busy", "apart", "timers", "monitor", "chain", "io", "poll"];
    let called = look(&causes.join(","), "200");
    let mut all_right = true;
    for cause in causes {
        if called.stderr.contains(&format!("{cause}: left out")) {
            continue;
        }
        let right = row(&called, cause).1;
        all_right &= right;
        // A machine that is busy with something else for a moment gets another chance.
        let Some(again) = (!right).then(|| look(cause, "300")) else { continue };
        let (told, right) = row(&again, cause);
        // Where the host does the disk's work on this machine's CPUs, there are no calls that only wait for it.
        let is_taken = cause == "io" && told.contains("  disturbed: ") && again.code == Some(3);
        assert!(right || is_taken, "{}{}", called.stdout, again.stdout);
    }
    assert_eq!(called.code == Some(0), all_right, "the status is the verdict: {}", called.stdout);
}

#[test]
fn too_few_calls_and_nonsense_are_no_success() {
    let _alone = alone();
    let may = tracing_switch().is_ok();
    let called = binderperf(&["trace", "accuracy", "--driver=embedded", "--causes", "lock", "-i", "1"]);
    assert!(!may || !row(&called, "lock").1, "one call tells nothing: {called}");
    called.ended(if may { 1 } else { 3 });
    binderperf(&["trace", "accuracy", "--causes", "moon"])
        .ended(2)
        .complained("rt-hog, inversion, lock, busy, apart, timers, monitor, chain, io, poll");
}

/// Interrupts a command once it is under way, which is found out from its output; returns that output and the end.
fn interrupted(words: &[&str], is_under_way: impl Fn(&mut dyn BufRead) -> String) -> (String, Called) {
    let mut child = start(words);
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut said = is_under_way(&mut stdout);
    signal(child.id(), "INT");
    stdout.read_to_string(&mut said).expect("text");
    (said, end(child).ended(1))
}

#[test]
fn an_interruption_keeps_what_was_found_and_says_so() {
    let _alone = alone();
    need!(tracing_switch());
    // Until the first row is there; the second cause is then under way.
    let words = ["trace", "accuracy", "--driver=embedded", "--causes=lock,busy", "-i", "40"];
    let first_row = |out: &mut dyn BufRead| {
        let mut said = String::new();
        while !said.lines().any(|line| line.starts_with("lock ")) {
            assert!(out.read_line(&mut said).expect("text") > 0, "it ended before: {said}");
        }
        said
    };
    interrupted(&words, first_row).1.complained("stopped by SIGINT");

    let words = ["trace", "overhead", "--driver=embedded", "-i", "100", "--rounds", "1000"];
    let some_rounds = |_: &mut dyn BufRead| {
        std::thread::sleep(Duration::from_secs(5));
        String::new()
    };
    let (said, called) = interrupted(&words, some_rounds);
    called.complained("stopped by SIGINT; this is of");
    assert_eq!(said.is_empty(), called.stderr.contains(" of 0 of 1000 rounds"), "{said}{called}");
}

#[test]
fn causes_on_the_kernels_driver_are_named_too() {
    let _alone = alone();
    let words = ["vm", "--icount", "--", "trace", "accuracy", "--driver=kernel", "-i", "200"];
    let called = binderperf(&words).ended(0);
    for cause in ["rt-hog", "inversion", "lock", "busy", "timers", "monitor", "chain", "poll"] {
        assert!(row(&called, cause).1, "{}", called.stdout);
    }
    called.complained("apart: left out").complained("io: left out");
}

#[test]
fn what_recording_costs_is_said() {
    let _alone = alone();
    need!(tracing_switch());
    let called =
        binderperf(&["trace", "overhead", "--driver=embedded", "-i", "200", "--rounds", "1"]).ended(0);
    let ratio = |way: &str| {
        let (row, _) = row(&called, way);
        row.rsplit(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_else(|| panic!("{row}"))
    };
    assert!((ratio("nothing") - 1.0).abs() < 1e-9, "{}", called.stdout);
    // Each call writes a dozen marks: where that costs nothing, nothing was recorded.
    assert!(ratio("binder_driver") > 1.3 && ratio("the usual") > 1.3, "{}", called.stdout);
}
