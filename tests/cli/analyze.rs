//! `binderperf trace analyze` as its users meet it: exit statuses, text, JSON.
//! Not here: whether what it says is true (`crates/trace/tests/files/verdict.rs`).

use std::process::Stdio;

use crate::support::{BINARY, Called, binderperf, command, contents, end, fixture};

fn analyze(file: &str, words: &[&str]) -> Called {
    binderperf(&[&["trace", "analyze", file], words].concat())
}

#[test]
fn a_miss_is_told_and_is_exit_status_1() {
    analyze(&fixture("inversion.txt"), &["--deadline-us", "2000"])
        .ended(1)
        .printed("- MISS call ")
        .printed("priority inversion, caller rt 99");
    let fine = analyze(&fixture("raised.txt"), &["--deadline-us", "2000"]).ended(0);
    assert!(!fine.stdout.contains("MISS"), "{fine}");
}

#[test]
fn a_call_that_never_came_back_is_a_miss_and_failed_calls_are_named() {
    let words = ["--deadline-us", "2500"];
    let hanging = analyze(&fixture("cases/hang.txt"), &words).ended(1);
    hanging
        .printed("- MISS IFoo.bar, call 1 of main 100")
        .printed("unanswered after 8.00 s")
        .printed("1 over the deadline of 2.50 ms");
    let json =
        analyze(&fixture("cases/hang.txt"), &[&words[..], &["--format", "json"]].concat()).ended(1).json();
    assert_eq!(
        (&json["unanswered"][0]["debug_id"], &json["unanswered"][0]["missed"]),
        (&1.into(), &true.into())
    );
    analyze(&fixture("cases/failed.txt"), &[])
        .ended(0)
        .printed("to process 200 failed after 399 us: BR_FAILED_REPLY");
    let json = analyze(&fixture("cases/failed.txt"), &["--format", "json"]).ended(0).json();
    let words: Vec<_> =
        (0..3).map(|at| json["failed"][at]["failure"]["reply"].as_str().unwrap_or("?")).collect();
    assert_eq!(words, ["BR_FAILED_REPLY", "BR_DEAD_REPLY", "BR_FROZEN_REPLY"]);
}

#[test]
fn json_has_the_same_answer() {
    let answer = analyze(&fixture("queued.txt"), &["--format", "json", "--worst", "2"]).ended(0).json();
    let slow = answer["slow"].as_array().expect("a list");
    assert_eq!(slow.len(), 2);
    assert_eq!((&slow[0]["debug_id"], &slow[0]["reasons"][0]["cause"]), (&852.into(), &"sleep".into()));
}

#[test]
fn a_page_is_not_written_over_its_trace_nor_where_it_cannot_be() {
    let trace = fixture("raised.txt");
    for (words, code, why) in [
        (["--html", &trace], 2, "is the trace itself"),
        (["--html", "/no/such/folder/out.html"], 4, "could not be written"),
        (["--html", "/dev/null/out.html"], 4, "could not be written"),
        (["--pictures", "3"], 2, "--html"),
    ] {
        analyze(&trace, &words).ended(code).complained(why);
    }
    assert!(contents(&trace).starts_with("# tracer"), "it is still there");
    let mut command = command(BINARY, &["trace", "analyze", "/dev/stdin", "--html", "/dev/null"]);
    let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    end(child).ended(2).complained("is read twice");
}

#[test]
fn what_is_no_trace_is_exit_status_2_and_says_why() {
    for (file, words, why) in [
        ("no-such-file", &[][..], "no-such-file"),
        ("../Cargo.toml", &[], "Cargo.toml"),
        ("raised.txt", &["--comm", "nobody"], "was asked for"),
        ("raised.txt", &["--worst", "many"], "many"),
    ] {
        analyze(&fixture(file), words).ended(2).complained(why);
    }
}
