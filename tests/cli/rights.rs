//! Commands in a user namespace, where root's capabilities show but do not count, and in a bare root.
//! Not here: processes without capabilities (`inheritance`).

use std::process::Command;

use needs::{Lack, Need, need};

use crate::support::{BINARY, Called, Folder, call};

/// Runs the command as root of a new user namespace.
fn as_root_of_a_namespace(words: &[&str]) -> Result<Called, Lack> {
    let tried = Command::new("unshare").args(["-Ur", "true"]).output();
    let fine = tried.as_ref().is_ok_and(|tried| tried.status.success());
    Need::Namespaces.met_if(fine, format_args!("unshare -Ur true: {tried:?}"))?;
    Ok(call("unshare", &[&["-Ur", BINARY], words].concat(), &[]))
}

/// The reason that the command gives.
const UNABLE: &str = "CAP_SYS_NICE does not count here";

#[test]
fn inheritance_cannot_be_told_where_the_capability_does_not_count() {
    let words = ["inheritance", "--driver", "embedded"];
    for more in [&[][..], &["--inherit", "rt"]] {
        let called = need!(as_root_of_a_namespace(&[&words[..], more].concat()));
        called.printed(", expected none");
        called.printed(UNABLE);
        assert_eq!(called.code, Some(3), "{}{}", called.stdout, called.stderr);
    }
}

#[test]
fn latency_does_not_blame_the_driver_for_a_missing_right() {
    let words = ["latency", "hwbinder", "--driver", "embedded", "-i", "20"];
    let called = need!(as_root_of_a_namespace(&words));
    assert!(!called.stdout.contains("inheritance FAIL"), "{}", called.stdout);
}

#[test]
fn an_item_that_needs_another_uid_is_skipped_with_the_reason() {
    let words = ["conformance", "--driver", "embedded", "--filter", "CTX-"];
    let called = need!(as_root_of_a_namespace(&words));
    let called = called.ended(0);
    called.printed("# SKIP needs to act as another user, and cannot take uid 65534 here");
}

#[test]
fn a_bare_root_is_told_what_it_lacks() {
    let folder = Folder::new("bare-root");
    let root = folder.path("");
    std::fs::copy(BINARY, folder.path("binderperf")).expect("copied");
    for inner in ["tmp", "proc"] {
        std::fs::create_dir(folder.path(inner)).expect("made");
    }
    // Of its own, so that the mount ends with it.
    let inside = |mount: bool, words: &str| {
        let mount = if mount { format!("mount -t proc proc {root}/proc && ") } else { String::new() };
        let script = format!("{mount}exec chroot {root} /binderperf {words}");
        call("unshare", &["-Urmpf", "sh", "-c", &script], &[])
    };
    let version = inside(false, "--version");
    need!(Need::Namespaces.met_if(!version.stderr.contains("unshare"), &version.stderr));
    version.ended(0).printed("commit");
    let tests = [
        "run --quick --driver embedded",
        "latency hwbinder --driver embedded",
        "throughput binder --driver embedded",
        "inheritance --driver embedded",
        "conformance --driver embedded",
        "chaos --driver embedded",
    ];
    for test in tests {
        for (mount, lacks, remedy) in [
            (false, "/proc/self/exe", "mount -t proc proc /proc"),
            (true, "/dev/null", "mknod -m 666 /dev/null c 1 3"),
        ] {
            let called = inside(mount, test).ended(3);
            let said = &called.stderr;
            assert!(
                said.contains(&format!("there is no {lacks} here")) && said.contains(remedy),
                "{test}: {said}"
            );
        }
    }
}
