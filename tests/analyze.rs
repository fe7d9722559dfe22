//! Room: `binderperf trace analyze` as its users meet it: exit statuses, text, JSON.
//! Not here: whether what it says is true (`crates/trace/tests/verdict.rs`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/trace/fixtures").join(name)
}

fn analyze(file: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binderperf"));
    command.args(["trace", "analyze"]).arg(file).args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_miss_is_told_and_is_exit_status_1() {
    let missed = analyze(&fixture("inversion.txt"), &["--deadline-us", "2000"]);
    let said = text(&missed.stdout);
    assert_eq!(missed.status.code(), Some(1), "{said}{}", text(&missed.stderr));
    assert!(said.contains("- MISS call ") && said.contains("priority inversion, caller rt 99"), "{said}");
    let fine = analyze(&fixture("raised.txt"), &["--deadline-us", "2000"]);
    assert_eq!(fine.status.code(), Some(0), "{}", text(&fine.stdout));
    assert!(!text(&fine.stdout).contains("MISS"));
}

#[test]
fn json_has_the_same_answer() {
    let output = analyze(&fixture("queued.txt"), &["--format", "json", "--worst", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let slow = answer["slow"].as_array().expect("a list");
    assert_eq!(slow.len(), 2);
    assert_eq!((&slow[0]["debug_id"], &slow[0]["reasons"][0]["cause"]), (&852.into(), &"sleep".into()));
}

#[test]
fn a_page_is_not_written_over_its_trace_nor_where_it_cannot_be() {
    let trace = fixture("raised.txt");
    let path = trace.to_str().expect("a path of ours");
    for (words, code, why) in [
        (["--html", path], 2, "is the trace itself"),
        (["--html", "/no/such/folder/out.html"], 4, "could not be written"),
        (["--html", "/dev/null/out.html"], 4, "could not be written"),
        (["--pictures", "3"], 2, "--html"),
    ] {
        let output = analyze(&trace, &words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(why), "{words:?}: {said}");
    }
    assert!(std::fs::read(&trace).is_ok_and(|bytes| bytes.starts_with(b"# tracer")), "it is still there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_binderperf"));
    command
        .args(["trace", "analyze", "/dev/stdin", "--html", "/dev/null"])
        .stdin(std::process::Stdio::piped());
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("is read twice"), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_trace_is_exit_status_2_and_says_why() {
    for (file, words, why) in [
        (fixture("no-such-file"), &[][..], "no-such-file"),
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), &[], "Cargo.toml"),
        (fixture("raised.txt"), &["--comm", "nobody"], "was asked for"),
        (fixture("raised.txt"), &["--worst", "many"], "many"),
    ] {
        let output = analyze(&file, words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{file:?} {words:?}: {said}");
        assert!(said.contains(why), "{file:?} {words:?}: {said}");
    }
}
