//! Scheduler settings: real-time throttling, control groups, energy awareness, CPU capacities, isolation.
//! Not here: this process's rights (`rights`), clock rates and idle states (`cpu`).
//! Facts: `Documentation/scheduler/sched-rt-group.rst`, `sched-ext.rst`, `sched-energy.rst`, `sched-capacity.rst`,
//! `sched-bwc.rst`; `sched(7)` on autogroup; `Documentation/admin-guide/cgroup-v2.rst`, `kernel-parameters.txt` (`isolcpus`,
//! `nohz_full`, `rt_group_sched`). Since 6.12 the `fair_server` in `kernel/sched/deadline.c` replaces real-time
//! throttling.

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::Release;
use host::parse::{cpu_list, parameter, ranges};

pub(super) const CPUS: &str = "sys/devices/system/cpu";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "sched-rt-limit",
        looks_at: "real-time throttling",
        proof: "sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-rt-group.rst, sched_rt_runtime_us",
            says: "the time that all real-time threads together may run in each period",
        },
        look: rt_limit,
    },
    Probe {
        id: "sched-rt-group",
        looks_at: "real-time budgets of control groups",
        proof: "zcat /proc/config.gz | grep RT_GROUP_SCHED; grep -o rt_group_sched=. /proc/cmdline",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-rt-group.rst",
            says: "a group without a budget of its own runs no real-time thread",
        },
        look: rt_group,
    },
    Probe {
        id: "sched-ext",
        looks_at: "active BPF scheduler (sched_ext)",
        proof: "cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-ext.rst",
            says: "a BPF program decides which thread runs where",
        },
        look: ext,
    },
    Probe {
        id: "sched-autogroup",
        looks_at: "autogroups: nice values per session",
        proof: "sysctl kernel.sched_autogroup_enabled",
        grounds: Grounds::Cited {
            source: "sched(7), the autogroup feature",
            says: "a nice value counts only among the threads of one session",
        },
        look: autogroup,
    },
    Probe {
        id: "sched-energy",
        looks_at: "energy-aware scheduling",
        proof: "sysctl kernel.sched_energy_aware; ls /sys/kernel/debug/energy_model",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-energy.rst; Android, Binder performance tests: what can affect latency",
            says: "threads are woken where it costs the least energy",
        },
        look: energy,
    },
    Probe {
        id: "cpu-asymmetry",
        looks_at: "CPUs of different capacity",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpu_capacity",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-capacity.rst; Android, Binder performance tests: what can affect latency",
            says: "the same work takes longer on a CPU of less capacity",
        },
        look: asymmetry,
    },
    Probe {
        id: "cpu-isolation",
        looks_at: "CPUs isolated at boot",
        proof: "cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full",
        grounds: Grounds::Cited {
            source: "Documentation/timers/no_hz.rst; kernel-parameters.txt, isolcpus",
            says: "entering and leaving the kernel costs more without a tick; the scheduler balances nothing onto isolated CPUs",
        },
        look: isolation,
    },
    Probe {
        id: "cpu-affinity",
        looks_at: "CPUs that this process may use",
        proof: "grep Cpus_allowed_list /proc/self/status",
        grounds: Grounds::Measured {
            effect: "on one of two CPUs all ordinary calls were served on their caller's CPU, on both 34 % were",
            command: "taskset -c 0 binderperf latency hwbinder --driver embedded --pairs 2",
        },
        look: affinity,
    },
    Probe {
        id: "cgroup-cpu",
        looks_at: "CPU time limit of this process's control group",
        proof: "cat /proc/self/cgroup; cat /sys/fs/cgroup/.../cpu.max",
        grounds: Grounds::Cited {
            source: "Documentation/scheduler/sched-bwc.rst",
            says: "a group that has used its quota does not run until the next period",
        },
        look: quota,
    },
    Probe {
        id: "cgroup-uclamp",
        looks_at: "CPU frequency limit of this process's control group",
        proof: "cat /sys/fs/cgroup/.../cpu.uclamp.max",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/cgroup-v2.rst, cpu.uclamp.max",
            says: "limits the utilisation by which frequency and CPU are chosen",
        },
        look: uclamp,
    },
];

fn rt_limit(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    let runtime: i64 = snapshot.value(RUNTIME)?;
    let period: i64 = snapshot.value("proc/sys/kernel/sched_rt_period_us")?;
    // Since 6.12 the fair server replaces throttling, except with RT group scheduling.
    let release = Release::parse(&snapshot.release());
    if release == Release(0, 0) && !snapshot.is_complete() {
        return Err(Unavailable::absent("proc/sys/kernel/osrelease"));
    }
    let groups = match snapshot.config() {
        Err(why) if !snapshot.is_complete() && release >= Release(6, 12) => return Err(why),
        config => config.map_or(true, |config| config.is_on("RT_GROUP_SCHED")),
    };
    if release >= Release(6, 12) && !groups {
        return Ok(ProbeResult::fine(
            "since Linux 6.12 ordinary threads keep a share of their own instead of real-time throttling",
        )
        .seen(RUNTIME, runtime.to_string()));
    }
    let said = match runtime {
        ..0 => ProbeResult::info("real-time threads are not limited")
            .effect("none on results; a spinning real-time thread occupies its CPU forever")
            .fix("sysctl -w kernel.sched_rt_runtime_us=950000 restores the usual limit"),
        0 => ProbeResult::error("real-time threads may not run at all")
            .effect("SCHED_FIFO is refused, or such threads starve: real-time cases cannot be measured")
            .fix("sysctl -w kernel.sched_rt_runtime_us=950000"),
        _ if period > 0 && runtime < period / 10 * 9 => ProbeResult::warning(format!(
            "real-time threads may run only {runtime} us of every {period} us"
        ))
        .effect(
            "under load they are throttled for the rest of each period: deadlines are missed by that much",
        )
        .fix("sysctl -w kernel.sched_rt_runtime_us=950000"),
        _ => ProbeResult::fine(format!("real-time threads may run {runtime} us of every {period} us")),
    };
    Ok(said.seen(RUNTIME, runtime.to_string()))
}

fn rt_group(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let config = snapshot.config()?;
    if !config.is_on("RT_GROUP_SCHED") {
        return Ok(ProbeResult::fine("no group scheduling of real-time threads")
            .because(&config.source, "CONFIG_RT_GROUP_SCHED is off"));
    }
    let command_line = snapshot.text("proc/cmdline")?;
    let said = match (parameter(&command_line, "rt_group_sched"), config.is_on("RT_GROUP_SCHED_DEFAULT_DISABLED")) {
        (Some("0"), _) | (None, true) => ProbeResult::fine("group scheduling of real-time threads is built in but switched off"),
        _ => ProbeResult::info("control groups have budgets for real-time threads (RT_GROUP_SCHED)")
            .effect("in a group without a budget, as systemd's and containers' are, SCHED_FIFO is refused to root, too; \
                     binder then cannot pass on real-time priorities")
            .fix("run in the root group, or boot with rt_group_sched=0 (6.16 and later)"),
    };
    Ok(said.because(&config.source, "CONFIG_RT_GROUP_SCHED=y"))
}

fn ext(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const STATE: &str = "sys/kernel/sched_ext/state";
    let Some(state) = snapshot.maybe(STATE)? else {
        return Ok(ProbeResult::fine("the kernel has no sched_ext"));
    };
    if state != "enabled" {
        return Ok(ProbeResult::fine("no scheduler was loaded as BPF").seen(STATE, state));
    }
    let ops = snapshot.maybe("sys/kernel/sched_ext/root/ops")?.unwrap_or_default();
    Ok(ProbeResult::warning(format!("the BPF scheduler {ops:?} is active"))
        .effect("it decides where and when binder's threads run, and may ignore the driver's hint to wake on the same CPU: \
                 results describe it, not Linux's scheduler")
        .fix("stop it (systemctl stop scx, or kill its process), unless you want to measure it")
        .seen(STATE, state)
        .seen("sys/kernel/sched_ext/root/ops", ops))
}

fn autogroup(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "proc/sys/kernel/sched_autogroup_enabled";
    let said = match snapshot.maybe_value::<u32>(FILE)? {
        None => return Ok(ProbeResult::fine("the kernel has no autogroups")),
        Some(0) => ProbeResult::fine("autogroups are off").seen(FILE, "0"),
        Some(on) => ProbeResult::info("nice values apply only within a session (autogroup)")
            .effect(
                "a nice value that binder passes on between sessions has little effect; load in \
                     another session has the same weight as the test",
            )
            .fix("sysctl -w kernel.sched_autogroup_enabled=0")
            .seen(FILE, on.to_string()),
    };
    Ok(said)
}

/// Refuses to call fine what was seen of fewer CPUs than are online: files copied by hand may lack some.
pub(super) fn need_every_cpu(snapshot: &Snapshot, seen: usize) -> Result<(), Unavailable> {
    let online = || snapshot.text(&format!("{CPUS}/online")).ok().and_then(|text| cpu_list(&text));
    match snapshot.is_complete() || online().is_some_and(|online| online.len() <= seen) {
        true => Ok(()),
        false => Err(Unavailable::NotShown("not every CPU's files are to be seen".to_owned())),
    }
}

/// Capacities of the CPUs that report one; the highest is 1024.
fn capacities(snapshot: &Snapshot) -> Result<Vec<u32>, Unavailable> {
    let cpus = snapshot.numbered(CPUS, "cpu")?;
    let files = cpus.iter().map(|cpu| format!("{CPUS}/{cpu}/cpu_capacity"));
    let found: Vec<u32> =
        files.filter_map(|file| snapshot.maybe_value(&file).transpose()).collect::<Result<_, _>>()?;
    Ok(found)
}

fn energy(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "proc/sys/kernel/sched_energy_aware";
    let Some(text) = snapshot.maybe(FILE)? else {
        return Ok(ProbeResult::fine("no energy-aware scheduling on this machine"));
    };
    if text.is_empty() {
        // Since 6.6 the file is empty if the CPUs do not support it.
        return Ok(ProbeResult::fine("the CPUs do not allow energy-aware scheduling").seen(FILE, "nothing"));
    }
    let aware: u32 = snapshot.value(FILE)?;
    let capacities = if aware > 0 { capacities(snapshot)? } else { Vec::new() };
    let asymmetric = capacities.iter().any(|capacity| Some(capacity) != capacities.first());
    if aware > 0 && !asymmetric {
        need_every_cpu(snapshot, capacities.len())?;
    }
    let said = match (aware, asymmetric) {
        (1.., true) => ProbeResult::info("threads are placed to save energy (EAS)")
            .effect("client and server may run on small or different CPUs until load is high: times depend on \
                     earlier load")
            .fix("sysctl -w kernel.sched_energy_aware=0 shows the cost of placement; keep it on to measure the product"),
        _ => ProbeResult::fine("threads are not placed to save energy"),
    };
    Ok(said.seen(FILE, aware.to_string()))
}

fn asymmetry(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let capacities = capacities(snapshot)?;
    let (Some(least), Some(most)) = (capacities.iter().min(), capacities.iter().max()) else {
        return Ok(ProbeResult::fine("the CPUs do not report capacities"));
    };
    if least == most {
        need_every_cpu(snapshot, capacities.len())?;
        return Ok(ProbeResult::fine("all CPUs have the same capacity"));
    }
    let mut kinds = capacities.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let text = format!("CPUs of {} capacities, from {least} to {most}", kinds.len());
    Ok(ProbeResult::info(text)
        .effect("the same call takes several times as long on a small CPU; medians jump with the placement")
        .fix("measure each kind of CPU separately (taskset), and compare only the same kind")
        .because(
            "/sys/devices/system/cpu/cpu*/cpu_capacity",
            capacities.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        ))
}

fn isolation(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let file = |name: &str| format!("{CPUS}/{name}");
    let nonsense = |name: &str| Unavailable::malformed(file(name), "not a list of CPUs");
    let list = snapshot.text(&file("isolated"))?;
    let isolated = cpu_list(&list).ok_or_else(|| nonsense("isolated"))?;
    // Kernels without the feature lack the file; some print "(null)" for an empty list.
    let quiet = match snapshot.maybe(&file("nohz_full")) {
        // What is isolated was found all the same.
        Err(_) if !isolated.is_empty() => String::new(),
        text => text?.unwrap_or_default(),
    };
    let tickless = cpu_list(&quiet).or(quiet.contains("null").then(Vec::new));
    let tickless = tickless.ok_or_else(|| nonsense("nohz_full"))?;
    let said = match (isolated.as_slice(), tickless.as_slice()) {
        ([], []) => ProbeResult::fine("no CPU is isolated"),
        ([], some) => ProbeResult::info(format!(
            "the CPUs {} have no tick while one thread runs (nohz_full)",
            ranges(some)
        ))
        .effect("each kernel entry is accounted there, which makes every transaction slightly slower")
        .fix("measure these CPUs and the others separately (taskset)"),
        (some, _) => ProbeResult::info(format!("the CPUs {} are isolated from the scheduler", ranges(some)))
            .effect(
                "the scheduler moves no threads there: the test runs on the other CPUs, with everything else",
            )
            .fix("use taskset -c with these CPUs to measure undisturbed, or boot without isolcpus"),
    };
    let said = said.seen(&file("isolated"), list);
    Ok(if quiet.is_empty() { said } else { said.seen(&file("nohz_full"), quiet) })
}

fn affinity(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let online_file = format!("{CPUS}/online");
    let online = cpu_list(&snapshot.text(&online_file)?)
        .ok_or_else(|| Unavailable::malformed(online_file, "not a list of CPUs"))?
        .len();
    let usable =
        snapshot.facts().usable_cpus.ok_or(Unavailable::NotMeasured("CPUs that the process may use"))?;
    let evidence = format!("{usable} of {online} CPUs that are online");
    let said = match (usable as usize, online) {
        (1, _) => ProbeResult::warning("there is only one CPU to run on").effect(
            "client, server and everything else share it: SYNC is always good, and nothing runs in parallel",
        ),
        (usable, online) if usable < online => {
            ProbeResult::info(format!("the process may use {usable} of {online} CPUs"))
                .effect("the scheduler has fewer CPUs to choose from than on the whole machine")
                .fix("start binderperf without taskset, outside a restricted cpuset")
        }
        _ => ProbeResult::fine(format!("the process may use all {online} CPUs")),
    };
    Ok(said.because("sched_getaffinity", evidence))
}

/// Folders of this process's control group and its ancestors that may have the `cpu` controller, of cgroup v2 (also
/// beside v1) and v1.
fn groups(snapshot: &Snapshot) -> Result<Vec<String>, Unavailable> {
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
        // `..` is dropped: the file may be from an untrusted snapshot.
        let steps: Vec<&str> =
            path.split('/').filter(|step| !matches!(*step, "" | "." | "..")).take(MOST_STEPS).collect();
        for mount in mounts {
            // Not all of these places are in use anywhere.
            if snapshot.is_complete() && !snapshot.root().folder().join(mount).is_dir() {
                continue;
            }
            for depth in (0..=steps.len()).rev() {
                let inner = steps[..depth].join("/");
                folders.push(format!("{mount}/{inner}").trim_end_matches('/').to_owned());
            }
        }
    }
    Ok(folders)
}

/// Most nested control groups that are read.
const MOST_STEPS: usize = 32;

/// Refuses a control group of which no file is to be seen.
fn need_a_group(snapshot: &Snapshot, folders: &[String]) -> Result<(), Unavailable> {
    const FILES: [&str; 4] = ["cpu.max", "cpu.cfs_quota_us", "cpu.stat", "cpu.uclamp.max"];
    let is_seen =
        |folder: &String| FILES.iter().any(|file| snapshot.root().exists(format!("{folder}/{file}")));
    match folders.iter().any(is_seen) {
        true => Ok(()),
        false => {
            Err(Unavailable::NotShown("no file of this process's control group is to be seen".to_owned()))
        }
    }
}

fn quota(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let folders = groups(snapshot)?;
    need_a_group(snapshot, &folders)?;
    for folder in folders {
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
            return Ok(ProbeResult::warning(format!("the control group's CPU time is limited; it was throttled {stopped} times"))
                .effect("when the budget is used up all threads of the group stop until the next period: gaps of up to \
                         100 ms that look like binder's")
                .fix("run outside that group, or remove the limit (echo max > cpu.max; docker run without --cpus)")
                .seen(&file, text));
        }
    }
    Ok(ProbeResult::fine("no CPU time limit on the control group"))
}

fn uclamp(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let folders = groups(snapshot)?;
    need_a_group(snapshot, &folders)?;
    for folder in folders {
        let file = format!("{folder}/cpu.uclamp.max");
        let Some(text) = snapshot.maybe(&file)? else { continue };
        if text.parse::<f64>().is_ok_and(|percent| percent < 100.0) {
            return Ok(ProbeResult::warning(format!(
                "the control group's CPU frequency is limited to {text} %"
            ))
            .effect(
                "the governor keeps the frequency low and small CPUs are chosen, even if the test is busy",
            )
            .fix("run in a group without the clamp; on Android, in the top-app or foreground group")
            .seen(&file, text));
        }
    }
    Ok(ProbeResult::fine("no frequency limit on the control group"))
}
