//! Room: what kind of machine it is, and what it costs to read its clock.
//! Not here: how busy it is (`busy`).
//! Facts: `host::class`; `Documentation/filesystems/proc.rst` (`stat`: steal); clock sources that the vDSO can
//! read: `arch/x86/entry/vdso`, `Documentation/virt/kvm/x86/cpuid.rst`.

use record::HostClass;

use crate::conformance::Release;
use crate::doctor::parse::total_and_stolen;
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};
use crate::host;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "virtualisation",
        looks_at: "whether it is a virtual machine",
        source: "/proc/cpuinfo: hypervisor; DMI; device tree",
        proof: "systemd-detect-virt; grep -o hypervisor /proc/cpuinfo | head -1",
        look: virtualisation,
    },
    Probe {
        id: "emulation",
        looks_at: "whether its CPUs are emulated",
        source: "binderperf vm tells its guests; DMI otherwise does not tell",
        proof: "echo $BINDERPERF_HOST_CLASS",
        look: emulation,
    },
    Probe {
        id: "counting",
        looks_at: "whether counted instructions of the same call are the same each time",
        source: "kernel/sched/features.h: DELAY_DEQUEUE (6.12)",
        proof: "grep -w DELAY_DEQUEUE /sys/kernel/debug/sched/features",
        look: counting,
    },
    Probe {
        id: "steal-time",
        looks_at: "CPU time that a hypervisor gave to others, measured",
        source: "Documentation/filesystems/proc.rst: /proc/stat, steal",
        proof: "head -1 /proc/stat; vmstat 1 (column st)",
        look: steal,
    },
    Probe {
        id: "clock-source",
        looks_at: "what the kernel reads the time from",
        source: "Documentation/timers/timekeeping.rst; vDSO of each architecture",
        proof: "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        look: clock_source,
    },
    Probe {
        id: "clock-cost",
        looks_at: "what a pair of clock readings costs, measured",
        source: "clock_gettime(2), vdso(7)",
        proof: "binderperf doctor --all",
        look: clock_cost,
    },
];

/// What kind of machine the snapshot is of.
pub(in crate::doctor) fn class(snapshot: &Snapshot) -> HostClass {
    for file in [
        "proc/cpuinfo",
        "sys/hypervisor/type",
        "sys/class/dmi/id/sys_vendor",
        "sys/class/dmi/id/product_name",
    ] {
        // Asked for here, so that a snapshot holds them.
        let _ = snapshot.exists(file);
    }
    snapshot.facts().class.unwrap_or_else(|| host::class_of(None, &snapshot.as_root()))
}

fn virtualisation(snapshot: &Snapshot) -> Result<Said, Unread> {
    let class = class(snapshot);
    if snapshot.facts().class.is_none() && !snapshot.exists("proc/cpuinfo") {
        return Err(Unread::Absent("proc/cpuinfo".to_owned()));
    }
    let said = match class {
        HostClass::Bare => Said::fine("no hypervisor is seen"),
        HostClass::Tcg | HostClass::Icount => Said::fine("a guest with emulated CPUs: see emulation"),
        HostClass::Virtual | HostClass::Kvm => Said::info("a virtual machine")
            .effect("interrupts between CPUs and the way out of idle go through the hypervisor: wake-ups cost a multiple of a \
                     real machine's, and the host takes CPUs away without a word; compare with the same kind of machine only")
            .fix("measure on hardware what shall be said about hardware"),
    };
    Ok(said.because("kind of machine", class.name()))
}

fn emulation(snapshot: &Snapshot) -> Result<Said, Unread> {
    let said = match snapshot.facts().class {
        Some(HostClass::Tcg) => Said::error("an emulated machine: timings are not real, only ratios within one run tell something")
            .effect("instructions cost what their translation costs, and all CPUs share the host's; client and service shared \
                     one CPU, except for spinning")
            .fix("run on real hardware or under KVM, or count instructions with binderperf vm --icount"),
        Some(HostClass::Icount) => Said::info("an emulated machine whose clock counts instructions")
            .effect("counts are exact and repeat; nothing in them is time"),
        Some(_) => Said::fine("CPUs are not emulated, as far as can be seen"),
        None => return Err(Unread::NotMeasured("whether the CPUs are emulated")),
    };
    Ok(said.because("kind of machine", snapshot.facts().class.map_or("not known", HostClass::name)))
}

const FEATURES: &str = "sys/kernel/debug/sched/features";

/// `binderperf vm --icount` switches it off where it can.
fn counting(snapshot: &Snapshot) -> Result<Said, Unread> {
    if snapshot.facts().class != Some(HostClass::Icount) {
        return Ok(Said::fine("no instructions are counted"));
    }
    let release = snapshot.release();
    let (delays, how) = match snapshot.text(FEATURES) {
        Ok(features) => (features.split_whitespace().any(|word| word == "DELAY_DEQUEUE"), "of its features"),
        Err(_) => (Release::parse(&release) >= Release(6, 12), "by its age, for there is no debugfs"),
    };
    let said = match delays {
        true => Said::warning("the scheduler keeps some sleeping threads on its list (DELAY_DEQUEUE): waking them takes another way")
            .effect("a median of counted instructions may differ by 1.5 % from one run to the next; compare takes 2 % for the same")
            .fix("a kernel with CONFIG_DEBUG_FS=y: binderperf vm --icount switches it off there"),
        false => Said::fine("a call takes the same way through the scheduler each time"),
    };
    Ok(said.seen("proc/sys/kernel/osrelease", release).because("known", how))
}

fn steal(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (share, how) = match snapshot.facts().measured.steal_share {
        Some(share) => (share, "measured just now"),
        None => {
            let stat = snapshot.text("proc/stat")?;
            let (total, stolen) = total_and_stolen(&stat).ok_or_else(|| {
                Unread::Nonsense("proc/stat".to_owned(), "no line cpu with eight numbers".to_owned())
            })?;
            (stolen as f64 / total.max(1) as f64, "since it booted")
        }
    };
    let percent = share * 100.0;
    const EFFECT: &str = "the hypervisor ran others on this machine's CPUs: gaps of milliseconds in any call, which the \
                          guest's own traces show as running";
    const FIX: &str = "a host with a CPU for each of the guest's, pinned; or repeat until a run has none";
    let said = match share {
        ..0.01 => Said::fine(format!("a hypervisor gave {percent:.1} % of the CPU time to others")),
        0.01..0.10 => Said::warning(format!("a hypervisor gave {percent:.1} % of the CPU time to others"))
            .effect(EFFECT)
            .fix(FIX),
        _ => Said::error(format!("a hypervisor gave {percent:.0} % of the CPU time to others"))
            .effect(EFFECT)
            .fix(FIX),
    };
    Ok(said.seen("proc/stat", format!("steal {percent:.2} %, {how}")))
}

/// Clock sources that need a device or a trap for each reading.
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];

fn clock_source(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = snapshot.text(FILE)?;
    let said = match SLOW_CLOCKS.contains(&source.as_str()) {
        true => Said::warning(format!("the time is read from {source}, which the vDSO cannot read"))
            .effect("each reading is a system call, often with a device access: a microsecond or more in each sample")
            .fix("find out why the kernel left the faster one (dmesg | grep -i clocksource); boot with tsc=reliable where \
                  it is known to be steady"),
        false => Said::fine(format!("the time is read from {source}")),
    };
    Ok(said.seen(FILE, source))
}

fn clock_cost(snapshot: &Snapshot) -> Result<Said, Unread> {
    let ns = snapshot.facts().measured.clock_pair_ns.ok_or(Unread::NotMeasured("what the clock costs"))?;
    let text = format!("a pair of clock readings costs {ns:.0} ns");
    let said = match ns {
        ..300.0 => Said::fine(text),
        _ => Said::warning(text)
            .effect("that much is in each sample: short times (passthrough, spinning) are mostly clock")
            .fix("a clock source that the vDSO reads; see clock-source"),
    };
    Ok(said.because("measured", format!("{ns:.1} ns, median of 21 groups")))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

    const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    const RELEASE: &str = "proc/sys/kernel/osrelease";
    const COUNTED: &str = r#""class":"icount""#;
    const CPUINFO: &str = "proc/cpuinfo";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("virtualisation", Info, "virtual machine", &[(CPUINFO, "flags\t\t: fpu hypervisor\n")]),
        case("virtualisation", Ok, "no hypervisor", &[(CPUINFO, "flags\t\t: fpu\n")]),
        case("virtualisation", Info, "virtual machine", &[(FACTS, r#""class":"kvm""#)]),
        case("virtualisation", Unknown, "cpuinfo", &[]),
        case("emulation", Error, "timings are not real", &[(FACTS, r#""class":"tcg""#)]),
        case("emulation", Info, "counts", &[(FACTS, r#""class":"icount""#)]),
        case("emulation", Ok, "", &[(FACTS, r#""class":"bare""#)]),
        case("emulation", Unknown, "not measured", &[]),
        case("counting", Ok, "no instructions", &[(FACTS, r#""class":"tcg""#)]),
        case(
            "counting",
            Ok,
            "the same way",
            &[(FACTS, COUNTED), (super::FEATURES, "PLACE_LAG NO_DELAY_DEQUEUE\n"), (RELEASE, "7.2.13\n")],
        ),
        case(
            "counting",
            Warning,
            "DELAY_DEQUEUE",
            &[(FACTS, COUNTED), (super::FEATURES, "PLACE_LAG DELAY_DEQUEUE\n")],
        ),
        case("counting", Ok, "the same way", &[(FACTS, COUNTED), (RELEASE, "6.1.0-50\n")]),
        case("counting", Warning, "DELAY_DEQUEUE", &[(FACTS, COUNTED), (RELEASE, "6.12.1\n")]),
        case("steal-time", Error, "30 %", &[(FACTS, r#""measured":{"steal_share":0.3}"#)]),
        case("steal-time", Warning, "5.0 %", &[("proc/stat", "cpu  90 0 0 5 0 0 0 5 0 0\n")]),
        case("steal-time", Ok, "0.0 %", &[(FACTS, r#""measured":{"steal_share":0.0}"#)]),
        case("steal-time", Unknown, "eight numbers", &[("proc/stat", "cpu 1\n")]),
        case("clock-source", Warning, "hpet", &[(SOURCE, "hpet\n")]),
        case("clock-source", Ok, "tsc", &[(SOURCE, "tsc\n")]),
        case("clock-cost", Warning, "2400 ns", &[(FACTS, r#""measured":{"clock_pair_ns":2400.0}"#)]),
        case("clock-cost", Ok, "50 ns", &[(FACTS, r#""measured":{"clock_pair_ns":50.0}"#)]),
        case("clock-cost", Unknown, "not measured", &[]),
    ];
}
