//! Room: schedulers in good and bad order, and what the probes must say of each.

use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: (&str, &str) = ("proc/sys/kernel/sched_rt_period_us", "1000000\n");
const CONFIG: &str = "proc/config";
const EXT: &str = "sys/kernel/sched_ext/state";
const GROUP: (&str, &str) = ("proc/self/cgroup", "0::/user.slice/a\n");
const CAPACITY_0: (&str, &str) = ("sys/devices/system/cpu/cpu0/cpu_capacity", "446\n");
const CAPACITY_1: &str = "sys/devices/system/cpu/cpu1/cpu_capacity";
const ONLINE: &str = "sys/devices/system/cpu/online";

pub(in crate::doctor) const CASES: &[Case] = &[
    case("sched-rt-limit", Warning, "300000 us", &[(RUNTIME, "300000\n"), PERIOD]),
    case("sched-rt-limit", Error, "not run at all", &[(RUNTIME, "0\n"), PERIOD]),
    case("sched-rt-limit", Info, "not limited", &[(RUNTIME, "-1\n"), PERIOD]),
    case("sched-rt-limit", Ok, "950000", &[(RUNTIME, "950000\n"), PERIOD]),
    case(
        "sched-rt-limit",
        Ok,
        "share of their own",
        &[(RUNTIME, "0\n"), PERIOD, ("proc/sys/kernel/osrelease", "6.12.1\n"), (CONFIG, "CONFIG_HZ=250\n")],
    ),
    case("sched-rt-limit", Unknown, "no value", &[(RUNTIME, "much\n"), PERIOD]),
    case("sched-rt-group", Info, "budgets", &[(CONFIG, "CONFIG_RT_GROUP_SCHED=y\n")]),
    case(
        "sched-rt-group",
        Ok,
        "switched off",
        &[(CONFIG, "CONFIG_RT_GROUP_SCHED=y\n"), ("proc/cmdline", "quiet rt_group_sched=0\n")],
    ),
    case("sched-rt-group", Ok, "no group", &[(CONFIG, "CONFIG_HZ=250\n")]),
    case("sched-rt-group", Unknown, "config", &[]),
    case("sched-ext", Warning, "lavd", &[(EXT, "enabled\n"), ("sys/kernel/sched_ext/root/ops", "lavd\n")]),
    case("sched-ext", Ok, "no scheduler", &[(EXT, "disabled\n")]),
    case("sched-ext", Ok, "no sched_ext", &[]),
    case("sched-autogroup", Info, "session", &[("proc/sys/kernel/sched_autogroup_enabled", "1\n")]),
    case("sched-autogroup", Ok, "off", &[("proc/sys/kernel/sched_autogroup_enabled", "0\n")]),
    case(
        "sched-energy",
        Info,
        "EAS",
        &[("proc/sys/kernel/sched_energy_aware", "1\n"), CAPACITY_0, (CAPACITY_1, "1024\n")],
    ),
    case("sched-energy", Ok, "", &[("proc/sys/kernel/sched_energy_aware", "1\n"), CAPACITY_0]),
    case("sched-energy", Ok, "", &[("proc/sys/kernel/sched_energy_aware", "0\n")]),
    case("sched-energy", Ok, "do not allow", &[("proc/sys/kernel/sched_energy_aware", "\n")]),
    case("sched-energy", Unknown, "no value", &[("proc/sys/kernel/sched_energy_aware", "much\n")]),
    case("cpu-asymmetry", Info, "2 capacities, from 446 to 1024", &[CAPACITY_0, (CAPACITY_1, "1024\n")]),
    case("cpu-asymmetry", Ok, "same", &[CAPACITY_0, (CAPACITY_1, "446\n")]),
    case("cpu-asymmetry", Unknown, "no value", &[CAPACITY_0, (CAPACITY_1, "\n")]),
    case("cpu-isolation", Info, "2-3", &[("sys/devices/system/cpu/isolated", "2-3\n")]),
    case("cpu-isolation", Ok, "no CPU", &[("sys/devices/system/cpu/isolated", "\n")]),
    case(
        "cpu-isolation",
        Info,
        "2-3 have no tick",
        &[("sys/devices/system/cpu/isolated", "\n"), ("sys/devices/system/cpu/nohz_full", "2-3\n")],
    ),
    case(
        "cpu-isolation",
        Ok,
        "no CPU",
        &[("sys/devices/system/cpu/isolated", "\n"), ("sys/devices/system/cpu/nohz_full", "(null)\n")],
    ),
    case("cpu-isolation", Unknown, "no list", &[("sys/devices/system/cpu/isolated", "all\n")]),
    case("cpu-affinity", Warning, "one CPU", &[(ONLINE, "0-3\n"), (FACTS, r#""usable_cpus":1"#)]),
    case("cpu-affinity", Info, "2 of 4", &[(ONLINE, "0-3\n"), (FACTS, r#""usable_cpus":2"#)]),
    case("cpu-affinity", Ok, "all 4", &[(ONLINE, "0-3\n"), (FACTS, r#""usable_cpus":4"#)]),
    case("cpu-affinity", Unknown, "not measured", &[(ONLINE, "0-3\n")]),
    case(
        "cgroup-cpu",
        Warning,
        "stopped 7 times",
        &[
            GROUP,
            ("sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/user.slice/cpu.stat", "usage_usec 1\nnr_throttled 7\n"),
        ],
    ),
    case(
        "cgroup-cpu",
        Warning,
        "limited",
        &[("proc/self/cgroup", "1:cpu,cpuacct:/x\n"), ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n")],
    ),
    case("cgroup-cpu", Ok, "no limit", &[GROUP, ("sys/fs/cgroup/user.slice/a/cpu.max", "max 100000\n")]),
    case("cgroup-cpu", Unknown, "cgroup", &[]),
    case(
        "cgroup-uclamp",
        Warning,
        "30.00 %",
        &[GROUP, ("sys/fs/cgroup/user.slice/a/cpu.uclamp.max", "30.00\n")],
    ),
    case("cgroup-uclamp", Ok, "no limit", &[GROUP, ("sys/fs/cgroup/user.slice/a/cpu.uclamp.max", "max\n")]),
];
