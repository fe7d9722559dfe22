//! Other load on the machine, temperature, memory shortage.
//! Not here: users of binder (`users`), limits of this process (`sched`, `rights`).
//! Facts: `Documentation/accounting/psi.rst`; `Documentation/filesystems/proc.rst` (`loadavg`, `interrupts`,
//! `meminfo`); `Documentation/core-api/irq/irq-affinity.rst`; `Documentation/driver-api/thermal/sysfs-api.rst`.

use record::HostClass;

use super::machine::class;
use super::sched::CPUS;
use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::parse::{cpu_list, device_interrupts, kibibytes, pressure};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "load",
        looks_at: "load average of the last minute",
        proof: "cat /proc/loadavg; top",
        grounds: Grounds::Measured {
            effect: "with four busy threads running as well, p99 of ordinary calls on one CPU rose from 0.03 ms to 6.1 ms",
            command: "binderperf latency hwbinder --driver embedded -i 2000 --cpus 0,0 --load cpu:4",
        },
        look: load,
    },
    Probe {
        id: "pressure-cpu",
        looks_at: "time spent waiting for a CPU in the last ten seconds",
        proof: "cat /proc/pressure/cpu",
        grounds: Grounds::Cited {
            source: "Documentation/accounting/psi.rst",
            says: "the share of time in which some thread waited for a CPU",
        },
        look: pressure_cpu,
    },
    Probe {
        id: "pressure-memory",
        looks_at: "time spent waiting for memory in the last ten seconds",
        proof: "cat /proc/pressure/memory",
        grounds: Grounds::Cited {
            source: "Documentation/accounting/psi.rst",
            says: "the share of time in which some thread waited for memory to be reclaimed",
        },
        look: pressure_memory,
    },
    Probe {
        id: "irq-placement",
        looks_at: "whether one CPU takes most device interrupts",
        proof: "cat /proc/interrupts; grep . /proc/irq/*/smp_affinity_list",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
            says: "interrupts on a CPU are jitter for the threads there; steer them away",
        },
        look: interrupts,
    },
    Probe {
        id: "thermal",
        looks_at: "thermal throttling, active or imminent",
        proof: "grep . /sys/class/thermal/*/{type,temp,cur_state}",
        grounds: Grounds::Cited {
            source: "Documentation/driver-api/thermal/sysfs-api.rst, passive trip points",
            says: "at such a temperature the kernel slows the CPUs down",
        },
        look: thermal,
    },
    Probe {
        id: "memory-free",
        looks_at: "how much memory is available",
        proof: "free -h",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/mm/concepts.rst, Reclaim",
            says: "an allocation stalls until enough pages are reclaimed",
        },
        look: memory,
    },
];

fn load(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "proc/loadavg";
    let text = snapshot.text(FILE)?;
    let load: Option<f64> = text.split_whitespace().next().and_then(|word| word.parse().ok());
    let load = load.ok_or_else(|| Unavailable::malformed(FILE, "it does not begin with a number"))?;
    if matches!(class(snapshot), HostClass::Tcg | HostClass::Icount | HostClass::Kvm) {
        return Ok(ProbeResult::fine("a guest's load average includes its own start; see pressure-cpu")
            .seen(FILE, text));
    }
    let online = format!("{CPUS}/online");
    let counted = snapshot.maybe(&online)?.and_then(|text| cpu_list(&text)).map(|cpus| cpus.len());
    let cpus = counted.or(snapshot.facts().usable_cpus.map(|count| count as usize));
    let cpus = cpus.ok_or(Unavailable::Absent(online))?;
    let said = match load > cpus as f64 / 2.0 {
        true => ProbeResult::warning(format!("the machine is busy: load {load:.2} on {cpus} CPUs"))
            .effect("the test shares CPUs with other work: all times are too long, tails most")
            .fix("stop other work, or wait a minute for the average to fall"),
        false => ProbeResult::fine(format!("load {load:.2} on {cpus} CPUs")),
    };
    Ok(said.seen(FILE, text))
}

/// Judges the percentage of the last ten seconds in which some thread waited for a resource.
fn waited(
    snapshot: &Snapshot,
    file: &str,
    resource: &str,
    judge: fn(f64, String) -> ProbeResult,
) -> Result<ProbeResult, Unavailable> {
    let unmeasured = || {
        let why = "the kernel does not measure pressure (PSI is off; boot with psi=1)";
        Err(Unavailable::NotShown(why.to_owned()))
    };
    let file = format!("proc/pressure/{file}");
    let text = match snapshot.maybe(&file) {
        Ok(Some(text)) => text,
        Ok(None) => return unmeasured(),
        // Without psi=1 at boot the files exist but cannot be read.
        Err(Unavailable::Failed(_, why)) if why.contains("EOPNOTSUPP") => return unmeasured(),
        Err(error) => return Err(error),
    };
    let percent =
        pressure(&text).ok_or_else(|| Unavailable::malformed(&file, "no line \"some avg10=...\""))?;
    let found = format!("in {percent:.0} % of the last ten seconds some thread waited for {resource}");
    Ok(judge(percent, found).seen(&file, text))
}

fn pressure_cpu(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const EFFECT: &str =
        "a woken client or server first waits for other work: tails show that work, not binder";
    const FIX: &str = "stop other work (see top), wait ten seconds, run the doctor again";
    waited(snapshot, "cpu", "a CPU", |percent, found| match percent {
        ..5.0 => ProbeResult::fine(found),
        5.0..40.0 => ProbeResult::warning(found).effect(EFFECT).fix(FIX),
        _ => ProbeResult::error(found).effect(EFFECT).fix(FIX),
    })
}

fn pressure_memory(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    waited(snapshot, "memory", "memory", |percent, found| {
        match percent {
        ..1.0 => ProbeResult::fine(found),
        _ => ProbeResult::warning(found)
            .effect("pages of binder's buffers are reclaimed and allocated again during calls, for milliseconds each")
            .fix("stop what uses the memory"),
    }
    })
}

/// Below this number of interrupts their distribution is not significant.
const FEW_INTERRUPTS: u64 = 10_000;

fn interrupts(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "proc/interrupts";
    let text = snapshot.text(FILE)?;
    let taken =
        device_interrupts(&text).ok_or_else(|| Unavailable::malformed(FILE, "no header line with CPUs"))?;
    let total = taken.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let (cpu, most) = taken.iter().enumerate().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
    let share = *most as f64 / total.max(1) as f64;
    let percent = share * 100.0;
    let said = match taken.len() {
        0 | 1 => ProbeResult::fine("the only CPU takes all interrupts"),
        _ if total < FEW_INTERRUPTS => {
            ProbeResult::fine(format!("{total} device interrupts since boot: too few to matter"))
        }
        _ if share > 0.8 => ProbeResult::info(format!(
            "CPU {cpu} took {percent:.0} % of all device interrupts since boot"
        ))
        .effect("threads on this CPU are interrupted more often than others: pairs differ")
        .fix(format!(
            "run the test on other CPUs (taskset), or move the interrupts (echo LIST > /proc/irq/N/smp_affinity_list); \
                          only current interrupts matter: watch /proc/interrupts on CPU {cpu}"
        )),
        _ => ProbeResult::fine(format!("device interrupts are spread: at most {percent:.0} % on one CPU")),
    };
    let each: Vec<String> = taken.iter().take(64).map(u64::to_string).collect();
    Ok(said.seen(FILE, format!("device interrupts of each CPU: {}", each.join(" "))))
}

fn thermal(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FOLDER: &str = "sys/class/thermal";
    let (mut cooled, mut judged) = (0, 0);
    for device in snapshot.numbered(FOLDER, "cooling_device")? {
        let kind = snapshot.maybe(&format!("{FOLDER}/{device}/type"))?.unwrap_or_default();
        let slows = ["processor", "cpufreq", "cpu", "thermal-cpu"]
            .iter()
            .any(|word| kind.to_lowercase().contains(word));
        let file = format!("{FOLDER}/{device}/cur_state");
        // Some drivers return errors.
        let Some(state) = snapshot.text(&file).ok().and_then(|text| text.parse::<u64>().ok()) else {
            continue;
        };
        cooled += u32::from(slows);
        if slows && state > 0 {
            return Ok(ProbeResult::warning(format!(
                "the CPUs are throttled because of heat ({kind}, step {state})"
            ))
            .effect("the CPU frequency is reduced, and changes during the run")
            .fix("let the machine cool down, improve its cooling, or measure for a shorter time")
            .seen(&file, state.to_string()));
        }
    }
    let mut hottest = None;
    for zone in snapshot.numbered(FOLDER, "thermal_zone")? {
        let file = format!("{FOLDER}/{zone}/temp");
        let Some(temperature) = snapshot.text(&file).ok().and_then(|text| text.parse::<i64>().ok()) else {
            continue;
        };
        let mut has_limit = false;
        for trip in 0..12 {
            let kind = snapshot.maybe(&format!("{FOLDER}/{zone}/trip_point_{trip}_type"))?;
            let Some(kind) = kind else { break };
            let limit = snapshot.text(&format!("{FOLDER}/{zone}/trip_point_{trip}_temp")).ok();
            let limit = limit.and_then(|text| text.parse::<i64>().ok()).filter(|limit| *limit > 0);
            let Some(limit) = limit.filter(|_| matches!(kind.as_str(), "passive" | "hot" | "critical"))
            else {
                continue;
            };
            has_limit = true;
            if temperature >= limit {
                hottest = Some((file.clone(), temperature, kind));
            }
        }
        judged += u32::from(has_limit);
    }
    Ok(match hottest {
        Some((file, temperature, kind)) => ProbeResult::warning(format!(
            "the machine is hot: {:.0} °C, at its {kind} limit",
            temperature as f64 / 1000.0
        ))
        .effect("the CPUs are throttled, or will be soon")
        .fix("let the machine cool down, improve its cooling, or measure for a shorter time")
        .seen(&file, temperature.to_string()),
        None if judged + cooled == 0 => {
            let why = "the kernel reports no temperature with a limit, and no cooling of the CPUs";
            return Err(Unavailable::NotShown(why.to_owned()));
        }
        None if judged == 0 => ProbeResult::fine("no cooling slows the CPUs"),
        None => ProbeResult::fine(format!("none of {judged} thermal zones is at its limit")),
    })
}

/// A value of `/proc/meminfo` in bytes.
fn size(text: &str, name: &str) -> Result<u64, Unavailable> {
    kibibytes(text, name).ok_or_else(|| Unavailable::malformed(MEMINFO, format!("no line {name:?} in it")))
}

const MEMINFO: &str = "proc/meminfo";

fn memory(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let text = snapshot.text(MEMINFO)?;
    let (total, available) = (size(&text, "MemTotal")?, size(&text, "MemAvailable")?);
    let mib = available >> 20;
    let said = match available < total / 20 || mib < 64 {
        true => ProbeResult::warning(format!("little memory is available: {mib} MiB"))
            .effect(
                "pages of binder's buffers are reclaimed by the shrinker and allocated again during calls",
            )
            .fix("stop what uses the memory"),
        false => ProbeResult::fine(format!("{mib} MiB of memory are available")),
    };
    Ok(said.seen(MEMINFO, format!("MemTotal {} MiB, MemAvailable {mib} MiB", total >> 20)))
}
