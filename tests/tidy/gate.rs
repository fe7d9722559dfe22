//! `tools/run-tests` on a made-up test program: a failure that does not come again is reported and lets the rest pass; any other fails.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sys::private_folder::PrivateFolder;

/// A test program whose tests named in `FAILING` fail, of which those that begin with `moody` pass alone. With `DIES` it dies in
/// the middle of a test, or with its guest at its first call. The first that fails prints a failure of tests inside a guest.
const PROGRAM: &str = r#"#!/bin/sh
if [ "$2" = --exact ]; then
    case $3 in
        moody*) echo "test $3 ... ok"; echo "test result: ok. 1 passed; 0 failed; 0 ignored"; exit 0 ;;
    esac
    echo "test $3 ... FAILED"; echo "test result: FAILED. 0 passed; 1 failed; 0 ignored"; exit 101
fi
echo "test steady ... ok"
set -- $FAILING
for name in "$@"; do echo "test $name ... FAILED"; done
if [ "$DIES" = slips ] && [ ! -e "$0.again" ]; then
    touch "$0.again"; echo "the guest's kernel panicked: a fault of QEMU's emulation"; exit 4
fi
[ "$DIES" != 1 ] || { printf "test last ... "; exit 134; }
echo; echo failures:; echo; echo "---- $1 stdout ----"
echo "test inner ... FAILED"; echo "test result: FAILED. 0 passed; 1 failed; 0 ignored"
echo; echo failures:; echo "    $1"; echo
echo "test result: FAILED. 1 passed; $# failed; 0 ignored"
exit 101
"#;

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("executable");
}

/// Output of `tools/run-tests`, and whether it succeeds, when these tests fail.
fn gate(failing: &str, dies: &str) -> (String, bool) {
    let folder = PrivateFolder::new("gate").expect("made");
    let at = folder.path();
    write_program(&at.join("program"), PROGRAM);
    let artifact = format!(
        r#"{{"reason":"compiler-artifact","executable":"{0}/program","profile":{{"test":true}},"manifest_path":"{0}/Cargo.toml","target":{{"name":"mood","kind":["test"]}}}}"#,
        at.display()
    );
    write_program(&at.join("cargo"), &format!("#!/bin/sh\necho '{artifact}'\n"));
    let path = format!("{}:{}", at.display(), std::env::var("PATH").expect("set"));
    let output = Command::new(super::root().join("tools/run-tests"))
        .args(["--test", "mood"])
        .env("PATH", path)
        .env("FAILING", failing)
        .env("DIES", dies)
        .output()
        .expect("python3 runs");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.success())
}

#[test]
fn a_failure_that_does_not_come_again_is_flaky_and_passes() {
    let (printed, passes) = gate("moody", "");
    assert!(passes, "{printed}");
    assert!(printed.contains("FLAKY: moody failed, and passed alone\n"), "{printed}");
    assert!(printed.contains("test result: ok. 2 passed; 0 failed;"), "{printed}");
}

#[test]
fn a_failure_that_comes_again_fails() {
    let (printed, passes) = gate("moody broken", "");
    assert!(!passes, "{printed}");
    assert!(printed.contains("FLAKY: moody "), "{printed}");
    assert!(printed.contains("\ntest broken ... FAILED\n"), "{printed}");
    assert!(!printed.contains("\ntest inner ... FAILED\n"), "{printed}");
    assert!(printed.contains("test result: FAILED. 2 passed; 1 failed;"), "{printed}");
}

#[test]
fn many_failures_are_no_accident() {
    let names: Vec<String> = (1..=13).map(|number| format!("moody{number}")).collect();
    let (printed, passes) = gate(&names.join(" "), "");
    assert!(!passes && !printed.contains("FLAKY"), "{printed}");
    assert!(printed.contains("test result: FAILED. 1 passed; 13 failed;"), "{printed}");
}

#[test]
fn a_program_that_dies_fails() {
    for failing in ["", "moody"] {
        let (printed, passes) = gate(failing, "1");
        assert!(!passes, "{printed}");
        assert!(printed.contains("as a whole, which ended with 134 last ... FAILED\n"), "{printed}");
    }
}

#[test]
fn a_guest_that_the_emulator_ended_is_started_once_more() {
    let (printed, passes) = gate("moody", "slips");
    assert!(passes, "{printed}");
    assert!(printed.contains("Once more: ") && printed.contains("FLAKY: moody "), "{printed}");
}
