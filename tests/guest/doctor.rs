//! The doctor inside a guest, on a kernel whose driver is real.
//! Not here: what it says of other machines (`doctor`).

use crate::support::{Folder, binderperf};
use serde_json::Value;

#[test]
fn a_guests_driver_and_configuration_are_told_and_its_kernel_does_not_complain() {
    let _guest = crate::one_guest();
    let folder = Folder::new("guest-doctor");
    let out = folder.path("out");
    let called = binderperf(&[
        "vm",
        "--out",
        &out,
        "--",
        "doctor",
        "--klog-check",
        "--save",
        "snap",
        "--format",
        "json",
    ]);
    let start =
        called.stdout.find('{').unwrap_or_else(|| panic!("status {:?}: {}", called.code, called.stderr));
    let document: Value = serde_json::from_str(&called.stdout[start..]).expect("JSON");
    let check = |id: &str| {
        let checks = document["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}")).clone()
    };
    for (id, want) in [
        ("driver-missing", "ok"),
        ("driver-permission", "ok"),
        ("driver-kind", "ok"),
        ("binder-threads", "ok"),
        // Debian builds with UBSAN.
        ("kernel-sanitizers", "info"),
        ("rights-realtime", "ok"),
    ] {
        assert_eq!(check(id)["verdict"], want, "{}", check(id));
    }
    let source = &check("kernel-sanitizers")["evidence"][0]["source"];
    assert!(source.as_str().is_some_and(|source| source.contains("/boot/config-")), "{source}");
    assert!(!called.stderr.contains("the kernel complained"), "{}", called.stderr);
    let again = binderperf(&["doctor", "--from", &format!("{out}/snap"), "--format", "json"]);
    let there: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&there["release"], &there["class"]), (&document["release"], &document["class"]));
    for id in [
        "driver-missing",
        "driver-kind",
        "binder-threads",
        "kernel-sanitizers",
        "kernel-preemption",
        "cpu-idle-exit",
    ] {
        let checks = there["checks"].as_array().expect("checks");
        let elsewhere = checks.iter().find(|check| check["id"] == id).expect("the same probes");
        assert_eq!(elsewhere, &check(id), "the same is said elsewhere");
    }
}
