//! Room: the kernel's binder driver: whether it is there and may be used, which one it is, what it has.
//! Not here: who uses it (`users`), the way to one on each distribution (`distribution`).
//! Facts: `driver::absence`; contract OPN-12, FS-01, FS-06, SCH-08, SCH-09, IOC-07. The locks of binder.c
//! (`binder_proc_lock`, `binder_inner_proc_lock`) came with the series of June 2017 into 4.14, and as FROMLIST
//! into Android's 4.4 and 4.9. Bitmap of handles: commit 15d9da3f818c (6.11), in Rust 5ba71195a9cb (6.19). Pages
//! put in without the whole address space locked: commits d1716b4b78fb and 9e2aa76549b9 (6.14).
//! Namespaces: `include/linux/proc_ns.h`. Masks: `binder_debug_mask` in binder.c.

use driver::absence::Absence;
use record::DriverKind;

use super::build::property;
use crate::conformance::Release;
use crate::doctor::distribution::advice;
use crate::doctor::facts::Device;
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};
use crate::host;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "driver-missing",
        looks_at: "whether the kernel has a binder driver, and what is missing",
        source: "/proc/filesystems, /proc/misc, module folder, kernel configuration",
        proof: "grep binder /proc/filesystems /proc/misc; ls /dev/binder /dev/binderfs; modprobe -n -v binder_linux",
        look: missing,
    },
    Probe {
        id: "driver-permission",
        looks_at: "whether its devices may be opened",
        source: "open(2) of each device",
        proof: "ls -lL /dev/*binder /dev/binderfs/*binder",
        look: permission,
    },
    Probe {
        id: "driver-namespace",
        looks_at: "whether this is a container that sees the driver in its own way",
        source: "include/linux/proc_ns.h; contract IOC-07",
        proof: "ls -l /proc/self/ns",
        look: namespace,
    },
    Probe {
        id: "driver-kind",
        looks_at: "which driver it is: in C, in Rust",
        source: "groups of trace events, modules; contract SCH-01 to SCH-09",
        proof: "ls -d /sys/kernel/tracing/events/*binder /sys/module/*binder*",
        look: kind,
    },
    Probe {
        id: "driver-locking",
        looks_at: "whether the driver has one lock for all, or one for each process",
        source: "binder.c: binder_proc_lock, binder_inner_proc_lock (4.14)",
        proof: "uname -r",
        look: locking,
    },
    Probe {
        id: "driver-patches",
        looks_at: "known improvements of the driver's speed that this version is too old for",
        source: "commits 15d9da3f818c (6.11), d1716b4b78fb and 9e2aa76549b9 (6.14), 5ba71195a9cb (6.19)",
        proof: "uname -r",
        look: patches,
    },
    Probe {
        id: "driver-features",
        looks_at: "the features that binderfs tells of",
        source: "binderfs.c: binderfs_features; contract FS-06",
        proof: "grep . /dev/binderfs/features/*",
        look: features,
    },
    Probe {
        id: "driver-debug",
        looks_at: "messages of the driver's that were asked for",
        source: "binder.c: binder_debug_mask, binder_stop_on_user_error",
        proof: "grep . /sys/module/binder*/parameters/*",
        look: debug,
    },
];

/// The devices that are known of; those that a folder of copied files can show are only names.
fn devices(snapshot: &Snapshot) -> Option<&[Device]> {
    snapshot.facts().devices.as_deref()
}

/// Whether an instance of binderfs is mounted.
fn mounted(snapshot: &Snapshot) -> bool {
    let mounts = snapshot.text("proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(2) == Some("binder"))
}

/// Why there is no driver; `None` if there is one, reachable or not.
fn absence(snapshot: &Snapshot) -> Option<Absence> {
    if devices(snapshot).is_some_and(|devices| !devices.is_empty()) || mounted(snapshot) {
        return None;
    }
    for file in ["proc/filesystems", "proc/misc", "proc/sys/kernel/osrelease"] {
        // Asked for here, so that a snapshot holds them.
        let _ = snapshot.exists(file);
    }
    let absence = Absence::find(snapshot.root());
    // Devices and mounts are not copied by hand: a kernel that has them may have them in place.
    let in_place = match &absence {
        Absence::BinderfsNotMounted => !snapshot.exists("proc/self/mounts"),
        Absence::NoDeviceNode { devices } => !devices.is_empty(),
        _ => false,
    };
    match in_place && !snapshot.is_complete() {
        true => None,
        false => Some(absence),
    }
}

/// Whether the kernel has a driver at all.
fn present(snapshot: &Snapshot) -> Result<bool, Unread> {
    match absence(snapshot) {
        None | Some(Absence::BinderfsNotMounted) => Ok(true),
        Some(Absence::NoDeviceNode { devices }) => Ok(!devices.is_empty()),
        Some(Absence::Unknown { .. }) if !snapshot.is_complete() => Err(unknown()),
        Some(_) => Ok(false),
    }
}

/// Nothing that was copied tells of a driver.
fn unknown() -> Unread {
    Unread::Absent("proc/filesystems, proc/misc or kernel configuration that tells of a driver".to_owned())
}

fn missing(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some(why) = absence(snapshot) else {
        return Ok(Said::fine("the kernel has a binder driver"));
    };
    let os_release = snapshot.text("etc/os-release").or_else(|_| snapshot.text("usr/lib/os-release"));
    let os_release = match property(snapshot, "ro.build.type") {
        Ok(Some(_)) => "ID=android".to_owned(),
        _ => os_release.unwrap_or_default(),
    };
    let release = snapshot.release();
    let said = match &why {
        Absence::BinderfsNotMounted => Said::info("the kernel has the driver, and no binderfs is mounted")
            .effect("binderperf as root makes an instance of its own; other programs find no device")
            .seen("proc/filesystems", "nodev binder"),
        Absence::Unknown { .. } if release.is_empty() => {
            return Err(Unread::Absent("proc/sys/kernel/osrelease".to_owned()));
        }
        Absence::Unknown { .. } if !snapshot.is_complete() => return Err(unknown()),
        other => Said::warning(format!("no binder driver: {}", cause(other)))
            .effect(
                "tests run on the embedded driver in user space: its numbers are not this kernel's binder",
            )
            .seen("proc/sys/kernel/osrelease", &release),
    };
    Ok(said.fix(advice(&why, &os_release, &release)))
}

/// The cause alone; what to do depends on the distribution.
fn cause(absence: &Absence) -> String {
    match absence {
        Absence::NotBuilt { release } => {
            format!("kernel {release} was built without CONFIG_ANDROID_BINDER_IPC (not built)")
        }
        Absence::ModuleNotInstalled { release, .. } => {
            format!(
                "kernel {release} has it as a module that is in a package which is not installed (extra package)"
            )
        }
        Absence::ModuleNotLoaded { module } => {
            format!("its module {} is not loaded (not loaded)", module.display())
        }
        Absence::NoDeviceNode { devices } if devices.is_empty() => {
            "it is built in and made no device (no device node)".to_owned()
        }
        Absence::NoDeviceNode { devices } => {
            format!("it has the devices {} and /dev has none of them (no device node)", devices.join(", "))
        }
        Absence::Unknown { release } => format!(
            "kernel {release} shows none, and neither its configuration nor its modules are to be found"
        ),
        other => other.to_string(),
    }
}

fn permission(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some(devices) = devices(snapshot) else {
        return Err(Unread::NotMeasured("who may open the devices"));
    };
    let refused: Vec<&Device> = devices.iter().filter(|device| device.refused.is_some()).collect();
    let [first, ..] = refused.as_slice() else {
        return Ok(match devices.len() {
            0 => Said::fine("there is no device to be refused"),
            count => Said::fine(format!("all {count} devices can be opened")),
        });
    };
    let why = first.refused.as_deref().unwrap_or_default();
    let Device { path, mode, uid, .. } = first;
    let said = match refused.len() == devices.len() {
        true => Said::warning(format!("no binder device may be opened: {path}: {why}"))
            .effect("tests run on the embedded driver: its numbers are not this kernel's binder"),
        false => Said::info(format!("some binder devices may not be opened: {path}: {why}"))
            .effect("contexts of these names cannot be measured"),
    };
    Ok(said
        .fix(format!(
            "run as root, or chmod 666 {path}; on Android also `setenforce 0`, or an SELinux domain that may"
        ))
        .because(path, format!("mode {mode:o}, owner {uid}: {why}")))
}

/// The numbers of the machine's own namespaces, which never change.
const FIRST: [(&str, &str, &str); 3] = [
    (
        "pid",
        "4026531836",
        "BINDER_FREEZE takes pids of the machine's own namespace, and senders from outside have pid 0",
    ),
    ("user", "4026531837", "rights count inside only: real-time priorities and nice below 0 may be refused"),
    ("ipc", "4026531839", "a binderfs mounted here has contexts of its own: services outside are not met"),
];

fn namespace(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (mut names, mut effects, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    for (name, first, effect) in FIRST {
        let path = format!("proc/self/ns/{name}");
        let link = match snapshot.link(&path) {
            // A kernel without this kind of namespace has one for all.
            Err(Unread::Absent(_)) if snapshot.is_complete() => continue,
            link => link?,
        };
        if !link.contains(first) {
            names.push(name);
            effects.push(effect);
            evidence.push((path, link));
        }
    }
    if names.is_empty() {
        return Ok(Said::fine("these are the machine's own namespaces"));
    }
    let said = Said::info(format!("this is a container: it has its own {} namespace", names.join(", ")))
        .effect(effects.join("; "))
        .fix("load the driver on the host, and hand in its device or mount binderfs inside; measure on the host to compare");
    Ok(evidence.iter().fold(said, |said, (path, link)| said.seen(path, link)))
}

fn kind(snapshot: &Snapshot) -> Result<Said, Unread> {
    if !present(snapshot)? {
        return Ok(Said::fine("no kernel driver to tell of"));
    }
    let (rust, c) = ("sys/kernel/tracing/events/rust_binder", "sys/kernel/tracing/events/binder");
    match host::kind(&snapshot.as_root()) {
        DriverKind::KernelRust => Ok(Said::info("the driver in Rust")
            .effect("mainline's, up to 7.2, hands on no priority at all, neither nice nor real-time: inheritance tests show \
                     none, as expected; its trace events are in the group rust_binder, which atrace and Perfetto do not know")
            .fix("a kernel with CONFIG_ANDROID_BINDER_IPC (one kernel has one driver) shows the driver in C")
            .seen(rust, "there is such a group of trace events, or the module rust_binder")),
        DriverKind::KernelC => Ok(Said::fine("the driver in C").seen(c, "there is such a group of trace events, or the module")),
        _ => Err(Unread::Failed(
            c.to_owned(),
            "neither trace events nor a module tell which driver it is (mount tracefs as root)".to_owned(),
        )),
    }
}

/// Whether this is one of Android's kernels, which have patches that their version does not tell.
fn is_android(snapshot: &Snapshot) -> bool {
    snapshot.release().contains("-android") || matches!(property(snapshot, "ro.build.type"), Ok(Some(_)))
}

fn release(snapshot: &Snapshot) -> Result<Release, Unread> {
    let text = snapshot.release();
    match Release::parse(&text) {
        Release(0, _) => Err(Unread::Absent("proc/sys/kernel/osrelease that is a release".to_owned())),
        release => Ok(release),
    }
}

fn locking(snapshot: &Snapshot) -> Result<Said, Unread> {
    if !present(snapshot)? {
        return Ok(Said::fine("no kernel driver to tell of"));
    }
    let release = release(snapshot)?;
    let said = match (release < Release(4, 14), is_android(snapshot)) {
        (false, _) => Said::fine(format!("Linux {release} has a driver with a lock for each process (since 4.14)")),
        (true, true) => Said::info(format!("Linux {release} of Android's: look whether fine-grained locking was backported"))
            .effect("with one lock for all of binder, pairs wait for each other and throughput does not grow with CPUs")
            .fix("grep binder_inner_proc_lock in the kernel's drivers/android/binder.c"),
        (true, false) => Said::warning(format!("Linux {release} has a driver with one lock for all of binder"))
            .effect("pairs wait for each other: throughput does not grow with CPUs, and tails do")
            .fix("Linux 4.14 or later"),
    };
    Ok(said.seen("proc/sys/kernel/osrelease", snapshot.release()))
}

/// What came when, to the driver in C or in Rust.
const IMPROVEMENTS: [(Release, bool, &str); 3] = [
    (Release(6, 11), false, "handles found in a bitmap (6.11): matters with thousands of references"),
    (
        Release(6, 14),
        false,
        "buffer pages put in under a lock of their own mapping (6.14): matters when many threads receive first or large \
         transactions",
    ),
    (Release(6, 19), true, "handles found in a bitmap (6.19): matters with thousands of references"),
];

fn patches(snapshot: &Snapshot) -> Result<Said, Unread> {
    if !present(snapshot)? {
        return Ok(Said::fine("no kernel driver to tell of"));
    }
    let release = release(snapshot)?;
    let rust = host::kind(&snapshot.as_root()) == DriverKind::KernelRust;
    let missing: Vec<&str> = IMPROVEMENTS
        .iter()
        .filter(|(since, of_rust, _)| *of_rust == rust && release < *since)
        .map(|(.., what)| *what)
        .collect();
    let said = match missing.as_slice() {
        [] => Said::fine(format!("Linux {release} has all improvements of the driver's speed that are known here")),
        some => Said::info(format!("Linux {release} is older than: {}", some.join("; ")))
            .effect("the tests with one pair and small payloads are hardly touched; crowds are")
            .fix("a newer kernel, unless its maker backported them (Android's and vendors' kernels may have them)"),
    };
    Ok(said.seen("proc/sys/kernel/osrelease", snapshot.release()))
}

/// Features that binderfs of the newest kernel known here (7.2) tells of.
const FEATURES: [&str; 4] =
    ["extended_error", "freeze_notification", "oneway_spam_detection", "transaction_report"];

fn features(snapshot: &Snapshot) -> Result<Said, Unread> {
    if !present(snapshot)? {
        return Ok(Said::fine("no kernel driver to tell of"));
    }
    let Some(found) = &snapshot.facts().features else {
        return Err(Unread::Absent(
            "dev/binderfs/features: no binderfs is seen to be mounted there".to_owned(),
        ));
    };
    let missing: Vec<&str> =
        FEATURES.iter().copied().filter(|feature| !found.iter().any(|found| found == feature)).collect();
    let said = match missing.as_slice() {
        [] => Said::fine(format!("binderfs tells of {}", found.join(", "))),
        some => Said::info(format!("binderfs does not tell of {}", some.join(", "))).effect(
            "nothing for the times; failures and freezes are told in less detail (the Rust driver has no \
                     transaction_report)",
        ),
    };
    Ok(said.because("binderfs' features", found.join(" ")))
}

fn debug(snapshot: &Snapshot) -> Result<Said, Unread> {
    /// Messages about users' errors and failed transactions, which are on by default.
    const USUAL: u64 = 0b111;
    for module in ["binder", "binder_linux"] {
        let folder = format!("sys/module/{module}/parameters");
        let mask_file = format!("{folder}/debug_mask");
        let Some(mask) = snapshot.maybe_value::<u64>(&mask_file)? else { continue };
        let stop = snapshot.maybe_value::<u64>(&format!("{folder}/stop_on_user_error"))?.unwrap_or(0);
        let said = if mask & !USUAL != 0 {
            Said::warning(format!("the driver writes messages to the kernel's log (debug_mask {mask:#x})"))
                .effect("calls are slower where they write, much slower with a serial console")
                .fix(format!("echo 7 > /{mask_file}"))
        } else if stop != 0 {
            Said::warning("the driver stops processes that misuse it (stop_on_user_error)")
                .effect("a test that provokes an error hangs")
                .fix(format!("echo 0 > /{folder}/stop_on_user_error"))
        } else {
            Said::fine("the driver writes its usual messages only")
        };
        return Ok(said.seen(&mask_file, mask.to_string()));
    }
    Ok(Said::fine("no driver that can be asked for messages"))
}

#[cfg(test)]
#[path = "driver_cases.rs"]
mod cases;

#[cfg(test)]
pub(super) use cases::CASES;
