//! `binderperf top` on the embedded driver: its figures against a recording, and how it ends.
//! Not here: a kernel's driver (`guest::inside::top`), the screen (crate `screen`).

use needs::need;

use crate::support::live::top_agrees_with_its_recording;
use crate::support::{Folder, binderperf, refused, with_stdout_unread};

#[test]
fn figures_are_those_of_a_recording_of_the_same_calls() {
    let folder = Folder::new("top");
    let calls = need!(top_agrees_with_its_recording(&folder, &["--driver", "embedded"]));
    assert!(calls > 0);
}

#[test]
fn wrong_words_are_refused_with_what_is_allowed() {
    let cases: &[(&[&str], &str)] = &[
        (&["top", "--sort", "speed"], "there are pid, name, calls/s"),
        (&["top", "--interval", "0"], "0.1 to 3600"),
        (&["top", "--max-overhead", "0"], "0.01 to 100"),
        (&["top", "--by", "colours"], "processes"),
    ];
    refused(binderperf, cases);
}

#[test]
fn it_ends_with_its_reader() {
    let folder = Folder::new("top-ends");
    let words = [
        "top",
        "--batch",
        "--interval",
        "0.1",
        "--driver",
        "embedded",
        "--context-dir",
        &folder.path("none"),
    ];
    let called = with_stdout_unread(&words);
    // Without tracefs there is nothing to show.
    assert!(matches!(called.code, Some(0 | 3)), "{called}");
}
