//! The script that collects a machine's files without binderperf on it: plain `sh`, over `adb shell` or `ssh`.
//! Not here: collecting with binderperf (`save`), reading the archive (`archive`).
//! The lists are shell patterns; a test compares them with all that the probes read.

/// Files; `RELEASE` is the kernel's.
const FILES: &[&str] = &[
    ".dockerenv",
    "run/.containerenv",
    "boot/config-RELEASE",
    "lib/modules/RELEASE/config",
    "etc/os-release",
    "usr/lib/os-release",
    "system/build.prop",
    "vendor/build.prop",
    "dev/binderfs/binder_logs/stats",
    "sys/kernel/debug/binder/stats",
    "proc/cmdline",
    "proc/config",
    "proc/config.gz",
    "proc/cpuinfo",
    "proc/device-tree/model",
    "proc/filesystems",
    "proc/interrupts",
    "proc/loadavg",
    "proc/meminfo",
    "proc/misc",
    "proc/pressure/*",
    "proc/self/cgroup",
    "proc/self/limits",
    "proc/self/status",
    "proc/self/uid_map",
    "proc/stat",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/sched_*",
    "proc/sys/kernel/version",
    "proc/version",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/power_supply/*/capacity",
    "sys/class/power_supply/*/scope",
    "sys/class/power_supply/*/status",
    "sys/class/power_supply/*/type",
    "sys/class/thermal/cooling_device*/cur_state",
    "sys/class/thermal/cooling_device*/type",
    "sys/class/thermal/thermal_zone*/temp",
    "sys/class/thermal/thermal_zone*/trip_point_*_temp",
    "sys/class/thermal/thermal_zone*/trip_point_*_type",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/cpu[0-9]*/cpu_capacity",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_max_freq",
    "sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/disable",
    "sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/latency",
    "sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/name",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/cpu/vulnerabilities/*",
    "sys/devices/system/node/online",
    "sys/fs/selinux/enforce",
    "sys/hypervisor/type",
    "sys/kernel/debug/sched/features",
    "sys/kernel/debug/sched/preempt",
    "sys/kernel/debug/tracing/current_tracer",
    "sys/kernel/debug/tracing/events/enable",
    "sys/kernel/debug/tracing/instances/*/current_tracer",
    "sys/kernel/debug/tracing/instances/*/events/enable",
    "sys/kernel/debug/tracing/instances/*/tracing_on",
    "sys/kernel/debug/tracing/tracing_on",
    "sys/kernel/realtime",
    "sys/kernel/sched_ext/root/ops",
    "sys/kernel/sched_ext/state",
    "sys/kernel/tracing/current_tracer",
    "sys/kernel/tracing/events/enable",
    "sys/kernel/tracing/instances/*/current_tracer",
    "sys/kernel/tracing/instances/*/events/enable",
    "sys/kernel/tracing/instances/*/tracing_on",
    "sys/kernel/tracing/tracing_on",
    "sys/module/binder*/parameters/debug_mask",
    "sys/module/binder*/parameters/stop_on_user_error",
];

/// Folders of which only the existence matters.
pub(super) const FOLDERS: &[&str] = &[
    "proc/device-tree/hypervisor",
    "sys/kernel/debug/tracing/events",
    "sys/kernel/debug/tracing/events/binder",
    "sys/kernel/debug/tracing/events/rust_binder",
    "sys/kernel/tracing/events",
    "sys/kernel/tracing/events/binder",
    "sys/kernel/tracing/events/rust_binder",
    "sys/module/binder",
    "sys/module/binder_linux",
    "sys/module/rust_binder",
];

/// Files of a control group.
const GROUP: &[&str] = &["cpu.max", "cpu.cfs_quota_us", "cpu.stat", "cpu.uclamp.max"];

/// The script. It prints an archive that [`crate::Snapshot::open`] reads.
#[must_use]
pub fn script() -> String {
    include_str!("collect.sh")
        .replace(
            "@FILES@",
            &FILES.iter().map(|file| format!("'{file}'")).collect::<Vec<_>>().join(" \\\n        "),
        )
        .replace("@FOLDERS@", &FOLDERS.join(" \\\n        "))
        .replace("@GROUP@", &GROUP.join(" "))
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
}
