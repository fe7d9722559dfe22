//! Room: `binderperf state` as its users meet it. Not here: where the driver's files lie
//! (`driver::kernel_state`), what they promise (`lab::conformance`). One test boots a guest.

mod support;

use support::binderperf;

#[test]
fn the_drivers_own_account_is_shown() {
    for (word, head) in [("state", "binder state:\n"), ("stats", "binder stats:\n")] {
        let called = binderperf(&["vm", "--", "state", word]);
        assert_eq!(called.code, Some(0), "{word}: {}", called.stderr);
        assert!(called.stdout.starts_with(head), "{word}: {}", called.stdout);
    }
}

#[test]
fn what_cannot_be_shown_says_why() {
    let called = binderperf(&["state", "--device", "/dev/no-such-binder"]);
    assert_eq!(called.code, Some(3), "{}", called.stderr);
    assert!(called.stderr.contains("/dev/no-such-binder") && called.stdout.is_empty(), "{}", called.stderr);
    let called = binderperf(&["state", "everything"]);
    assert_eq!(called.code, Some(2), "{}", called.stderr);
    assert!(called.stderr.contains("transactions"), "the known words are named: {}", called.stderr);
}
