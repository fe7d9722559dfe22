//! `binderperf state` as its users meet it. Not here: where the driver's files lie
//! (`driver::kernel_state`), what they promise (`conformance`).

use crate::support::{BINARY, Folder, binderperf, call};

#[test]
fn what_cannot_be_shown_says_why() {
    binderperf(&["state", "--device", "/dev/no-such-binder"])
        .ended(3)
        .complained("/dev/no-such-binder")
        .printed_nothing();
    binderperf(&["state", "--driver=kernel", "--context-dir=/x"]).ended(2);
    let called = binderperf(&["state", "everything"]).ended(2);
    assert!(called.stderr.contains("transactions"), "the known words are named: {}", called.stderr);
}

#[test]
fn the_variable_holds_and_looking_makes_nothing() {
    let folder = Folder::new("state");
    let place = folder.path("of/the/user");
    let state = |words: &[&str], driver| {
        let words = [&["state"], words].concat();
        let variables = [("XDG_RUNTIME_DIR", place.as_str()), ("BINDERPERF_DRIVER", driver)];
        call(BINARY, &words, &variables)
    };
    for (words, driver) in [(&[][..], "embedded"), (&["--driver=embedded"], "kernel")] {
        let called = state(words, driver).ended(3);
        let says = "binderperf: nobody uses the embedded driver in ";
        assert!(called.stderr.starts_with(says) && called.stderr.contains(&place), "{}", called.stderr);
    }
    state(&[], "kernels").ended(2).complained("BINDERPERF_DRIVER");
    let auto = state(&["--device=no-such-context"], "auto").ended(3);
    for says in ["/dev/no-such-context", "nobody uses the embedded driver in "] {
        auto.complained(says);
    }
    assert!(!std::path::Path::new(&folder.path("of")).exists(), "nothing was made");
}
