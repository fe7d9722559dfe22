//! Room: how the scheduler treats binder's threads: limits of real-time, groups, energy, unequal CPUs.
//! Not here: what this process may do (`rights`), the CPUs' clocks and idle states (`cpu`).
//! Facts: `Documentation/scheduler/sched-rt-group.rst`, `sched-ext.rst`, `sched-energy.rst`,
//! `sched-capacity.rst`, `sched(7)` on autogroup; `Documentation/admin-guide/cgroup-v2.rst`,
//! `kernel-parameters.txt` (`isolcpus`, `nohz_full`, `rt_group_sched`); the server of ordinary threads in place
//! of the limit on real-time ones: `fair_server` in `kernel/sched/deadline.c` since 6.12.

use crate::conformance::Release;
use crate::doctor::parse::{cpu_list, parameter, ranges};
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const CPUS: &str = "sys/devices/system/cpu";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "sched-rt-limit",
        looks_at: "how much of the time real-time threads may run",
        source: "Documentation/scheduler/sched-rt-group.rst: sched_rt_runtime_us",
        proof: "sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us",
        look: rt_limit,
    },
    Probe {
        id: "sched-rt-group",
        looks_at: "whether control groups need a budget for real-time threads",
        source: "CONFIG_RT_GROUP_SCHED; Documentation/scheduler/sched-rt-group.rst",
        proof: "zcat /proc/config.gz | grep RT_GROUP_SCHED; grep -o rt_group_sched=. /proc/cmdline",
        look: rt_group,
    },
    Probe {
        id: "sched-ext",
        looks_at: "whether a scheduler loaded as BPF is in charge (sched_ext)",
        source: "Documentation/scheduler/sched-ext.rst",
        proof: "cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops",
        look: ext,
    },
    Probe {
        id: "sched-autogroup",
        looks_at: "whether nice values count within a session only",
        source: "sched(7): the autogroup feature",
        proof: "sysctl kernel.sched_autogroup_enabled",
        look: autogroup,
    },
    Probe {
        id: "sched-energy",
        looks_at: "energy-aware scheduling",
        source: "Documentation/scheduler/sched-energy.rst",
        proof: "sysctl kernel.sched_energy_aware; ls /sys/kernel/debug/energy_model",
        look: energy,
    },
    Probe {
        id: "cpu-asymmetry",
        looks_at: "CPUs of different capacity",
        source: "Documentation/scheduler/sched-capacity.rst: cpu_capacity",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpu_capacity",
        look: asymmetry,
    },
    Probe {
        id: "cpu-isolation",
        looks_at: "CPUs that were taken out of scheduling at boot",
        source: "kernel-parameters.txt: isolcpus, nohz_full",
        proof: "cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full",
        look: isolation,
    },
    Probe {
        id: "cpu-affinity",
        looks_at: "whether this process may use all CPUs",
        source: "sched_getaffinity(2), cpuset(7)",
        proof: "grep Cpus_allowed_list /proc/self/status",
        look: affinity,
    },
    Probe {
        id: "cgroup-cpu",
        looks_at: "a limit of CPU time on this process's control group",
        source: "Documentation/admin-guide/cgroup-v2.rst: cpu.max; sched-bwc.rst: cpu.cfs_quota_us",
        proof: "cat /proc/self/cgroup; cat /sys/fs/cgroup/.../cpu.max",
        look: quota,
    },
    Probe {
        id: "cgroup-uclamp",
        looks_at: "a limit of the speed that this process's control group may ask for",
        source: "Documentation/admin-guide/cgroup-v2.rst: cpu.uclamp.max",
        proof: "cat /sys/fs/cgroup/.../cpu.uclamp.max",
        look: uclamp,
    },
];

fn rt_limit(snapshot: &Snapshot) -> Result<Said, Unread> {
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    let runtime: i64 = snapshot.value(RUNTIME)?;
    let period: i64 = snapshot.value("proc/sys/kernel/sched_rt_period_us")?;
    // Since 6.12 ordinary threads have a server of their own in place of the limit, but for groups.
    let groups = snapshot.config().map_or(true, |config| config.is_on("RT_GROUP_SCHED"));
    if Release::parse(&snapshot.release()) >= Release(6, 12) && !groups {
        return Ok(Said::fine(
            "since Linux 6.12 ordinary threads keep a share of their own beside real-time ones",
        )
        .seen(RUNTIME, runtime.to_string()));
    }
    let said = match runtime {
        ..0 => Said::info("real-time threads are not limited")
            .effect("nothing for the numbers; a real-time thread that spins takes its CPU for good")
            .fix("sysctl -w kernel.sched_rt_runtime_us=950000 restores the usual limit"),
        0 => Said::error("real-time threads may not run at all")
            .effect("SCHED_FIFO is refused, or such threads starve: nothing real-time can be measured")
            .fix("sysctl -w kernel.sched_rt_runtime_us=950000"),
        _ if period > 0 && runtime < period / 10 * 9 => Said::warning(format!(
            "real-time threads may run {runtime} us of every {period} us only"
        ))
        .effect("under load they are stopped for the rest of each period: deadlines are missed by that much")
        .fix("sysctl -w kernel.sched_rt_runtime_us=950000"),
        _ => Said::fine(format!("real-time threads may run {runtime} us of every {period} us")),
    };
    Ok(said.seen(RUNTIME, runtime.to_string()))
}

fn rt_group(snapshot: &Snapshot) -> Result<Said, Unread> {
    let config = snapshot.config()?;
    if !config.is_on("RT_GROUP_SCHED") {
        return Ok(Said::fine("no group scheduling of real-time threads")
            .because(&config.source, "CONFIG_RT_GROUP_SCHED is off"));
    }
    let command_line = snapshot.text("proc/cmdline").unwrap_or_default();
    let said = match (parameter(&command_line, "rt_group_sched"), config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED")) {
        (Some("0"), _) | (None, true) => Said::fine("group scheduling of real-time threads is built in and switched off"),
        _ => Said::info("control groups have budgets for real-time threads (RT_GROUP_SCHED)")
            .effect("in a group without a budget, as systemd's and containers' are, SCHED_FIFO is refused to root, too; \
                     binder then cannot hand on real-time priorities")
            .fix("run it in the root group, or boot with rt_group_sched=0 (6.16 and later)"),
    };
    Ok(said.because(&config.source, "CONFIG_RT_GROUP_SCHED=y"))
}

fn ext(snapshot: &Snapshot) -> Result<Said, Unread> {
    const STATE: &str = "sys/kernel/sched_ext/state";
    let Some(state) = snapshot.maybe(STATE)? else { return Ok(Said::fine("the kernel has no sched_ext")) };
    if state != "enabled" {
        return Ok(Said::fine("no scheduler is loaded as BPF").seen(STATE, state));
    }
    let ops = snapshot.maybe("sys/kernel/sched_ext/root/ops")?.unwrap_or_default();
    Ok(Said::warning(format!("the scheduler {ops:?}, loaded as BPF, is in charge"))
        .effect("it decides where and when binder's threads run, and may ignore the driver's hint to wake on the same CPU: \
                 numbers tell of it, not of Linux's scheduler")
        .fix("stop it (systemctl stop scx, or end its process), unless it is what you measure")
        .seen(STATE, state)
        .seen("sys/kernel/sched_ext/root/ops", ops))
}

fn autogroup(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "proc/sys/kernel/sched_autogroup_enabled";
    let said = match snapshot.maybe_value::<u32>(FILE)? {
        None => return Ok(Said::fine("the kernel has no autogroups")),
        Some(0) => Said::fine("autogroups are off").seen(FILE, "0"),
        Some(on) => Said::info("nice values count within a session only (autogroup)")
            .effect("a nice value that binder hands on from one session's process to another's changes little; load in \
                     another session weighs as much as the test")
            .fix("sysctl -w kernel.sched_autogroup_enabled=0")
            .seen(FILE, on.to_string()),
    };
    Ok(said)
}

/// What each CPU can do beside the most able one, 1024; only those that tell.
fn capacities(snapshot: &Snapshot) -> Result<Vec<u32>, Unread> {
    let files = snapshot.numbered(CPUS, "cpu")?.into_iter().map(|cpu| format!("{CPUS}/{cpu}/cpu_capacity"));
    files.filter_map(|file| snapshot.maybe_value(&file).transpose()).collect()
}

fn energy(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "proc/sys/kernel/sched_energy_aware";
    let Some(text) = snapshot.maybe(FILE)? else {
        return Ok(Said::fine("no energy-aware scheduling on this machine"));
    };
    if text.is_empty() {
        // So it reads, since 6.6, where the CPUs do not allow it.
        return Ok(Said::fine("the CPUs do not allow energy-aware scheduling").seen(FILE, "nothing"));
    }
    let aware: u32 = snapshot.value(FILE)?;
    let capacities = capacities(snapshot)?;
    let asymmetric = capacities.iter().any(|capacity| Some(capacity) != capacities.first());
    let said = match (aware, asymmetric) {
        (1.., true) => Said::info("threads are placed to save energy (EAS)")
            .effect("client and server may run on small CPUs, or on different ones, until load is high: times depend on \
                     what ran before")
            .fix("sysctl -w kernel.sched_energy_aware=0 shows what placement costs; leave it on to measure the product"),
        _ => Said::fine("threads are not placed to save energy"),
    };
    Ok(said.seen(FILE, aware.to_string()))
}

fn asymmetry(snapshot: &Snapshot) -> Result<Said, Unread> {
    let capacities = capacities(snapshot)?;
    let (Some(least), Some(most)) = (capacities.iter().min(), capacities.iter().max()) else {
        return Ok(Said::fine("the CPUs do not tell of different capacities"));
    };
    if least == most {
        return Ok(Said::fine("all CPUs have the same capacity"));
    }
    let mut kinds = capacities.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let text = format!("CPUs of {} capacities, from {least} to {most}", kinds.len());
    Ok(Said::info(text)
        .effect("the same call takes several times as long on a small CPU; medians jump with the placement")
        .fix("measure each kind by itself (taskset), and compare like with like")
        .because(
            "/sys/devices/system/cpu/cpu*/cpu_capacity",
            capacities.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        ))
}

fn isolation(snapshot: &Snapshot) -> Result<Said, Unread> {
    let file = |name: &str| format!("{CPUS}/{name}");
    let nonsense = |name: &str| Unread::Nonsense(file(name), "no list of CPUs".to_owned());
    let list = snapshot.text(&file("isolated"))?;
    let isolated = cpu_list(&list).ok_or_else(|| nonsense("isolated"))?;
    // Kernels without it have no such file, and some say "(null)" where none is.
    let quiet = match snapshot.text(&file("nohz_full")) {
        Err(Unread::Absent(_)) => String::new(),
        text => text?,
    };
    let tickless = cpu_list(&quiet).or(quiet.contains("null").then(Vec::new));
    let tickless = tickless.ok_or_else(|| nonsense("nohz_full"))?;
    let said = match (isolated.as_slice(), tickless.as_slice()) {
        ([], []) => Said::fine("no CPU is isolated"),
        ([], some) => Said::info(format!("the CPUs {} have no tick while one thread runs (nohz_full)", ranges(some)))
            .effect("each entry to the kernel is accounted there, which makes every transaction a little slower")
            .fix("measure these CPUs and the others each by themselves (taskset)"),
        (some, _) => Said::info(format!("the CPUs {} are isolated from the scheduler", ranges(some)))
            .effect("threads do not move there by themselves: the test runs on the others, beside everything else")
            .fix("taskset -c onto them to measure without disturbance, or boot without isolcpus"),
    };
    let said = said.seen(&file("isolated"), list);
    Ok(if quiet.is_empty() { said } else { said.seen(&file("nohz_full"), quiet) })
}

fn affinity(snapshot: &Snapshot) -> Result<Said, Unread> {
    let online_file = format!("{CPUS}/online");
    let online = cpu_list(&snapshot.text(&online_file)?)
        .ok_or_else(|| Unread::Nonsense(online_file.clone(), "no list of CPUs".to_owned()))?
        .len();
    let usable = snapshot.facts().usable_cpus.ok_or(Unread::NotMeasured("which CPUs the process may use"))?;
    let evidence = format!("{usable} of {online} CPUs that are online");
    let said = match (usable as usize, online) {
        (1, _) => Said::warning("there is one CPU to run on")
            .effect("client, server and everything else take turns: SYNC is always good, and nothing runs at the same time"),
        (usable, online) if usable < online => {
            Said::info(format!("the process may use {usable} of {online} CPUs"))
                .effect("the scheduler has less choice than on the whole machine")
                .fix("start it without taskset, outside of a restricted cpuset")
        }
        _ => Said::fine(format!("the process may use all {online} CPUs")),
    };
    Ok(said.because("sched_getaffinity", evidence))
}

/// The folders of this process's control group and of those around it, where a controller `cpu` may be: of
/// version 2 (also beside version 1) and of version 1.
pub(in crate::doctor) fn groups(snapshot: &Snapshot) -> Result<Vec<String>, Unread> {
    let text = snapshot.text("proc/self/cgroup")?;
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
            list if list.split(',').any(|name| name == "cpu") => {
                &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "dev/cpuctl"]
            }
            _ => continue,
        };
        // Nothing that leads out of the mount: the file may be anybody's.
        let steps: Vec<&str> =
            path.split('/').filter(|step| !matches!(*step, "" | "." | "..")).take(MOST_STEPS).collect();
        for mount in mounts {
            for depth in (0..=steps.len()).rev() {
                let inner = steps[..depth].join("/");
                folders.push(format!("{mount}/{inner}").trim_end_matches('/').to_owned());
            }
        }
    }
    Ok(folders)
}

/// Nested control groups that are looked at.
const MOST_STEPS: usize = 32;

fn quota(snapshot: &Snapshot) -> Result<Said, Unread> {
    for folder in groups(snapshot)? {
        let v2 = format!("{folder}/cpu.max");
        let v1 = format!("{folder}/cpu.cfs_quota_us");
        let found = match (snapshot.maybe(&v2)?, snapshot.maybe(&v1)?) {
            (Some(text), _) => (!text.starts_with("max")).then_some((v2, text)),
            (_, Some(text)) => text.parse::<i64>().is_ok_and(|quota| quota > 0).then_some((v1, text)),
            _ => None,
        };
        if let Some((file, text)) = found {
            let stat = snapshot.maybe(&format!("{folder}/cpu.stat"))?.unwrap_or_default();
            let stopped = stat
                .lines()
                .find_map(|line| line.strip_prefix("nr_throttled "))
                .unwrap_or("an unknown number of");
            return Ok(Said::warning(format!("the control group's CPU time is limited; it was stopped {stopped} times"))
                .effect("when the budget is used up all of the group's threads stop until the next period: gaps of up to \
                         100 ms that look like binder's")
                .fix("run it outside of that group, or remove the limit (echo max > cpu.max; docker run without --cpus)")
                .seen(&file, text));
        }
    }
    Ok(Said::fine("no limit of CPU time on the control group"))
}

fn uclamp(snapshot: &Snapshot) -> Result<Said, Unread> {
    for folder in groups(snapshot)? {
        let file = format!("{folder}/cpu.uclamp.max");
        let Some(text) = snapshot.maybe(&file)? else { continue };
        if text.parse::<f64>().is_ok_and(|percent| percent < 100.0) {
            return Ok(Said::warning(format!(
                "the control group may ask for {text} % of the CPUs' speed at most"
            ))
            .effect("the governor keeps the clock low, and small CPUs are chosen, however busy the test is")
            .fix(
                "run it in a group without the clamp; on Android, move it to the top-app or foreground group",
            )
            .seen(&file, text));
        }
    }
    Ok(Said::fine("no limit of speed on the control group"))
}

#[cfg(test)]
#[path = "sched_cases.rs"]
mod cases;

#[cfg(test)]
pub(super) use cases::CASES;
