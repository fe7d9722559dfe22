//! `binderperf top` on a kernel's driver: its figures against a recording.

use crate::support::Folder;
use crate::support::live::top_agrees_with_its_recording;

#[test]
#[ignore = "for the guest of `session`"]
fn figures_are_those_of_a_recording_of_the_same_calls() {
    let calls = top_agrees_with_its_recording(&Folder::new("guest-top"), &[]).expect("a guest has tracefs");
    assert!(calls > 0);
}
