//! The CPUs: clock rates, idle states, offline CPUs, SMT, NUMA nodes.
//! Not here: placement of threads (`sched`), mitigations (`kernel`).
//! Facts: `Documentation/admin-guide/pm/cpufreq.rst`, `intel_pstate.rst`, `cpuidle.rst`;
//! `Documentation/ABI/testing/sysfs-devices-system-cpu`, `stable/sysfs-devices-node`; `Documentation/core-api/cpu_hotplug.rst`.

use super::sched::{CPUS, need_every_cpu};
use crate::facts::Wake;
use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::parse::{cpu_list, ranges};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "cpu-governor",
        looks_at: "CPU frequency governors",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/pm/cpufreq.rst; Android, Binder performance tests: what can affect latency",
            says: "governors other than performance follow the load",
        },
        look: governor,
    },
    Probe {
        id: "cpu-frequency-limit",
        looks_at: "limits on the CPU frequency",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpufreq/{scaling,cpuinfo}_max_freq",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/pm/cpufreq.rst, scaling_max_freq; Android, Binder performance tests: what can affect latency",
            says: "the CPU runs no faster than that",
        },
        look: frequency_limit,
    },
    Probe {
        id: "cpu-boost",
        looks_at: "frequencies above the nominal one (turbo, boost)",
        proof: "cat /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/pm/cpufreq.rst, the boost file",
            says: "single results depend on what else the package does, so benchmarks switch boost off",
        },
        look: boost,
    },
    Probe {
        id: "cpu-idle-states",
        looks_at: "exit latency of the deepest idle state, as declared by its driver",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,disable}",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/pm/cpuidle.rst, latency; Android, Binder performance tests: what can affect latency",
            says: "the time to leave the state and run the first instruction",
        },
        look: idle_states,
    },
    Probe {
        id: "cpu-idle-exit",
        looks_at: "wake-up latency of a sleeping thread, measured",
        proof: "binderperf doctor --all; cyclictest -m -p 1 -i 3000",
        grounds: Grounds::Measured {
            effect: "how late a sleeping thread wakes on this machine",
            command: "binderperf doctor --all",
        },
        look: idle_exit,
    },
    Probe {
        id: "cpu-offline",
        looks_at: "CPUs that are present but offline",
        proof: "cat /sys/devices/system/cpu/present /sys/devices/system/cpu/online",
        grounds: Grounds::Cited {
            source: "Android, Binder performance tests: what can affect latency",
            says: "the cpu-hotplug driver",
        },
        look: offline,
    },
    Probe {
        id: "cpu-smt",
        looks_at: "CPUs that share a core (SMT)",
        proof: "cat /sys/devices/system/cpu/smt/active",
        grounds: Grounds::Cited {
            source: "Tullsen, Eggers, Levy: Simultaneous multithreading (ISCA 1995)",
            says: "threads on one core share its issue slots, units and caches",
        },
        look: smt,
    },
    Probe {
        id: "numa",
        looks_at: "NUMA nodes",
        proof: "cat /sys/devices/system/node/online",
        grounds: Grounds::Cited {
            source: "Documentation/mm/numa.rst",
            says: "memory of another node takes longer to reach and has less bandwidth",
        },
        look: numa,
    },
];

/// A file of each CPU, with the CPU number; CPUs without it are skipped.
fn of_each(snapshot: &Snapshot, file: &str) -> Result<Vec<(u32, String)>, Unavailable> {
    let mut found = Vec::new();
    for cpu in snapshot.numbered(CPUS, "cpu")? {
        if let Some(text) = snapshot.maybe(&format!("{CPUS}/{cpu}/{file}"))? {
            found.extend(
                cpu.strip_prefix("cpu").and_then(|number| number.parse().ok()).map(|number| (number, text)),
            );
        }
    }
    Ok(found)
}

fn governor(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let governors = of_each(snapshot, "cpufreq/scaling_governor")?;
    if governors.is_empty() {
        return Ok(ProbeResult::fine("Linux does not control the CPU frequency"));
    }
    let mut others: Vec<&str> =
        governors.iter().map(|(_, name)| name.as_str()).filter(|name| *name != "performance").collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        need_every_cpu(snapshot, governors.len())?;
    }
    let said = match others.as_slice() {
        [] => ProbeResult::fine("all CPUs use the performance governor"),
        some => ProbeResult::warning(format!("CPU frequency is controlled by the governor {}", some.join(", ")))
            .effect("the frequency follows the load: the first cases may run slower than the last, calls with pauses between them \
                     slower than calls without")
            .fix("echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    };
    let all: Vec<String> = governors.iter().map(|(cpu, name)| format!("cpu{cpu} {name}")).collect();
    Ok(said.because("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", all.join(" ")))
}

fn frequency_limit(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (mut limited, mut evidence) = (Vec::new(), Vec::new());
    let all = of_each(snapshot, "cpufreq/cpuinfo_max_freq")?;
    let seen = all.len();
    for (cpu, most) in all {
        let able: u64 = number(&most, cpu, "cpuinfo_max_freq")?;
        let Some(text) = snapshot.maybe(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_max_freq"))? else {
            continue;
        };
        let allowed = number(&text, cpu, "scaling_max_freq")?;
        if allowed < able {
            limited.push(cpu);
            evidence.push(format!("cpu{cpu} {} of {} MHz", allowed / 1000, able / 1000));
        }
    }
    if limited.is_empty() {
        need_every_cpu(snapshot, seen)?;
        return Ok(ProbeResult::fine("no CPU frequency is limited"));
    }
    Ok(ProbeResult::warning(format!(
        "the frequency of CPUs {} is limited below their maximum",
        ranges(&limited)
    ))
    .effect("everything takes longer in that ratio; a thermal limit may change during the run")
    .fix("let the machine cool down; cat cpuinfo_max_freq > scaling_max_freq")
    .because("/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq", evidence.join("; ")))
}

fn number(text: &str, cpu: u32, file: &str) -> Result<u64, Unavailable> {
    let path = || format!("{CPUS}/cpu{cpu}/cpufreq/{file}");
    text.parse().map_err(|_| Unavailable::malformed(path(), "not a number"))
}

fn boost(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (boost, no_turbo) = (format!("{CPUS}/cpufreq/boost"), format!("{CPUS}/intel_pstate/no_turbo"));
    let (file, on) = match (snapshot.maybe(&boost)?, snapshot.maybe(&no_turbo)?) {
        (Some(text), _) => (boost, text == "1"),
        (_, Some(text)) => (no_turbo, text == "0"),
        _ => return Ok(ProbeResult::fine("Linux does not control frequency boost")),
    };
    let said = match on {
        true => ProbeResult::info("CPUs may run above their nominal frequency (boost)")
            .effect("the frequency depends on temperature and on the number of busy CPUs: concurrent pairs slow each other, long runs become slower")
            .fix("echo 0 > /sys/devices/system/cpu/cpufreq/boost (intel_pstate: echo 1 > .../no_turbo) for stable results"),
        false => ProbeResult::fine("CPUs stay at their nominal frequency"),
    };
    Ok(said.seen(&file, if on { "boost is on" } else { "boost is off" }))
}

fn idle_states(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    // CPUs of one machine may differ: big and little, performance and efficiency cores.
    let mut deepest: Option<(u64, String, String)> = None;
    let (mut absent, mut seen) = (None, 0);
    for cpu in snapshot.numbered(CPUS, "cpu")? {
        let folder = format!("{CPUS}/{cpu}/cpuidle");
        let states = match snapshot.numbered(&folder, "state") {
            // A snapshot may lack some CPUs.
            Err(Unavailable::Absent(path)) => {
                absent = absent.or(Some(path));
                continue;
            }
            states => states?,
        };
        seen += 1;
        for state in states {
            let Some(latency) = snapshot.maybe_value::<u64>(&format!("{folder}/{state}/latency"))? else {
                continue;
            };
            let off = snapshot.maybe(&format!("{folder}/{state}/disable"))?.is_some_and(|text| text != "0");
            if !off && deepest.as_ref().is_none_or(|(most, ..)| latency > *most) {
                let name = snapshot.maybe(&format!("{folder}/{state}/name"))?;
                let name = format!("{} of {cpu}", name.unwrap_or_else(|| state.clone()));
                deepest = Some((latency, name, format!("{folder}/{state}/latency")));
            }
        }
    }
    let Some((latency, name, file)) = deepest else {
        return absent.map_or_else(
            || Ok(ProbeResult::fine("the kernel reports no idle states")),
            |path| Err(Unavailable::Absent(path)),
        );
    };
    if latency <= 10 {
        need_every_cpu(snapshot, seen)?;
    }
    const EFFECT: &str = "waking a thread on a CPU in deep idle takes that much longer, twice per round trip";
    const FIX: &str = "cpupower idle-set -D 10, or hold /dev/cpu_dma_latency open with 0 written to it, while measuring latency";
    let text = format!("the deepest idle state, {name}, takes {latency} us to leave");
    let said = match latency {
        ..=10 => ProbeResult::fine(text),
        11..=100 => ProbeResult::info(text).effect(EFFECT).fix(FIX),
        _ => ProbeResult::warning(text).effect(EFFECT).fix(FIX),
    };
    Ok(said.seen(&file, latency.to_string()))
}

fn idle_exit(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let wake = snapshot.facts().measured.wake.as_ref().ok_or(Unavailable::NotMeasured("wake-up latency"))?;
    let Wake { realtime, sleeps, p50_ns, p90_ns, p99_ns, max_ns } = wake;
    let us = |ns: &u64| *ns as f64 / 1000.0;
    let text =
        format!("a sleeping thread wakes {:.0} us late (median), {:.0} us at p99", us(p50_ns), us(p99_ns));
    let who = if *realtime { "a SCHED_FIFO thread" } else { "an ordinary thread" };
    const EFFECT: &str = "each call to a server sleeping on an idle CPU includes idle exit, interrupt and context \
                          switch; compare with the median of a call";
    const FIX: &str = "see cpu-idle-states, pressure-cpu and virtualisation for possible causes";
    let said = match (*p50_ns, *p99_ns) {
        (..100_000, ..1_000_000) => ProbeResult::fine(text),
        (..100_000, _) => ProbeResult::info(text).effect(EFFECT).fix(FIX),
        _ => ProbeResult::warning(text).effect(EFFECT).fix(FIX),
    };
    let quantiles = [p50_ns, p90_ns, p99_ns, max_ns].map(|ns| format!("{:.1}", us(ns))).join(" ");
    Ok(said.because("measured", format!("{who}, {sleeps} sleeps: p50 p90 p99 max {quantiles} us")))
}

/// A file that holds a CPU list.
fn list(snapshot: &Snapshot, file: &str) -> Result<Vec<u32>, Unavailable> {
    let text = snapshot.text(file)?;
    cpu_list(&text).ok_or_else(|| Unavailable::malformed(file, "not a list of CPUs"))
}

fn offline(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let present = list(snapshot, &format!("{CPUS}/present"))?;
    let online = list(snapshot, &format!("{CPUS}/online"))?;
    let off: Vec<u32> = present.iter().copied().filter(|cpu| !online.contains(cpu)).collect();
    let said = match off.as_slice() {
        [] => ProbeResult::fine(format!("all {} CPUs are online", online.len())),
        some => ProbeResult::warning(format!("CPUs {} are offline", ranges(some)))
            .effect("fewer CPUs are available for pairs; if CPUs go on- or offline during a test, its \
                     threads are moved and stopped for milliseconds")
            .fix("echo 1 > /sys/devices/system/cpu/cpuN/online for each; stop what takes them offline (thermal or hotplug governors)"),
    };
    Ok(said.seen(&format!("{CPUS}/online"), ranges(&online)))
}

fn smt(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let file = format!("{CPUS}/smt/active");
    let Some(active) = snapshot.maybe_value::<u32>(&file)? else {
        return Ok(ProbeResult::fine("the kernel reports no SMT"));
    };
    let said = match active {
        0 => ProbeResult::fine("CPUs do not share cores"),
        _ => ProbeResult::info("CPUs share cores (SMT)")
            .effect("two busy threads on one core slow each other by a third or more: results depend on placement")
            .fix("echo off > /sys/devices/system/cpu/smt/control for stable results"),
    };
    Ok(said.seen(&file, active.to_string()))
}

fn numa(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "sys/devices/system/node/online";
    let Some(text) = snapshot.maybe(FILE)? else { return Ok(ProbeResult::fine("there is one NUMA node")) };
    let nodes = cpu_list(&text).ok_or_else(|| Unavailable::malformed(FILE, "not a list of nodes"))?;
    let said = match nodes.len() {
        0 | 1 => ProbeResult::fine("there is one NUMA node"),
        count => ProbeResult::info(format!("there are {count} NUMA nodes"))
            .effect("pairs across two nodes copy and wake over the interconnect: times form two groups")
            .fix("numactl --cpunodebind=0 --membind=0"),
    };
    Ok(said.seen(FILE, text))
}
