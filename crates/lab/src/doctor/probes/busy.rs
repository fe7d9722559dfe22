//! Room: what else the machine is doing, and how hot and short of memory it is.
//! Not here: who uses binder (`users`), limits on this process (`sched`, `rights`).
//! Facts: `Documentation/accounting/psi.rst`; `Documentation/filesystems/proc.rst` (`loadavg`, `interrupts`,
//! `meminfo`, `swaps`); `Documentation/driver-api/thermal/sysfs-api.rst`.

use record::HostClass;

use super::machine::class;
use super::sched::CPUS;
use crate::doctor::parse::{cpu_list, device_interrupts, kibibytes, pressure};
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "load",
        looks_at: "the load of the last minute",
        source: "Documentation/filesystems/proc.rst: loadavg",
        proof: "cat /proc/loadavg; top",
        look: load,
    },
    Probe {
        id: "pressure-cpu",
        looks_at: "whether threads had to wait for a CPU in the last ten seconds",
        source: "Documentation/accounting/psi.rst",
        proof: "cat /proc/pressure/cpu",
        look: pressure_cpu,
    },
    Probe {
        id: "pressure-memory",
        looks_at: "whether threads had to wait for memory in the last ten seconds",
        source: "Documentation/accounting/psi.rst",
        proof: "cat /proc/pressure/memory",
        look: pressure_memory,
    },
    Probe {
        id: "pressure-io",
        looks_at: "whether threads had to wait for I/O in the last ten seconds",
        source: "Documentation/accounting/psi.rst",
        proof: "cat /proc/pressure/io",
        look: pressure_io,
    },
    Probe {
        id: "irq-placement",
        looks_at: "whether one CPU takes most device interrupts",
        source: "Documentation/filesystems/proc.rst: interrupts; Documentation/core-api/irq/irq-affinity.rst",
        proof: "cat /proc/interrupts; grep . /proc/irq/*/smp_affinity_list",
        look: interrupts,
    },
    Probe {
        id: "thermal",
        looks_at: "whether the machine is hot enough to be slowed down, or is slowed down",
        source: "Documentation/driver-api/thermal/sysfs-api.rst",
        proof: "grep . /sys/class/thermal/*/{type,temp,cur_state}",
        look: thermal,
    },
    Probe {
        id: "memory-free",
        looks_at: "how much memory is available",
        source: "Documentation/filesystems/proc.rst: meminfo, MemAvailable",
        proof: "free -h",
        look: memory,
    },
    Probe {
        id: "swap-used",
        looks_at: "whether memory was swapped out",
        source: "Documentation/filesystems/proc.rst: meminfo, SwapFree",
        proof: "swapon --show",
        look: swap,
    },
];

fn load(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "proc/loadavg";
    let text = snapshot.text(FILE)?;
    let load: Option<f64> = text.split_whitespace().next().and_then(|word| word.parse().ok());
    let load =
        load.ok_or_else(|| Unread::Nonsense(FILE.to_owned(), "it begins with no number".to_owned()))?;
    if matches!(class(snapshot), HostClass::Tcg | HostClass::Icount | HostClass::Kvm) {
        return Ok(Said::fine("a guest counts its own start as load; see pressure-cpu").seen(FILE, text));
    }
    let online = format!("{CPUS}/online");
    let counted = snapshot.maybe(&online)?.and_then(|text| cpu_list(&text)).map(|cpus| cpus.len());
    let cpus = counted.or(snapshot.facts().usable_cpus.map(|count| count as usize));
    let cpus = cpus.ok_or(Unread::Absent(online))?;
    let said = match load > cpus as f64 / 2.0 {
        true => Said::warning(format!("the machine is busy: load {load:.2} on {cpus} CPUs"))
            .effect("the test shares CPUs with other work: every number is too large, tails most of all")
            .fix("stop other work, or wait a minute for the average to fall"),
        false => Said::fine(format!("load {load:.2} on {cpus} CPUs")),
    };
    Ok(said.seen(FILE, text))
}

/// How much somebody waited for a resource in the last ten seconds, in percent; `None` where the kernel does
/// not tell.
fn waited(snapshot: &Snapshot, what: &str) -> Result<Option<(String, f64, String)>, Unread> {
    let file = format!("proc/pressure/{what}");
    let text = match snapshot.maybe(&file) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        // Without psi=1 at boot the files are there and refuse to be read.
        Err(Unread::Failed(_, why)) if why.contains("EOPNOTSUPP") => return Ok(None),
        Err(error) => return Err(error),
    };
    let percent = pressure(&text)
        .ok_or_else(|| Unread::Nonsense(file.clone(), "no line \"some avg10=...\"".to_owned()))?;
    Ok(Some((file, percent, text)))
}

/// What a probe of pressure says where there is none to be read.
fn no_pressure() -> Said {
    Said::fine("the kernel does not measure it (PSI is off; boot with psi=1)")
}

fn pressure_cpu(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some((file, percent, text)) = waited(snapshot, "cpu")? else { return Ok(no_pressure()) };
    const EFFECT: &str = "a woken client or server waits behind other work before it runs: tails are that work's, not binder's";
    const FIX: &str = "stop what runs (top), wait ten seconds, look again";
    let found = format!("in {percent:.0} % of the last ten seconds some thread waited for a CPU");
    let said = match percent {
        ..5.0 => Said::fine(found),
        5.0..40.0 => Said::warning(found).effect(EFFECT).fix(FIX),
        _ => Said::error(found).effect(EFFECT).fix(FIX),
    };
    Ok(said.seen(&file, text))
}

fn pressure_memory(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some((file, percent, text)) = waited(snapshot, "memory")? else { return Ok(no_pressure()) };
    let found = format!("in {percent:.0} % of the last ten seconds some thread waited for memory");
    let said = match percent {
        ..1.0 => Said::fine(found),
        _ => Said::warning(found)
            .effect("pages of binder's buffers are taken back and put in again in the middle of calls: milliseconds each")
            .fix("end what uses the memory"),
    };
    Ok(said.seen(&file, text))
}

fn pressure_io(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some((file, percent, text)) = waited(snapshot, "io")? else { return Ok(no_pressure()) };
    let found = format!("in {percent:.0} % of the last ten seconds some thread waited for I/O");
    let said = match percent {
        ..10.0 => Said::fine(found),
        _ => Said::info(found)
            .effect("its interrupts and kernel threads interrupt calls now and then: the worst cases, not the medians")
            .fix("let it finish"),
    };
    Ok(said.seen(&file, text))
}

/// Interrupts below which their distribution says nothing.
const FEW_INTERRUPTS: u64 = 10_000;

fn interrupts(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "proc/interrupts";
    let text = snapshot.text(FILE)?;
    let taken = device_interrupts(&text)
        .ok_or_else(|| Unread::Nonsense(FILE.to_owned(), "no head of CPUs".to_owned()))?;
    let total = taken.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let (cpu, most) = taken.iter().enumerate().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
    let share = *most as f64 / total.max(1) as f64;
    let percent = share * 100.0;
    let said = match taken.len() {
        0 | 1 => Said::fine("one CPU takes all interrupts, there being one"),
        _ if total < FEW_INTERRUPTS => {
            Said::fine(format!("{total} device interrupts since boot: too few to matter"))
        }
        _ if share > 0.8 => Said::info(format!(
            "CPU {cpu} took {percent:.0} % of all device interrupts since boot"
        ))
        .effect("what runs there is interrupted more often than elsewhere: pairs are unlike")
        .fix(format!(
            "run the test elsewhere (taskset), or move them (echo LIST > /proc/irq/N/smp_affinity_list); \
                          only interrupts that still come matter: watch /proc/interrupts on CPU {cpu}"
        )),
        _ => Said::fine(format!("device interrupts are spread: at most {percent:.0} % on one CPU")),
    };
    let each: Vec<String> = taken.iter().take(64).map(u64::to_string).collect();
    Ok(said.seen(FILE, format!("device interrupts of each CPU: {}", each.join(" "))))
}

fn thermal(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FOLDER: &str = "sys/class/thermal";
    for device in snapshot.numbered(FOLDER, "cooling_device")? {
        let kind = snapshot.maybe(&format!("{FOLDER}/{device}/type"))?.unwrap_or_default();
        let slows = ["processor", "cpufreq", "cpu", "thermal-cpu"]
            .iter()
            .any(|word| kind.to_lowercase().contains(word));
        let file = format!("{FOLDER}/{device}/cur_state");
        // Some drivers answer with errors; what cannot be read slows nothing down that could be told.
        let state = snapshot.text(&file).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        if slows && state > 0 {
            return Ok(Said::warning(format!(
                "the CPUs are slowed down to stay cool ({kind}, step {state})"
            ))
            .effect("clocks are lower than they could be, and change during the run")
            .fix("let it cool down, cool it better, or measure shorter")
            .seen(&file, state.to_string()));
        }
    }
    let (mut seen, mut hottest) = (0, None);
    for zone in snapshot.numbered(FOLDER, "thermal_zone")? {
        let file = format!("{FOLDER}/{zone}/temp");
        let Some(temperature) = snapshot.text(&file).ok().and_then(|text| text.parse::<i64>().ok()) else {
            continue;
        };
        seen += 1;
        for trip in 0..12 {
            let kind = snapshot.maybe(&format!("{FOLDER}/{zone}/trip_point_{trip}_type"))?;
            let Some(kind) = kind else { break };
            let limit = snapshot.text(&format!("{FOLDER}/{zone}/trip_point_{trip}_temp")).ok();
            let limit = limit.and_then(|text| text.parse::<i64>().ok()).filter(|limit| *limit > 0);
            if matches!(kind.as_str(), "passive" | "hot" | "critical")
                && limit.is_some_and(|limit| temperature >= limit)
            {
                hottest = Some((file.clone(), temperature, kind));
            }
        }
    }
    Ok(match hottest {
        Some((file, temperature, kind)) => {
            Said::warning(format!("it is hot: {:.0} °C, at its {kind} limit", temperature as f64 / 1000.0))
                .effect("the CPUs are slowed down, or about to be")
                .fix("let it cool down, cool it better, or measure shorter")
                .seen(&file, temperature.to_string())
        }
        None if seen == 0 => Said::fine("the kernel tells of no temperature"),
        None => Said::fine(format!("none of {seen} thermal zones is at its limit")),
    })
}

/// A size of `/proc/meminfo` in bytes.
fn size(text: &str, name: &str) -> Result<u64, Unread> {
    kibibytes(text, name)
        .ok_or_else(|| Unread::Nonsense(MEMINFO.to_owned(), format!("no line {name:?} in it")))
}

const MEMINFO: &str = "proc/meminfo";

fn memory(snapshot: &Snapshot) -> Result<Said, Unread> {
    let text = snapshot.text(MEMINFO)?;
    let (total, available) = (size(&text, "MemTotal")?, size(&text, "MemAvailable")?);
    let mib = available >> 20;
    let said = match available < total / 20 || mib < 64 {
        true => Said::warning(format!("little memory is available: {mib} MiB"))
            .effect("pages of binder's buffers are taken back by the shrinker and put in again in the middle of calls")
            .fix("end what uses the memory"),
        false => Said::fine(format!("{mib} MiB of memory are available")),
    };
    Ok(said.seen(MEMINFO, format!("MemTotal {} MiB, MemAvailable {mib} MiB", total >> 20)))
}

fn swap(snapshot: &Snapshot) -> Result<Said, Unread> {
    let text = snapshot.text(MEMINFO)?;
    let (total, free) = (size(&text, "SwapTotal")?, size(&text, "SwapFree")?);
    let used = total.saturating_sub(free) >> 20;
    let said = match used {
        0 => Said::fine("nothing is swapped out"),
        _ => Said::info(format!("{used} MiB are swapped out"))
            .effect("what was swapped out comes back with a fault in the middle of something: single very late calls; on \
                     phones, where swap is packed memory, as usual")
            .fix("swapoff -a, where memory suffices"),
    };
    Ok(said.seen(MEMINFO, format!("SwapTotal {} MiB, used {used} MiB", total >> 20)))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

    const LOAD: &str = "proc/loadavg";
    const ONLINE: (&str, &str) = ("sys/devices/system/cpu/online", "0-3\n");
    const CALM: &str =
        "some avg10=0.50 avg60=9.00 avg300=9.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    const SOME: &str = "some avg10=20.50 avg60=0.00 avg300=0.00 total=1\n";
    const MUCH: &str = "some avg10=80.00 avg60=0.00 avg300=0.00 total=1\n";
    const MEMINFO: &str = "proc/meminfo";
    const ZONE: &str = "sys/class/thermal/thermal_zone0/temp";
    const TRIP: (&str, &str) = ("sys/class/thermal/thermal_zone0/trip_point_0_type", "passive\n");
    const TRIP_AT: (&str, &str) = ("sys/class/thermal/thermal_zone0/trip_point_0_temp", "85000\n");

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("load", Warning, "load 2.50 on 4", &[(LOAD, "2.50 1.0 1.0 1/100 7\n"), ONLINE]),
        case("load", Ok, "load 0.10", &[(LOAD, "0.10 1.0 1.0 1/100 7\n"), ONLINE]),
        case(
            "load",
            Ok,
            "own start",
            &[(LOAD, "9.10 1.0 1.0 1/100 7\n"), ONLINE, (FACTS, r#""class":"tcg""#)],
        ),
        case("load", Unknown, "no number", &[(LOAD, "much\n"), ONLINE]),
        case("pressure-cpu", Error, "80 %", &[("proc/pressure/cpu", MUCH)]),
        case("pressure-cpu", Warning, "20 %", &[("proc/pressure/cpu", SOME)]),
        case("pressure-cpu", Ok, "", &[("proc/pressure/cpu", CALM)]),
        case("pressure-cpu", Ok, "psi=1", &[]),
        case("pressure-cpu", Unknown, "avg10", &[("proc/pressure/cpu", "some avg10=200\n")]),
        case("pressure-memory", Warning, "20 %", &[("proc/pressure/memory", SOME)]),
        case("pressure-memory", Ok, "", &[("proc/pressure/memory", CALM)]),
        case("pressure-io", Info, "80 %", &[("proc/pressure/io", MUCH)]),
        case("pressure-io", Ok, "", &[("proc/pressure/io", CALM)]),
        case(
            "irq-placement",
            Info,
            "CPU 1 took 91 %",
            &[("proc/interrupts", "  CPU0 CPU1\n 1: 1000 0 x\n 2: 0 10000 y\nLOC: 9 9\n")],
        ),
        case(
            "irq-placement",
            Ok,
            "spread",
            &[("proc/interrupts", "  CPU0 CPU1\n 1: 6000 5000 x\nLOC: 9 9\n")],
        ),
        case("irq-placement", Ok, "too few", &[("proc/interrupts", "  CPU0 CPU1\n 1: 60 0 x\n")]),
        case("irq-placement", Unknown, "no head", &[("proc/interrupts", "x")]),
        case("thermal", Warning, "90 °C", &[(ZONE, "90000\n"), TRIP, TRIP_AT]),
        case(
            "thermal",
            Warning,
            "step 3",
            &[
                ("sys/class/thermal/cooling_device0/type", "Processor\n"),
                ("sys/class/thermal/cooling_device0/cur_state", "3\n"),
            ],
        ),
        case("thermal", Ok, "none of 1", &[(ZONE, "50000\n"), TRIP, TRIP_AT]),
        case("thermal", Ok, "no temperature", &[]),
        case(
            "memory-free",
            Warning,
            "40 MiB",
            &[(MEMINFO, "MemTotal: 16384000 kB\nMemAvailable: 40960 kB\n")],
        ),
        case("memory-free", Ok, "", &[(MEMINFO, "MemTotal: 16384000 kB\nMemAvailable: 8192000 kB\n")]),
        case("memory-free", Unknown, "MemTotal", &[(MEMINFO, "x\n")]),
        case("swap-used", Info, "10 MiB", &[(MEMINFO, "SwapTotal: 20480 kB\nSwapFree: 10240 kB\n")]),
        case("swap-used", Ok, "nothing", &[(MEMINFO, "SwapTotal: 0 kB\nSwapFree: 0 kB\n")]),
    ];
}
