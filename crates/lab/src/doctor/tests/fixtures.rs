//! Room: snapshots of whole systems, and everything that must be said of them.
//! Not here: machines of a few files (beside the probes). Where the systems come from: `systems/README.md`.

use std::path::PathBuf;

use super::super::*;
use record::checkup::Verdict::{self, Error, Info, Unknown, Warning};

/// What is said of a system but for what is fine, in the order of the catalogue.
type Told = &'static [(&'static str, Verdict)];

const SYSTEMS: &[(&str, &str, Told)] = &[
    ("guest-c-7.2", "7.2.13", &[("debug-build", Warning), ("cpu-idle-exit", Warning), ("emulation", Error)]),
    (
        "guest-debian-7.2",
        "7.2.13+deb14-amd64",
        &[
            ("debug-build", Warning),
            ("driver-features", Unknown),
            ("kernel-preemption", Info),
            ("mitigations", Info),
            ("kernel-sanitizers", Info),
            ("kernel-memory-debug", Info),
            ("sched-autogroup", Info),
            ("cpu-idle-exit", Warning),
            ("emulation", Error),
            ("pressure-cpu", Warning),
        ],
    ),
    (
        "guest-rust-7.2",
        "7.2.13",
        &[
            ("debug-build", Warning),
            ("driver-kind", Info),
            ("driver-features", Info),
            ("cpu-idle-exit", Warning),
            ("emulation", Error),
        ],
    ),
    (
        "microvm-6.18",
        "6.18.44-microvm",
        &[
            ("debug-build", Warning),
            ("driver-missing", Warning),
            ("kernel-preemption", Warning),
            ("mitigations", Info),
            ("sched-rt-group", Info),
            ("sched-autogroup", Info),
            ("virtualisation", Info),
            ("load", Warning),
            ("pressure-cpu", Error),
            ("irq-placement", Info),
        ],
    ),
    (
        "synthetic-phone-eng",
        "6.6.30-android15-8-gabcdef012345",
        &[
            ("android-build", Warning),
            ("driver-permission", Info),
            ("driver-patches", Info),
            ("driver-features", Info),
            ("binder-users", Info),
            ("binder-threads", Warning),
            ("binder-backlog", Info),
            ("kernel-taint", Info),
            ("kernel-tracing", Info),
            ("mitigations", Unknown),
            ("kernel-sanitizers", Info),
            ("kernel-lock-debug", Warning),
            ("kernel-memory-debug", Info),
            ("sched-energy", Info),
            ("cpu-asymmetry", Info),
            ("cgroup-uclamp", Warning),
            ("cpu-governor", Warning),
            ("cpu-frequency-limit", Warning),
            ("cpu-idle-states", Warning),
            ("cpu-idle-exit", Warning),
            ("cpu-offline", Warning),
            ("load", Warning),
            ("pressure-cpu", Warning),
            ("irq-placement", Info),
            ("thermal", Warning),
            ("swap-used", Info),
            ("rights-realtime", Warning),
            ("security-policy", Info),
        ],
    ),
    (
        "synthetic-phone-old",
        "4.9.270-perf+",
        &[
            ("debug-build", Unknown),
            ("driver-permission", Unknown),
            ("driver-namespace", Unknown),
            ("driver-kind", Unknown),
            ("driver-locking", Info),
            ("driver-patches", Info),
            ("driver-features", Unknown),
            ("driver-debug", Unknown),
            ("binder-users", Unknown),
            ("binder-threads", Unknown),
            ("binder-buffers", Unknown),
            ("binder-backlog", Unknown),
            ("kernel-version", Info),
            ("kernel-taint", Unknown),
            ("kernel-tracing", Unknown),
            ("mitigations", Unknown),
            ("kernel-config", Info),
            ("kernel-sanitizers", Unknown),
            ("kernel-lock-debug", Unknown),
            ("kernel-memory-debug", Unknown),
            ("kernel-latency-tracers", Unknown),
            ("kernel-hz", Unknown),
            ("sched-rt-group", Unknown),
            ("sched-ext", Unknown),
            ("sched-autogroup", Unknown),
            ("sched-energy", Unknown),
            ("cpu-asymmetry", Unknown),
            ("cpu-isolation", Unknown),
            ("cpu-affinity", Unknown),
            ("cgroup-cpu", Unknown),
            ("cgroup-uclamp", Unknown),
            ("cpu-governor", Warning),
            ("cpu-frequency-limit", Unknown),
            ("cpu-boost", Unknown),
            ("cpu-idle-states", Unknown),
            ("cpu-idle-exit", Unknown),
            ("cpu-offline", Warning),
            ("cpu-smt", Unknown),
            ("numa", Unknown),
            ("emulation", Unknown),
            ("steal-time", Unknown),
            ("clock-source", Unknown),
            ("clock-cost", Unknown),
            ("pressure-cpu", Unknown),
            ("pressure-memory", Unknown),
            ("pressure-io", Unknown),
            ("irq-placement", Unknown),
            ("thermal", Unknown),
            ("memory-free", Warning),
            ("rights-realtime", Unknown),
            ("rights-nice", Unknown),
            ("open-files", Unknown),
            ("tracefs", Unknown),
            ("security-policy", Unknown),
        ],
    ),
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/doctor/tests/systems").join(name)
}

#[test]
fn each_system_is_told_of_as_it_is() {
    let mut wrong = Vec::new();
    for (name, release, want) in SYSTEMS {
        let checkup = examine(&Snapshot::open(&folder(name)).expect("a snapshot"));
        let told = checkup.checks.iter().filter(|check| check.verdict != Verdict::Ok);
        let told: Vec<(&str, Verdict)> = told.map(|check| (check.id.as_str(), check.verdict)).collect();
        if told != *want || checkup.release != *release {
            wrong.push(format!("{name} ({}): {told:?}", checkup.release));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_system_in_the_folder_is_told_of_and_names_no_owner() {
    let mut names: Vec<String> = std::fs::read_dir(folder(""))
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    let mut known: Vec<&str> = SYSTEMS.iter().map(|(name, ..)| *name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for name in names {
        assert!(!folder(&name).join("proc/sys/kernel/hostname").exists(), "{name} names its host");
    }
}

#[test]
fn words_of_a_few_systems() {
    let said = |system: &str, id: &str| {
        let checkup = examine(&Snapshot::open(&folder(system)).expect("a snapshot"));
        let check = checkup.checks.into_iter().find(|check| check.id == id).expect("a check");
        format!("{}; {}", check.text, check.fix.unwrap_or_default())
    };
    for (system, id, want) in [
        ("microvm-6.18", "driver-missing", "(not built)"),
        ("microvm-6.18", "driver-missing", "Debian's linux-image-amd64"),
        ("guest-rust-7.2", "driver-kind", "in Rust"),
        ("guest-c-7.2", "driver-kind", "in C"),
        ("guest-debian-7.2", "kernel-preemption", "lazy"),
        ("synthetic-phone-eng", "binder-threads", "1500 (binder)"),
        ("synthetic-phone-eng", "cpu-asymmetry", "3 capacities"),
        ("synthetic-phone-old", "driver-locking", "backported"),
    ] {
        assert!(said(system, id).contains(want), "{system} {id}: {}", said(system, id));
    }
}
