//! Virtualisation, and the cost of reading the clock.
//! Not here: load (`busy`).
//! Facts: `host::class`; `Documentation/filesystems/proc.rst` (`stat`: steal); clock sources that the vDSO supports:
//! `arch/x86/entry/vdso`, `Documentation/virt/kvm/x86/cpuid.rst`, `Documentation/timers/timekeeping.rst`;
//! `kernel/sched/features.h` (`DELAY_DEQUEUE`, 6.12).

use record::HostClass;

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::Release;
use host::parse::total_and_stolen;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "virtualisation",
        looks_at: "virtual machine",
        proof: "systemd-detect-virt; grep -o hypervisor /proc/cpuinfo | head -1",
        grounds: Grounds::Cited {
            source: "Documentation/virt/guest-halt-polling.rst",
            says: "leaving and entering the guest is a cost of each wake-up of an idle virtual CPU",
        },
        look: virtualisation,
    },
    Probe {
        id: "emulation",
        looks_at: "emulated CPUs",
        proof: "echo $BINDERPERF_HOST_CLASS",
        grounds: Grounds::Cited {
            source: "QEMU documentation, TCG emulation",
            says: "each instruction is translated and executed in software",
        },
        look: emulation,
    },
    Probe {
        id: "counting",
        looks_at: "repeatability of instruction counts",
        proof: "grep -w DELAY_DEQUEUE /sys/kernel/debug/sched/features",
        grounds: Grounds::Cited {
            source: "kernel/sched/features.h, DELAY_DEQUEUE",
            says: "a thread that sleeps may stay queued until it is picked or woken",
        },
        look: counting,
    },
    Probe {
        id: "steal-time",
        looks_at: "CPU time given to other guests (steal), measured",
        proof: "head -1 /proc/stat; vmstat 1 (column st)",
        grounds: Grounds::Cited {
            source: "Documentation/filesystems/proc.rst, /proc/stat",
            says: "involuntary wait: the host ran something else",
        },
        look: steal,
    },
    Probe {
        id: "clock-source",
        looks_at: "clock source of the kernel",
        proof: "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        grounds: Grounds::Cited {
            source: "Documentation/timers/timekeeping.rst",
            says: "sources differ in the time and the side effects of a reading",
        },
        look: clock_source,
    },
    Probe {
        id: "clock-cost",
        looks_at: "cost of a pair of clock readings, measured",
        proof: "binderperf doctor --all",
        grounds: Grounds::Measured {
            effect: "what a pair of clock readings costs on this machine",
            command: "binderperf doctor --all",
        },
        look: clock_cost,
    },
];

/// The host class of the snapshot.
pub(crate) fn class(snapshot: &Snapshot) -> HostClass {
    snapshot.facts().class.unwrap_or_else(|| host::class_of(None, snapshot.root()))
}

fn virtualisation(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let class = class(snapshot);
    if snapshot.facts().class.is_none() && class == HostClass::Bare {
        // On x86 its flags tell; elsewhere the maker of the board does.
        let tells = snapshot.text("proc/cpuinfo")?.lines().any(|line| line.starts_with("flags"));
        let others = ["sys/class/dmi/id/sys_vendor", "proc/device-tree/model"];
        if !tells && !others.iter().any(|file| snapshot.root().exists(file)) {
            return Err(Unavailable::NotShown(
                "neither the CPU's flags nor the board's maker are to be seen".to_owned(),
            ));
        }
    }
    let said = match class {
        HostClass::Bare => ProbeResult::fine("no hypervisor was detected"),
        HostClass::Tcg | HostClass::Icount => ProbeResult::fine("a guest with emulated CPUs: see emulation"),
        HostClass::Unknown => return Err(Unavailable::NotMeasured("the kind of machine")),
        HostClass::Virtual | HostClass::Kvm => ProbeResult::info("a virtual machine")
            .effect("interrupts between CPUs and idle exits go through the hypervisor: wake-ups cost several times as much as on \
                     hardware, and the host may take CPUs away unnoticed; compare only with the same kind of machine")
            .fix("measure on hardware for results about hardware"),
    };
    Ok(said.because("kind of machine", class.name()))
}

fn emulation(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let said = match snapshot.facts().class {
        Some(HostClass::Tcg) => ProbeResult::error("an emulated machine: timings are not real, only ratios within one run are meaningful")
            .effect("an instruction costs what its translation costs, and all CPUs share the host's; client and service \
                     shared one CPU, except for spinning")
            .fix("run on real hardware or under KVM, or count instructions with binderperf vm --icount"),
        Some(HostClass::Icount) => ProbeResult::info("an emulated machine whose clock counts instructions")
            .effect("counts are exact and repeatable, but not times"),
        Some(_) => ProbeResult::fine("no emulation was detected"),
        None => return Err(Unavailable::NotMeasured("emulation of the CPUs")),
    };
    Ok(said.because("kind of machine", snapshot.facts().class.map_or("not known", HostClass::name)))
}

const FEATURES: &str = "sys/kernel/debug/sched/features";

/// `binderperf vm --icount` disables the feature where possible.
fn counting(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    match snapshot.facts().class {
        Some(HostClass::Icount) => {}
        Some(_) => return Ok(ProbeResult::fine("no instructions are counted")),
        None => return Err(Unavailable::NotMeasured("whether instructions are counted")),
    }
    let release = snapshot.release();
    let (delays, how) = match snapshot.text(FEATURES) {
        Ok(features) => {
            (features.split_whitespace().any(|word| word == "DELAY_DEQUEUE"), "from its features")
        }
        Err(_) if Release::parse(&release) == Release(0, 0) => {
            return Err(Unavailable::absent("proc/sys/kernel/osrelease"));
        }
        Err(_) => (Release::parse(&release) >= Release(6, 12), "by its release, without debugfs"),
    };
    let said = match delays {
        true => ProbeResult::warning("the scheduler keeps some sleeping threads queued (DELAY_DEQUEUE): waking them takes another code path")
            .effect("medians of counted instructions may differ by 1.5 % between runs; compare treats 2 % as equal")
            .fix("use a kernel with CONFIG_DEBUG_FS=y, where binderperf vm --icount disables it"),
        false => ProbeResult::fine("a call takes the same path through the scheduler each time"),
    };
    Ok(said.seen("proc/sys/kernel/osrelease", release).because("known", how))
}

fn steal(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (share, how) = match snapshot.facts().measured.steal_share {
        Some(share) => (share, "measured now"),
        None => {
            let stat = snapshot.text("proc/stat")?;
            let (total, stolen) = total_and_stolen(&stat)
                .ok_or_else(|| Unavailable::malformed("proc/stat", "no cpu line with eight numbers"))?;
            (stolen as f64 / total.max(1) as f64, "since boot")
        }
    };
    let percent = share * 100.0;
    const EFFECT: &str = "the hypervisor ran other guests on these CPUs: any call may have gaps of milliseconds, which \
                          traces in the guest show as running";
    const FIX: &str = "use a host with one pinned CPU per guest CPU; or repeat until a run has no steal time";
    let said = match share {
        ..0.01 => {
            ProbeResult::fine(format!("the hypervisor gave {percent:.1} % of the CPU time to other guests"))
        }
        0.01..0.10 => ProbeResult::warning(format!(
            "the hypervisor gave {percent:.1} % of the CPU time to other guests"
        ))
        .effect(EFFECT)
        .fix(FIX),
        _ => {
            ProbeResult::error(format!("the hypervisor gave {percent:.0} % of the CPU time to other guests"))
                .effect(EFFECT)
                .fix(FIX)
        }
    };
    Ok(said.seen("proc/stat", format!("steal {percent:.2} %, {how}")))
}

/// Clock sources that need a device access or a trap per reading.
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];

fn clock_source(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = snapshot.text(FILE)?;
    let said = match SLOW_CLOCKS.contains(&source.as_str()) {
        true => ProbeResult::warning(format!("the clock source is {source}, which the vDSO cannot read"))
            .effect("each reading is a system call, often with a device access: a microsecond or more in each sample")
            .fix("find out why the kernel rejected the faster one (dmesg | grep -i clocksource); boot with tsc=reliable if \
                  it is known to be stable"),
        false => ProbeResult::fine(format!("the clock source is {source}")),
    };
    Ok(said.seen(FILE, source))
}

fn clock_cost(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let ns =
        snapshot.facts().measured.clock_pair_ns.ok_or(Unavailable::NotMeasured("the cost of the clock"))?;
    let text = format!("a pair of clock readings costs {ns:.0} ns");
    let said = match ns {
        ..300.0 => ProbeResult::fine(text),
        _ => ProbeResult::warning(text)
            .effect("each sample includes that much: short times (passthrough, spinning) are mostly clock")
            .fix("use a clock source that the vDSO can read; see clock-source"),
    };
    Ok(said.because("measured", format!("{ns:.1} ns, median of 21 groups")))
}
