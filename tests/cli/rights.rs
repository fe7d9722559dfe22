//! Commands in a user namespace, where root's capabilities show but do not count.
//! Not here: processes without capabilities (`inheritance`).

use std::process::Command;

use crate::support::{BINARY, Called, call};

/// Runs the command as root of a new user namespace; `None`, with the reason printed, where there can be none.
fn as_root_of_a_namespace(words: &[&str]) -> Option<Called> {
    let tried = Command::new("unshare").args(["-Ur", "true"]).output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        println!("SKIP: no user namespace here: unshare -Ur true: {tried:?}");
        return None;
    }
    Some(call("unshare", &[&["-Ur", BINARY], words].concat(), &[]))
}

/// The reason that the command gives.
const UNABLE: &str = "CAP_SYS_NICE does not count here";

#[test]
fn inheritance_cannot_be_told_where_the_capability_does_not_count() {
    let words = ["inheritance", "--driver", "embedded"];
    for more in [&[][..], &["--inherit", "rt"]] {
        let Some(called) = as_root_of_a_namespace(&[&words[..], more].concat()) else { return };
        called.printed(", expected none");
        called.printed(UNABLE);
        assert_eq!(called.code, Some(3), "{}{}", called.stdout, called.stderr);
    }
}

#[test]
fn latency_does_not_blame_the_driver_for_a_missing_right() {
    let words = ["latency", "hwbinder", "--driver", "embedded", "-i", "20"];
    let Some(called) = as_root_of_a_namespace(&words) else { return };
    assert!(!called.stdout.contains("inheritance FAIL"), "{}", called.stdout);
}

#[test]
fn an_item_that_needs_another_uid_is_skipped_with_the_reason() {
    let words = ["conformance", "--driver", "embedded", "--filter", "CTX-"];
    let Some(called) = as_root_of_a_namespace(&words) else { return };
    let called = called.ended(0);
    called.printed("# SKIP needs to act as another user, and cannot take uid 65534 here");
}
