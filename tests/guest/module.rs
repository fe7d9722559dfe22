//! `vm build-driver`: the driver of a patch, as a module, and bugs that Linux's driver had, switched on in it.
//! Not here: whole kernels (`built`), the table of all bugs (`tools/hindcast`).

use crate::support::ktap::{Line, results};
use crate::support::{Folder, binderperf};

const PATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/kernel/hindcast/c.patch");

#[test]
fn a_patched_driver_boots_and_its_bugs_are_found() {
    let build = ["vm", "build-driver", "--kernel", "7.2", "--patch", PATCH];
    let built = binderperf(&build).ended(0);
    let module = built.stdout.trim();
    let again = binderperf(&build).ended(0);
    assert!(again.stderr.contains("built before") && again.stdout.trim() == module, "{}", again.stderr);
    let items = "IOC-10,FRZ-10,FS-01";
    let run = |hindcast: &str| {
        let boot = ["vm", "--kernel", "7.2", "--smp", "1", "--driver-module", module, "--append", hindcast];
        binderperf(&[&boot[..], &["--", "conformance", "--driver", "kernel", "--filter", items]].concat())
    };
    // With binderfs, which Debian leaves out.
    let found = results(&run("binder_linux.hindcast=0").ended(0).stdout).1;
    assert!(found.values().all(|end| *end == Line::Ok), "{found:?}");
    // Numbers 4 and 5 of c.tsv.
    let found = results(&run("binder_linux.hindcast=48").ended(1).stdout).1;
    assert_eq!(
        ["IOC-10", "FRZ-10", "FS-01"].map(|id| found[id].clone()),
        [Line::NotOk, Line::NotOk, Line::Ok]
    );
}

#[test]
fn a_patch_that_does_not_apply_is_named_with_its_hunk() {
    let folder = Folder::new("module-patch");
    let text = std::fs::read_to_string(PATCH).expect("the patch");
    let path = folder.path("bad.patch");
    // A line that it takes away: with other lines around it, a hunk still applies.
    let other = text.replacen("-\t    thread->pid == current->pid", "-\t    thread->pid != current->pid", 1);
    assert_ne!(other, text);
    std::fs::write(&path, other).expect("written");
    let called = binderperf(&["vm", "build-driver", "--kernel", "7.2", "--patch", &path]).ended(2);
    assert!(
        called.stderr.contains("does not apply") && called.stderr.contains("binder.c Hunk #2 FAILED"),
        "{}",
        called.stderr
    );
}
