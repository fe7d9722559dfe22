//! Programs on the embedded driver through the supervisor: this program itself, as an ordinary client of `/dev/binder`.
//! Not here: programs that behave badly (`supervise`'s own tests).

use needs::{Lack, Need, need};

use crate::support::ktap::{Line, print_counts, results};
use crate::support::{Called, Folder, binderperf};

/// Sections that take little time.
const ITEMS: &str = "OPN-0,IOC-0,WR-0,OBJ-,POL-03,EXT-07";

/// Items of these sections that differ under the supervisor (docs/clients.md), or on the embedded driver
/// anyway.
const DIFFER: [&str; 6] = ["OPN-03", "OPN-05", "OPN-07", "OPN-08", "OBJ-12", "OBJ-13"];

/// Runs this program's `words` under supervision.
fn supervised(name: &str, words: &[&str]) -> Result<Called, Lack> {
    let (folder, program) = (Folder::new(name), env!("CARGO_BIN_EXE_binderperf"));
    let directory = folder.path("broker");
    let mut all = vec!["shim", "--supervise", "--context-dir", &directory, "--", program];
    all.extend(words);
    let called = binderperf(&all);
    Need::Supervision.met_if(!called.stderr.contains("cannot supervise"), &called.stderr)?;
    Ok(called)
}

#[test]
fn a_supervised_program_finds_the_driver_that_it_expects() {
    let words = ["conformance", "--driver", "kernel", "--device", "/dev/binder", "--filter", ITEMS];
    let called = need!(supervised("conformance", &words));
    let called = called.ended(1);
    print_counts(&called.stdout);
    let (plan, found) = results(&called.stdout);
    assert_eq!(plan, found.len());
    for (id, end) in &found {
        let differs = DIFFER.contains(&id.as_str());
        assert_eq!(*end == Line::NotOk, differs, "{id}: {end:?}\n{}", called.stdout);
    }
    assert!(called.stderr.contains("no time measured here"), "{}", called.stderr);
}

#[test]
fn a_supervised_program_cannot_supervise_another() {
    let called = need!(supervised("usable", &["--version"]));
    called.ended(0);
    let program = env!("CARGO_BIN_EXE_binderperf");
    let folder = Folder::new("nested");
    let directory = folder.path("broker");
    let words = [
        "shim",
        "--supervise",
        "--context-dir",
        &directory,
        "--",
        program,
        "shim",
        "--supervise",
        "--",
        "true",
    ];
    let called = binderperf(&words).ended(3);
    assert!(called.stderr.contains("itself"), "{}", called.stderr);
}

#[test]
fn a_program_that_is_not_there_is_wrong_usage() {
    let called = binderperf(&["shim", "--supervise", "--", "/nonexistent/program"]);
    if !called.stderr.contains("cannot supervise") {
        assert!(called.ended(2).stderr.contains("/nonexistent/program"));
    }
}
