//! The kernel's binder driver: presence, permissions, variant.
//! Not here: its users (`users`), how to get one (`distribution`).
//! Facts: `driver::absence`; contract OPN-12, FS-01, SCH-08, SCH-09, IOC-07. Fine-grained locks
//! (`binder_proc_lock`, `binder_inner_proc_lock`): the series of June 2017, in 4.14, and as FROMLIST in Android's 4.4
//! and 4.9. Handle bitmap: commit 15d9da3f818c (6.11), in Rust 5ba71195a9cb (6.19). Page insertion without the mmap
//! lock: commits d1716b4b78fb and 9e2aa76549b9 (6.14). Namespaces: `include/linux/proc_ns.h`. Masks:
//! `binder_debug_mask` in binder.c.

use driver::absence::{Absence, modprobe};
use record::DriverKind;

use super::build::property;
use crate::distribution::{System, advice};
use crate::facts::Device;
use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::Release;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "driver-missing",
        looks_at: "presence of a binder driver in the kernel",
        proof: "grep binder /proc/filesystems /proc/misc; ls /dev/binder /dev/binderfs; modprobe -n -v binder_linux",
        grounds: Grounds::Cited {
            source: "drivers/android/Kconfig, ANDROID_BINDER_IPC",
            says: "a kernel without this option has no driver",
        },
        look: missing,
    },
    Probe {
        id: "driver-permission",
        looks_at: "permission to open the devices",
        proof: "ls -lL /dev/*binder /dev/binderfs/*binder",
        grounds: Grounds::Cited {
            source: "open(2), EACCES",
            says: "a device that may not be opened cannot be called through",
        },
        look: permission,
    },
    Probe {
        id: "driver-namespace",
        looks_at: "namespaces (containers) that affect the driver",
        proof: "ls -l /proc/self/ns",
        grounds: Grounds::Cited {
            source: "user_namespaces(7); Documentation/admin-guide/binderfs.rst",
            says: "capabilities hold inside the namespace only; a binderfs has its own devices",
        },
        look: namespace,
    },
    Probe {
        id: "driver-kind",
        looks_at: "C or Rust driver",
        proof: "ls -d /sys/kernel/tracing/events/*binder /sys/module/*binder*",
        grounds: Grounds::Measured {
            effect: "the Rust driver passes on no priority, the C driver nice values",
            command: "binderperf vm --kernel KERNEL -- conformance --filter SCH-",
        },
        look: kind,
    },
    Probe {
        id: "driver-locking",
        looks_at: "global lock, or a lock per process",
        proof: "uname -r",
        grounds: Grounds::Cited {
            source: "Android, Binder performance tests: what can affect latency",
            says: "fine-grained locking in the driver",
        },
        look: locking,
    },
    Probe {
        id: "driver-patches",
        looks_at: "known performance improvements that this version lacks",
        proof: "uname -r",
        grounds: Grounds::Cited {
            source: "Android, Binder performance tests: what can affect latency",
            says: "all performance patches of the driver; commits 15d9da3f818c, d1716b4b78fb, 9e2aa76549b9, 5ba71195a9cb say what each speeds up",
        },
        look: patches,
    },
    Probe {
        id: "driver-debug",
        looks_at: "debug messages of the driver",
        proof: "grep . /sys/module/binder*/parameters/*",
        grounds: Grounds::Measured {
            effect: "with all messages on, the median call of an emulated guest took 8 to 15 % longer in three pairs of runs",
            command: "binderperf vm --append binder_linux.debug_mask=0x7fff -- throughput binder",
        },
        look: debug,
    },
];

/// The known devices. A folder of copied files has no device nodes, only names.
fn devices(snapshot: &Snapshot) -> Option<&[Device]> {
    snapshot.facts().devices.as_deref()
}

/// Whether binderfs is mounted.
fn mounted(snapshot: &Snapshot) -> bool {
    let mounts = snapshot.text("proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(2) == Some("binder"))
}

/// Whether a driver's own list of file systems or devices can be read and does not have it.
fn is_unlisted(snapshot: &Snapshot, absence: &Absence) -> bool {
    let listed = match absence {
        Absence::BinderfsNotMounted => true,
        Absence::NoDeviceNode { devices } => !devices.is_empty(),
        _ => false,
    };
    !listed && ["proc/filesystems", "proc/misc"].iter().all(|file| snapshot.text(file).is_ok())
}

/// Nodes behind which a driver may be: those that were opened, or that only this user may not open.
fn with_driver(snapshot: &Snapshot) -> impl Iterator<Item = &Device> {
    devices(snapshot).unwrap_or_default().iter().filter(|device| !device.is_driverless())
}

/// Nodes without a driver.
fn driverless(snapshot: &Snapshot) -> impl Iterator<Item = &Device> {
    devices(snapshot).unwrap_or_default().iter().filter(|device| device.is_driverless())
}

/// Why there is no driver; `None` if there is one, accessible or not. Nothing is concluded from a file that was not
/// copied or could not be read.
fn absence(snapshot: &Snapshot) -> Result<Option<Absence>, Unavailable> {
    if with_driver(snapshot).any(|device| device.refused.is_none()) || mounted(snapshot) {
        return Ok(None);
    }
    let absence = Absence::find(snapshot.root());
    if with_driver(snapshot).next().is_some() && !is_unlisted(snapshot, &absence) {
        return Ok(None);
    }
    // A folder copied by hand has no devices and mounts, though the machine may have had them.
    let in_place = match &absence {
        Absence::BinderfsNotMounted => !snapshot.root().exists("proc/self/mounts"),
        Absence::NoDeviceNode { devices } => !devices.is_empty() || !snapshot.root().exists("proc/misc"),
        _ => false,
    };
    if in_place && !snapshot.is_complete() {
        return Ok(None);
    }
    if !matches!(absence, Absence::BinderfsNotMounted) {
        // The driver, loaded or built in, shows in one of these. Every kernel has the first.
        snapshot.text("proc/filesystems")?;
        snapshot.maybe("proc/misc")?;
    }
    Ok(Some(absence))
}

/// Whether the kernel has a driver.
pub(super) fn present(snapshot: &Snapshot) -> Result<bool, Unavailable> {
    match absence(snapshot)? {
        None | Some(Absence::BinderfsNotMounted) => Ok(true),
        Some(Absence::NoDeviceNode { devices }) => Ok(!devices.is_empty()),
        Some(Absence::Unknown { .. }) if !snapshot.is_complete() => Err(unknown()),
        Some(_) => Ok(false),
    }
}

/// No copied file shows whether there is a driver.
fn unknown() -> Unavailable {
    Unavailable::absent("proc/filesystems, proc/misc or kernel configuration that tells of a driver")
}

fn missing(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let Some(why) = absence(snapshot)? else {
        return Ok(ProbeResult::fine("the kernel has a binder driver"));
    };
    let os_release = snapshot.text("etc/os-release").or_else(|_| snapshot.text("usr/lib/os-release"));
    let os_release = match property(snapshot, "ro.build.type") {
        Ok(Some(_)) => "ID=android".to_owned(),
        _ => os_release.unwrap_or_default(),
    };
    let release = snapshot.release();
    let system = System { os_release: &os_release, release: &release, in_container: in_container(snapshot) };
    let said = match &why {
        Absence::BinderfsNotMounted => {
            ProbeResult::info("the kernel has the driver, but no binderfs is mounted")
                .effect("binderperf as root mounts an instance of its own; other programs find no device")
                .seen("proc/filesystems", "nodev binder")
        }
        Absence::Unknown { .. } if release.is_empty() => {
            return Err(Unavailable::absent("proc/sys/kernel/osrelease"));
        }
        Absence::Unknown { .. } if !snapshot.is_complete() => return Err(unknown()),
        other => ProbeResult::warning(format!(
            "no binder driver: {}{}",
            cause(snapshot, other),
            nodes_without_driver(snapshot)
        ))
        .effect(
            "tests run on the embedded driver in user space: results do not describe this kernel's binder",
        )
        .seen("proc/sys/kernel/osrelease", &release),
    };
    let fix = match &why {
        Absence::ModuleNotInstalled { release, module } if !knows_modules(snapshot, release) => {
            format!("{} if it is installed, else {}", modprobe(module), advice(&why, system))
        }
        _ => advice(&why, system),
    };
    let nodes: Vec<&str> = driverless(snapshot).map(|device| device.path.as_str()).collect();
    let fix = match nodes.as_slice() {
        [] => fix,
        nodes => format!("{fix}; rm {}, so that no program takes it for one", nodes.join(" ")),
    };
    Ok(driverless(snapshot)
        .fold(said.fix(fix), |said, device| said.because(&device.path, left_behind(device))))
}

/// Whether it is known which modules of a kernel are installed.
fn knows_modules(snapshot: &Snapshot, release: &str) -> bool {
    snapshot.maybe(&format!("lib/modules/{release}/modules.dep")).is_ok()
}

/// A node without a driver, in words.
fn left_behind(device: &Device) -> String {
    format!("no driver behind this node: open gave {}", device.refused.as_deref().unwrap_or_default())
}

/// The nodes without a driver, as a clause.
fn nodes_without_driver(snapshot: &Snapshot) -> String {
    let each = driverless(snapshot).map(|device| format!("; {}: {}", device.path, left_behind(device)));
    each.collect()
}

/// Whether this is a container, whose kernel is its host's.
fn in_container(snapshot: &Snapshot) -> bool {
    let inner = |(name, first, _): &(&str, &str, &str)| {
        snapshot.link(&format!("proc/self/ns/{name}")).is_ok_and(|link| !link.contains(first))
    };
    let marks = [".dockerenv", "run/.containerenv"];
    marks.iter().any(|mark| snapshot.root().exists(mark)) || FIRST.iter().any(inner)
}

/// The cause; the remedy depends on the distribution.
fn cause(snapshot: &Snapshot, absence: &Absence) -> String {
    match absence {
        Absence::ModuleNotInstalled { release, .. } if !knows_modules(snapshot, release) => {
            format!(
                "kernel {release} has it as a module that is not loaded; whether it is installed cannot be told"
            )
        }
        Absence::NotBuilt { release } => {
            format!("kernel {release} was built without CONFIG_ANDROID_BINDER_IPC (not built)")
        }
        Absence::ModuleNotInstalled { release, .. } => {
            format!("kernel {release} has it as a module in a package that is not installed (extra package)")
        }
        Absence::ModuleNotLoaded { module } => {
            format!("its module {} is not loaded (not loaded)", module.display())
        }
        Absence::NoDeviceNode { devices } if devices.is_empty() => {
            "it is built in but created no device (no device node)".to_owned()
        }
        Absence::NoDeviceNode { devices } => {
            format!("its devices {} are missing in /dev (no device node)", devices.join(", "))
        }
        Absence::Unknown { release } => {
            format!("kernel {release} shows none, and neither its configuration nor its modules were found")
        }
        other => other.to_string(),
    }
}

fn permission(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    if devices(snapshot).is_none() {
        return Err(Unavailable::NotMeasured("permission to open the devices"));
    }
    let devices: Vec<&Device> = with_driver(snapshot).collect();
    let refused: Vec<&Device> = devices.iter().copied().filter(|device| device.refused.is_some()).collect();
    let [first, ..] = refused.as_slice() else {
        let others = nodes_without_driver(snapshot);
        return Ok(match devices.len() {
            0 => ProbeResult::fine(format!("there is no device of a driver{others}")),
            count => ProbeResult::fine(format!("all {count} devices can be opened{others}")),
        });
    };
    let why = first.refused.as_deref().unwrap_or_default();
    let Device { path, mode, uid, .. } = first;
    let said = match refused.len() == devices.len() {
        true => ProbeResult::warning(format!("no binder device can be opened: {path}: {why}"))
            .effect("tests run on the embedded driver: results do not describe this kernel's binder"),
        false => ProbeResult::info(format!("some binder devices cannot be opened: {path}: {why}"))
            .effect("these contexts cannot be measured"),
    };
    let fix = match first.errno() {
        "EACCES" | "EPERM" => format!(
            "run as root, or chmod 666 {path}; on Android also `setenforce 0`, or an SELinux domain with the permission"
        ),
        errno => format!(
            "find out why the driver refuses ({errno} is no matter of permission): dmesg | grep -i binder"
        ),
    };
    Ok(said.fix(fix).because(path, format!("mode {mode:o}, owner {uid}: {why}")))
}

/// Inode numbers of the initial namespaces, which are constant.
const FIRST: [(&str, &str, &str); 3] = [
    (
        "pid",
        "4026531836",
        "BINDER_FREEZE expects pids of the initial namespace, and senders outside this namespace have pid 0",
    ),
    (
        "user",
        "4026531837",
        "capabilities are valid inside only: real-time priorities and nice below 0 may be refused",
    ),
    ("ipc", "4026531839", "a binderfs mounted here has separate contexts: services outside are not visible"),
];

fn namespace(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (mut names, mut effects, mut evidence, mut seen) = (Vec::new(), Vec::new(), Vec::new(), false);
    for (name, first, effect) in FIRST {
        let path = format!("proc/self/ns/{name}");
        let link = match snapshot.link(&path) {
            // A kernel without this type of namespace.
            Err(Unavailable::Absent(_)) if snapshot.is_complete() => continue,
            link => link?,
        };
        seen = true;
        if !link.contains(first) {
            names.push(name);
            effects.push(effect);
            evidence.push((path, link));
        }
    }
    if names.is_empty() && !seen {
        return Err(Unavailable::absent("proc/self/ns"));
    }
    if names.is_empty() {
        return Ok(ProbeResult::fine("these are the machine's own namespaces"));
    }
    let said = ProbeResult::info(format!("this is a container: it has its own {} namespace", names.join(", ")))
        .effect(effects.join("; "))
        .fix("load the driver on the host, and pass its device into the container or mount binderfs inside; measure on the host to compare");
    Ok(evidence.iter().fold(said, |said, (path, link)| said.seen(path, link)))
}

fn kind(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    if !present(snapshot)? {
        return Ok(ProbeResult::fine("no kernel driver"));
    }
    let (rust, c) = ("sys/kernel/tracing/events/rust_binder", "sys/kernel/tracing/events/binder");
    match host::kind(snapshot.root()) {
        DriverKind::KernelRust => Ok(ProbeResult::info("the driver is the one in Rust")
            .effect("up to mainline 7.2 it passes on no priority, neither nice nor real-time: inheritance tests show \
                     none, as expected; its trace events are in the group rust_binder, which atrace and Perfetto do not know")
            .fix("for the C driver use a kernel with CONFIG_ANDROID_BINDER_IPC (a kernel has one of the two)")
            .seen(rust, "this event group, or the module rust_binder, exists")),
        DriverKind::KernelC => Ok(ProbeResult::fine("the driver is the one in C").seen(c, "this event group, or the module, exists")),
        _ => Err(unknown_kind()),
    }
}

fn unknown_kind() -> Unavailable {
    let why = "neither trace events nor modules show which driver it is (mount tracefs as root)";
    Unavailable::NotShown(why.to_owned())
}

/// Whether this is an Android kernel, which has backports that its version does not show.
fn is_android(snapshot: &Snapshot) -> Result<bool, Unavailable> {
    if snapshot.release().contains("-android") {
        return Ok(true);
    }
    match property(snapshot, "ro.build.type")? {
        None if !snapshot.is_complete() => Err(Unavailable::absent("getprop.txt")),
        kind => Ok(kind.is_some()),
    }
}

fn release(snapshot: &Snapshot) -> Result<Release, Unavailable> {
    let text = snapshot.release();
    match Release::parse(&text) {
        Release(0, _) => Err(Unavailable::absent("proc/sys/kernel/osrelease with a release number")),
        release => Ok(release),
    }
}

fn locking(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    if !present(snapshot)? {
        return Ok(ProbeResult::fine("no kernel driver"));
    }
    let release = release(snapshot)?;
    let old = release < Release(4, 14);
    let said = match (old, old && is_android(snapshot)?) {
        (false, _) => {
            ProbeResult::fine(format!("the driver of Linux {release} has a lock per process (since 4.14)"))
        }
        (true, true) => ProbeResult::info(format!(
            "Android's Linux {release}: check whether fine-grained locking was backported"
        ))
        .effect("with a global lock, pairs wait for each other and throughput does not grow with CPUs")
        .fix("grep binder_inner_proc_lock in the kernel's drivers/android/binder.c"),
        (true, false) => {
            ProbeResult::warning(format!("the driver of Linux {release} has one lock for all processes"))
                .effect("pairs wait for each other: throughput does not grow with CPUs, but tails do")
                .fix("Linux 4.14 or later")
        }
    };
    Ok(said.seen("proc/sys/kernel/osrelease", snapshot.release()))
}

/// Improvements: release, whether of the Rust driver, description.
const IMPROVEMENTS: [(Release, bool, &str); 3] = [
    (Release(6, 11), false, "handle allocation by bitmap (6.11): matters with thousands of references"),
    (
        Release(6, 14),
        false,
        "buffer pages inserted under a per-mapping lock (6.14): matters when many threads receive first or large \
         transactions",
    ),
    (Release(6, 19), true, "handle allocation by bitmap (6.19): matters with thousands of references"),
];

fn patches(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    if !present(snapshot)? {
        return Ok(ProbeResult::fine("no kernel driver"));
    }
    let release = release(snapshot)?;
    let rust = match host::kind(snapshot.root()) {
        DriverKind::KernelRust => true,
        DriverKind::KernelC => false,
        // Linux has had Rust since 6.1.
        _ if release < Release(6, 1) => false,
        _ => return Err(unknown_kind()),
    };
    let missing: Vec<&str> = IMPROVEMENTS
        .iter()
        .filter(|(since, of_rust, _)| *of_rust == rust && release < *since)
        .map(|(.., what)| *what)
        .collect();
    let said = match missing.as_slice() {
        [] => {
            ProbeResult::fine(format!("Linux {release} has all known performance improvements of the driver"))
        }
        some => ProbeResult::info(format!("Linux {release} lacks: {}", some.join("; ")))
            .effect("tests with many processes are slower; tests with one pair and small payloads hardly")
            .fix("a newer kernel, unless the vendor backported them (as Android's kernels may)"),
    };
    Ok(said.seen("proc/sys/kernel/osrelease", snapshot.release()))
}

fn debug(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    /// Messages about users' errors and failed transactions, which are on by default.
    const USUAL: u64 = 0b111;
    for module in ["binder", "binder_linux"] {
        let folder = format!("sys/module/{module}/parameters");
        let mask_file = format!("{folder}/debug_mask");
        let Some(mask) = snapshot.maybe_value::<u64>(&mask_file)? else { continue };
        let stop = snapshot.maybe_value::<u64>(&format!("{folder}/stop_on_user_error"))?.unwrap_or(0);
        let said = if mask & !USUAL != 0 {
            ProbeResult::warning(format!(
                "the driver writes debug messages to the kernel log (debug_mask {mask:#x})"
            ))
            .effect("calls that write messages are slower, much slower with a serial console")
            .fix(format!("echo 7 > /{mask_file}"))
        } else if stop != 0 {
            ProbeResult::warning("the driver stops processes after errors (stop_on_user_error)")
                .effect("a test that provokes an error hangs")
                .fix(format!("echo 0 > /{folder}/stop_on_user_error"))
        } else {
            ProbeResult::fine("the driver writes only its usual messages")
        };
        return Ok(said.seen(&mask_file, mask.to_string()));
    }
    Ok(ProbeResult::fine("no driver with debug messages"))
}
