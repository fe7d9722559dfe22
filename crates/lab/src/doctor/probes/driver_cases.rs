//! Room: machines with and without a binder driver, and what the probes must say of each.

use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

const RELEASE: &str = "proc/sys/kernel/osrelease";
const C_EVENTS: (&str, &str) = ("sys/kernel/tracing/events/binder/enable", "0\n");
const RUST_EVENTS: (&str, &str) = ("sys/kernel/tracing/events/rust_binder/enable", "0\n");
const BINDERFS: (&str, &str) = ("proc/filesystems", "nodev\tbinder\n");
const NS_PID: &str = "proc/self/ns/pid";
const NS_USER: (&str, &str) = ("proc/self/ns/user", "user:[4026531837]");
const NS_IPC: (&str, &str) = ("proc/self/ns/ipc", "ipc:[4026531839]");
const MASK: &str = "sys/module/binder/parameters/debug_mask";
const DEVICE: &str = r#""devices":[{"path":"/dev/binder","mode":438,"uid":0,"refused":null}]"#;
const REFUSED: &str = r#""devices":[{"path":"/dev/binder","mode":384,"uid":0,"refused":"EACCES"}]"#;
const BOTH: &str = r#""devices":[{"path":"/dev/binder","mode":384,"uid":0,"refused":"EACCES"},{"path":"/dev/hwbinder","mode":438,"uid":0,"refused":null}]"#;

pub(in crate::doctor) const CASES: &[Case] = &[
    case("driver-missing", Ok, "has a binder driver", &[(FACTS, DEVICE)]),
    case("driver-missing", Ok, "", &[("proc/self/mounts", "binder /dev/binderfs binder rw 0 0\n")]),
    case(
        "driver-missing",
        Warning,
        "(not built)",
        &[(RELEASE, "6.18.1"), ("proc/config", "# CONFIG_ANDROID_BINDER_IPC is not set\n")],
    ),
    case(
        "driver-missing",
        Warning,
        "(extra package)",
        &[
            (RELEASE, "6.8.0-1-generic"),
            ("boot/config-6.8.0-1-generic", "CONFIG_ANDROID_BINDER_IPC=m\n"),
            ("etc/os-release", "ID=ubuntu\n"),
        ],
    ),
    case(
        "driver-missing",
        Warning,
        "(not loaded)",
        &[
            (RELEASE, "6.1.0"),
            ("lib/modules/6.1.0/modules.dep", "kernel/binder_linux.ko.xz:\n"),
            ("lib/modules/6.1.0/kernel/binder_linux.ko.xz", ""),
        ],
    ),
    case("driver-missing", Info, "no binderfs", &[BINDERFS]),
    case(
        "driver-missing",
        Warning,
        "(no device node)",
        &[(RELEASE, "6.1.0"), ("proc/misc", " 58 anbox-binder\n"), (FACTS, r#""devices":[]"#)],
    ),
    case("driver-missing", Warning, "shows none", &[(RELEASE, "5.10.102-standard-WSL2")]),
    case("driver-missing", Unknown, "osrelease", &[]),
    case("driver-permission", Warning, "EACCES", &[(FACTS, REFUSED)]),
    case("driver-permission", Info, "some", &[(FACTS, BOTH)]),
    case("driver-permission", Ok, "all 1", &[(FACTS, DEVICE)]),
    case("driver-permission", Ok, "no device", &[(FACTS, r#""devices":[]"#)]),
    case("driver-permission", Unknown, "not measured", &[]),
    case("driver-namespace", Ok, "own namespaces", &[(NS_PID, "pid:[4026531836]"), NS_USER, NS_IPC]),
    case("driver-namespace", Info, "own pid namespace", &[(NS_PID, "pid:[4026532201]"), NS_USER, NS_IPC]),
    case("driver-namespace", Ok, "own namespaces", &[(NS_PID, "pid:[4026531836]")]),
    case("driver-namespace", Info, "own user namespace", &[("proc/self/ns/user", "user:[4026532500]")]),
    case("driver-kind", Ok, "in C", &[C_EVENTS, BINDERFS]),
    case("driver-kind", Info, "in Rust", &[RUST_EVENTS, BINDERFS]),
    case("driver-kind", Unknown, "tracefs", &[BINDERFS]),
    case("driver-kind", Ok, "no kernel driver", &[]),
    case("driver-locking", Warning, "one lock", &[BINDERFS, (RELEASE, "4.9.1")]),
    case("driver-locking", Info, "backported", &[BINDERFS, (RELEASE, "4.9.1-android-8")]),
    case("driver-locking", Ok, "since 4.14", &[BINDERFS, (RELEASE, "4.14.0")]),
    case("driver-locking", Unknown, "release", &[BINDERFS, (RELEASE, "garbage")]),
    case("driver-patches", Info, "6.14", &[BINDERFS, C_EVENTS, (RELEASE, "6.12.0")]),
    case("driver-patches", Ok, "has all", &[BINDERFS, C_EVENTS, (RELEASE, "6.14.0")]),
    case("driver-patches", Info, "6.19", &[BINDERFS, RUST_EVENTS, (RELEASE, "6.18.0")]),
    case("driver-patches", Ok, "has all", &[BINDERFS, RUST_EVENTS, (RELEASE, "7.2.13")]),
    case(
        "driver-features",
        Info,
        "transaction_report",
        &[BINDERFS, (FACTS, r#""features":["extended_error"]"#)],
    ),
    case(
        "driver-features",
        Ok,
        "tells of",
        &[
            BINDERFS,
            (
                FACTS,
                r#""features":["extended_error","freeze_notification","oneway_spam_detection","transaction_report"]"#,
            ),
        ],
    ),
    case("driver-features", Unknown, "no binderfs", &[BINDERFS]),
    case("driver-debug", Warning, "0x1fff", &[(MASK, "8191\n")]),
    case("driver-debug", Ok, "usual", &[(MASK, "7\n")]),
    case(
        "driver-debug",
        Warning,
        "stop",
        &[(MASK, "7\n"), ("sys/module/binder/parameters/stop_on_user_error", "1\n")],
    ),
    case("driver-debug", Ok, "no driver", &[]),
    case("driver-debug", Unknown, "no value", &[(MASK, "many\n")]),
];
