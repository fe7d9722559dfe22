//! Room: `binderperf state` as its users meet it. Not here: where the driver's files lie
//! (`driver::kernel_state`), what they promise (`lab::conformance`). One test boots a guest.

mod support;

use support::{Folder, binderperf, call};

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
    let called = binderperf(&["state", "--driver=kernel", "--context-dir=/x"]);
    assert_eq!(called.code, Some(2), "{}", called.stderr);
    let called = binderperf(&["state", "everything"]);
    assert_eq!(called.code, Some(2), "{}", called.stderr);
    assert!(called.stderr.contains("transactions"), "the known words are named: {}", called.stderr);
}

#[test]
fn the_variable_holds_and_looking_makes_nothing() {
    let folder = Folder::new("state");
    let place = folder.path("of/the/user");
    let state = |words: &[&str], driver| {
        let words = [&["state"], words].concat();
        let variables = [("XDG_RUNTIME_DIR", place.as_str()), ("BINDERPERF_DRIVER", driver)];
        call(env!("CARGO_BIN_EXE_binderperf"), &words, &variables)
    };
    for (words, driver) in [(&[][..], "embedded"), (&["--driver=embedded"], "kernel")] {
        let called = state(words, driver);
        assert_eq!(called.code, Some(3), "{}", called.stderr);
        let says = "binderperf: nobody uses the embedded driver in ";
        assert!(called.stderr.starts_with(says) && called.stderr.contains(&place), "{}", called.stderr);
    }
    let nonsense = state(&[], "kernels");
    assert_eq!(nonsense.code, Some(2), "{}", nonsense.stderr);
    assert!(nonsense.stderr.contains("BINDERPERF_DRIVER"), "{}", nonsense.stderr);
    let auto = state(&["--device=no-such-context"], "auto");
    assert_eq!(auto.code, Some(3), "{}", auto.stderr);
    for says in ["/dev/no-such-context", "nobody uses the embedded driver in "] {
        assert!(auto.stderr.contains(says), "{says}: {}", auto.stderr);
    }
    assert!(!std::path::Path::new(&folder.path("of")).exists(), "nothing was made");
}
