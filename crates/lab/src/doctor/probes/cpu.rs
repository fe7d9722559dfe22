//! Room: the CPUs: clock, idle states and the way out of them, which are there, threads of a core, nodes.
//! Not here: how threads are placed on them (`sched`), mitigations (`kernel`).
//! Facts: `Documentation/admin-guide/pm/cpufreq.rst`, `intel_pstate.rst`, `cpuidle.rst`;
//! `Documentation/ABI/testing/sysfs-devices-system-cpu`; `Documentation/core-api/cpu_hotplug.rst`.

use super::sched::CPUS;
use crate::doctor::facts::Wake;
use crate::doctor::parse::{cpu_list, ranges};
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "cpu-governor",
        looks_at: "the governors of the CPUs' clocks",
        source: "Documentation/admin-guide/pm/cpufreq.rst: scaling_governor",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        look: governor,
    },
    Probe {
        id: "cpu-frequency-limit",
        looks_at: "whether the CPUs' clocks are kept below what they can do",
        source: "Documentation/admin-guide/pm/cpufreq.rst: scaling_max_freq, cpuinfo_max_freq",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpufreq/{scaling,cpuinfo}_max_freq",
        look: frequency_limit,
    },
    Probe {
        id: "cpu-boost",
        looks_at: "clocks above the nominal one (turbo, boost)",
        source: "Documentation/admin-guide/pm/cpufreq.rst: boost; intel_pstate.rst: no_turbo",
        proof: "cat /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo",
        look: boost,
    },
    Probe {
        id: "cpu-idle-states",
        looks_at: "how long the way out of the deepest idle state takes, by the driver's word",
        source: "Documentation/admin-guide/pm/cpuidle.rst: latency, disable",
        proof: "grep . /sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,disable}",
        look: idle_states,
    },
    Probe {
        id: "cpu-idle-exit",
        looks_at: "how late a sleeping thread is woken, measured",
        source: "clock_nanosleep(2) without timer slack",
        proof: "binderperf doctor --all; cyclictest -m -p 1 -i 3000",
        look: idle_exit,
    },
    Probe {
        id: "cpu-offline",
        looks_at: "CPUs that are there and switched off",
        source: "Documentation/core-api/cpu_hotplug.rst: present, online",
        proof: "cat /sys/devices/system/cpu/present /sys/devices/system/cpu/online",
        look: offline,
    },
    Probe {
        id: "cpu-smt",
        looks_at: "whether CPUs are threads that share a core",
        source: "Documentation/ABI/testing/sysfs-devices-system-cpu: smt/active",
        proof: "cat /sys/devices/system/cpu/smt/active",
        look: smt,
    },
    Probe {
        id: "numa",
        looks_at: "memory in several nodes",
        source: "Documentation/ABI/stable/sysfs-devices-node",
        proof: "cat /sys/devices/system/node/online",
        look: numa,
    },
];

/// A file of each CPU's, with its CPU's number; CPUs without it are left out.
fn of_each(snapshot: &Snapshot, file: &str) -> Result<Vec<(u32, String)>, Unread> {
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

fn governor(snapshot: &Snapshot) -> Result<Said, Unread> {
    let governors = of_each(snapshot, "cpufreq/scaling_governor")?;
    if governors.is_empty() {
        return Ok(Said::fine("Linux does not govern the CPUs' clocks"));
    }
    let mut others: Vec<&str> =
        governors.iter().map(|(_, name)| name.as_str()).filter(|name| *name != "performance").collect();
    others.sort_unstable();
    others.dedup();
    let said = match others.as_slice() {
        [] => Said::fine("all clocks are governed by performance"),
        some => Said::warning(format!("CPU frequency is governed by {}", some.join(", ")))
            .effect("clocks follow the load: the first cases may run slower than the last, calls with pauses between them \
                     slower than calls without")
            .fix("echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    };
    let all: Vec<String> = governors.iter().map(|(cpu, name)| format!("cpu{cpu} {name}")).collect();
    Ok(said.because("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", all.join(" ")))
}

fn frequency_limit(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (mut limited, mut evidence) = (Vec::new(), Vec::new());
    for (cpu, most) in of_each(snapshot, "cpufreq/cpuinfo_max_freq")? {
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
        return Ok(Said::fine("no clock is kept below what it can do"));
    }
    Ok(Said::warning(format!("the clocks of the CPUs {} are kept below what they can do", ranges(&limited)))
        .effect("everything takes longer by that ratio; a thermal limit comes and goes during the run")
        .fix("let it cool down; cat cpuinfo_max_freq > scaling_max_freq")
        .because("/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq", evidence.join("; ")))
}

fn number(text: &str, cpu: u32, file: &str) -> Result<u64, Unread> {
    let path = || format!("{CPUS}/cpu{cpu}/cpufreq/{file}");
    text.parse().map_err(|_| Unread::Nonsense(path(), "it is no number".to_owned()))
}

fn boost(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (boost, no_turbo) = (format!("{CPUS}/cpufreq/boost"), format!("{CPUS}/intel_pstate/no_turbo"));
    let (file, on) = match (snapshot.maybe(&boost)?, snapshot.maybe(&no_turbo)?) {
        (Some(text), _) => (boost, text == "1"),
        (_, Some(text)) => (no_turbo, text == "0"),
        _ => return Ok(Said::fine("Linux does not control clocks above the nominal one")),
    };
    let said = match on {
        true => Said::info("CPUs may run above their nominal clock (boost)")
            .effect("how fast depends on temperature and on how many CPUs work: pairs slow each other, long runs slow down")
            .fix("echo 0 > /sys/devices/system/cpu/cpufreq/boost (intel_pstate: echo 1 > .../no_turbo) for steady numbers"),
        false => Said::fine("CPUs stay at their nominal clock"),
    };
    Ok(said.seen(&file, if on { "boost is on" } else { "boost is off" }))
}

fn idle_states(snapshot: &Snapshot) -> Result<Said, Unread> {
    // CPUs of one machine differ: big and small, performance and efficiency.
    let mut deepest: Option<(u64, String, String)> = None;
    let mut absent = None;
    for cpu in snapshot.numbered(CPUS, "cpu")? {
        let folder = format!("{CPUS}/{cpu}/cpuidle");
        let states = match snapshot.numbered(&folder, "state") {
            // A snapshot need not have every CPU's.
            Err(Unread::Absent(path)) => {
                absent = absent.or(Some(path));
                continue;
            }
            states => states?,
        };
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
            || Ok(Said::fine("the kernel tells of no idle states")),
            |path| Err(Unread::Absent(path)),
        );
    };
    const EFFECT: &str =
        "a call that wakes a thread on a CPU which slept deeply takes that much longer, twice per round trip";
    const FIX: &str = "cpupower idle-set -D 10, or hold /dev/cpu_dma_latency open with 0 written to it, while measuring latency";
    let text = format!("the deepest idle state, {name}, takes {latency} us to leave");
    let said = match latency {
        ..=10 => Said::fine(text),
        11..=100 => Said::info(text).effect(EFFECT).fix(FIX),
        _ => Said::warning(text).effect(EFFECT).fix(FIX),
    };
    Ok(said.seen(&file, latency.to_string()))
}

fn idle_exit(snapshot: &Snapshot) -> Result<Said, Unread> {
    let wake =
        snapshot.facts().measured.wake.as_ref().ok_or(Unread::NotMeasured("how late sleepers are woken"))?;
    let Wake { realtime, sleeps, p50_ns, p90_ns, p99_ns, max_ns } = wake;
    let us = |ns: &u64| *ns as f64 / 1000.0;
    let text =
        format!("a sleeping thread is woken {:.0} us late (median), {:.0} us at p99", us(p50_ns), us(p99_ns));
    let who = if *realtime { "a SCHED_FIFO thread" } else { "an ordinary thread" };
    const EFFECT: &str = "the way out of idle, the interrupt and the switch are part of each call that finds its server \
                          asleep on an idle CPU; compare with the median of a call";
    const FIX: &str = "see cpu-idle-states, pressure-cpu and virtualisation for what makes it so long";
    let said = match (*p50_ns, *p99_ns) {
        (..100_000, ..1_000_000) => Said::fine(text),
        (..100_000, _) => Said::info(text).effect(EFFECT).fix(FIX),
        _ => Said::warning(text).effect(EFFECT).fix(FIX),
    };
    let quantiles = [p50_ns, p90_ns, p99_ns, max_ns].map(|ns| format!("{:.1}", us(ns))).join(" ");
    Ok(said.because("measured", format!("{who}, {sleeps} sleeps: p50 p90 p99 max {quantiles} us")))
}

/// The CPUs of a list in a file.
fn list(snapshot: &Snapshot, file: &str) -> Result<Vec<u32>, Unread> {
    let text = snapshot.text(file)?;
    cpu_list(&text).ok_or_else(|| Unread::Nonsense(file.to_owned(), "it is no list of CPUs".to_owned()))
}

fn offline(snapshot: &Snapshot) -> Result<Said, Unread> {
    let present = list(snapshot, &format!("{CPUS}/present"))?;
    let online = list(snapshot, &format!("{CPUS}/online"))?;
    let off: Vec<u32> = present.iter().copied().filter(|cpu| !online.contains(cpu)).collect();
    let said = match off.as_slice() {
        [] => Said::fine(format!("all {} CPUs are online", online.len())),
        some => Said::warning(format!("the CPUs {} are switched off", ranges(some)))
            .effect("there is less room for pairs than the machine has; if something switches CPUs while a test runs, its \
                     threads are moved and stopped for milliseconds")
            .fix("echo 1 > /sys/devices/system/cpu/cpuN/online for each; stop what switches them off (thermal, hotplug governors)"),
    };
    Ok(said.seen(&format!("{CPUS}/online"), ranges(&online)))
}

fn smt(snapshot: &Snapshot) -> Result<Said, Unread> {
    let file = format!("{CPUS}/smt/active");
    let Some(active) = snapshot.maybe_value::<u32>(&file)? else {
        return Ok(Said::fine("the kernel does not tell of threads that share a core"));
    };
    let said = match active {
        0 => Said::fine("no CPU shares its core"),
        _ => Said::info("CPUs share cores (SMT)")
            .effect("two busy threads of one core slow each other by a third or more: numbers depend on placement")
            .fix("echo off > /sys/devices/system/cpu/smt/control for steady numbers"),
    };
    Ok(said.seen(&file, active.to_string()))
}

fn numa(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "sys/devices/system/node/online";
    let Some(text) = snapshot.maybe(FILE)? else { return Ok(Said::fine("memory is in one node")) };
    let nodes =
        cpu_list(&text).ok_or_else(|| Unread::Nonsense(FILE.to_owned(), "no list of nodes".to_owned()))?;
    let said = match nodes.len() {
        0 | 1 => Said::fine("memory is in one node"),
        count => Said::info(format!("memory is in {count} nodes"))
            .effect(
                "a pair across two nodes copies and wakes over the link between them: two groups of times",
            )
            .fix("numactl --cpunodebind=0 --membind=0"),
    };
    Ok(said.seen(FILE, text))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

    const GOVERNOR_0: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    const GOVERNOR_10: &str = "sys/devices/system/cpu/cpu10/cpufreq/scaling_governor";
    const ABLE: (&str, &str) = ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3000000\n");
    const ALLOWED: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
    const STATE: &str = "sys/devices/system/cpu/cpu0/cpuidle/state2/latency";
    const PRESENT: (&str, &str) = ("sys/devices/system/cpu/present", "0-3\n");
    const ONLINE: &str = "sys/devices/system/cpu/online";
    const QUICK: &str = r#""measured":{"wake":{"realtime":true,"sleeps":100,"p50_ns":9000,"p90_ns":12000,"p99_ns":50000,"max_ns":90000}}"#;
    const SLOW: &str = r#""measured":{"wake":{"realtime":false,"sleeps":100,"p50_ns":150000,"p90_ns":200000,"p99_ns":400000,"max_ns":900000}}"#;

    pub(in crate::doctor) const CASES: &[Case] = &[
        case(
            "cpu-governor",
            Warning,
            "schedutil",
            &[(GOVERNOR_0, "performance\n"), (GOVERNOR_10, "schedutil\n")],
        ),
        case("cpu-governor", Ok, "performance", &[(GOVERNOR_0, "performance\n")]),
        case("cpu-governor", Ok, "does not govern", &[]),
        case("cpu-frequency-limit", Warning, "CPUs 0", &[ABLE, (ALLOWED, "1800000\n")]),
        case("cpu-frequency-limit", Ok, "", &[ABLE, (ALLOWED, "3000000\n")]),
        case("cpu-frequency-limit", Unknown, "no number", &[ABLE, (ALLOWED, "fast\n")]),
        case("cpu-boost", Info, "above", &[("sys/devices/system/cpu/cpufreq/boost", "1\n")]),
        case("cpu-boost", Info, "above", &[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")]),
        case("cpu-boost", Ok, "nominal", &[("sys/devices/system/cpu/cpufreq/boost", "0\n")]),
        case("cpu-idle-states", Warning, "890 us", &[(STATE, "890\n")]),
        case("cpu-idle-states", Info, "50 us", &[(STATE, "50\n")]),
        case(
            "cpu-idle-states",
            Ok,
            "1 us",
            &[
                (STATE, "890\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "1\n"),
            ],
        ),
        case(
            "cpu-idle-states",
            Warning,
            "of cpu4, takes 3000 us",
            &[(STATE, "1\n"), ("sys/devices/system/cpu/cpu4/cpuidle/state1/latency", "3000\n")],
        ),
        case("cpu-idle-states", Ok, "no idle states", &[]),
        case("cpu-idle-exit", Warning, "150 us", &[(FACTS, SLOW)]),
        case("cpu-idle-exit", Ok, "9 us", &[(FACTS, QUICK)]),
        case("cpu-idle-exit", Unknown, "not measured", &[]),
        case("cpu-offline", Warning, "CPUs 2-3", &[PRESENT, (ONLINE, "0-1\n")]),
        case("cpu-offline", Ok, "all 4", &[PRESENT, (ONLINE, "0-3\n")]),
        case("cpu-offline", Unknown, "no list", &[PRESENT, (ONLINE, "some\n")]),
        case("cpu-smt", Info, "share", &[("sys/devices/system/cpu/smt/active", "1\n")]),
        case("cpu-smt", Ok, "", &[("sys/devices/system/cpu/smt/active", "0\n")]),
        case("numa", Info, "2 nodes", &[("sys/devices/system/node/online", "0-1\n")]),
        case("numa", Ok, "one", &[("sys/devices/system/node/online", "0\n")]),
    ];
}
