//! `binderperf trace analyze` as its users meet it: exit statuses, text, JSON.
//! Not here: whether what it says is true (`crates/trace/tests/verdict.rs`).

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
