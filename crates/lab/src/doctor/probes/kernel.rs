//! Room: the running kernel: version, how it preempts, taint, mitigations, tracing under way.
//! Not here: its debugging options (`kernel_options`), the scheduler (`sched`).
//! Facts: `/sys/kernel/debug/sched/preempt` and `kernel/Kconfig.preempt` (lazy since 6.13, RT in mainline
//! since 6.12); `Documentation/admin-guide/tainted-kernels.rst`; `Documentation/admin-guide/hw-vuln/`;
//! `Documentation/trace/ftrace.rst`.

use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};
use crate::host;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "kernel-version",
        looks_at: "the kernel's release",
        source: "Makefile: EXTRAVERSION, localversion",
        proof: "uname -r",
        look: version,
    },
    Probe {
        id: "kernel-preemption",
        looks_at: "how the kernel lets itself be preempted",
        source: "kernel/Kconfig.preempt; /sys/kernel/debug/sched/preempt",
        proof: "cat /sys/kernel/debug/sched/preempt; uname -v",
        look: preemption,
    },
    Probe {
        id: "kernel-rt",
        looks_at: "whether it is a real-time kernel (PREEMPT_RT)",
        source: "kernel/Kconfig.preempt; /sys/kernel/realtime",
        proof: "cat /sys/kernel/realtime; uname -v",
        look: realtime,
    },
    Probe {
        id: "kernel-taint",
        looks_at: "whether the kernel warned, crashed or loaded foreign modules since it booted",
        source: "Documentation/admin-guide/tainted-kernels.rst",
        proof: "cat /proc/sys/kernel/tainted; dmesg",
        look: taint,
    },
    Probe {
        id: "kernel-tracing",
        looks_at: "tracers and trace events that are on already",
        source: "Documentation/trace/ftrace.rst",
        proof: "cd /sys/kernel/tracing && cat current_tracer tracing_on set_event",
        look: tracing,
    },
    Probe {
        id: "mitigations",
        looks_at: "mitigations of processor vulnerabilities",
        source: "Documentation/admin-guide/hw-vuln/; Documentation/ABI/testing/sysfs-devices-system-cpu",
        proof: "grep . /sys/devices/system/cpu/vulnerabilities/*",
        look: mitigations,
    },
];

fn version(snapshot: &Snapshot) -> Result<Said, Unread> {
    let release = snapshot.release();
    if release.is_empty() {
        return Err(Unread::Absent("proc/sys/kernel/osrelease".to_owned()));
    }
    let said = if release.contains("-rc") {
        Said::info(format!("Linux {release} is a release candidate"))
            .effect("it may have defects and debugging that the release has not")
    } else if release.ends_with('+') || release.contains("-dirty") {
        Said::info(format!("Linux {release} was built from other sources than a release's"))
            .effect("its release name does not say what it is; keep the commit with the record (--context)")
    } else {
        Said::fine(format!("Linux {release}"))
    };
    Ok(said.seen("proc/sys/kernel/osrelease", release))
}

/// The model in force, and what tells it.
fn model(snapshot: &Snapshot) -> Result<(String, String, String), Unread> {
    let version = snapshot.maybe("proc/sys/kernel/version")?.unwrap_or_default();
    if let Some(model) = host::preemption_in_force(&snapshot.as_root(), &version) {
        let seen = match snapshot.maybe("sys/kernel/debug/sched/preempt") {
            Ok(Some(models)) if model != "rt" => ("sys/kernel/debug/sched/preempt", models),
            _ => ("proc/sys/kernel/version", version),
        };
        return Ok((model, seen.0.to_owned(), seen.1));
    }
    let config = snapshot.config()?;
    let (option, model) = host::preemption_as_built(config).ok_or_else(|| {
        Unread::Nonsense(
            config.source.trim_start_matches('/').to_owned(),
            "no CONFIG_PREEMPT* is set".to_owned(),
        )
    })?;
    // What was set since, where that can be done, is in a file that could not be read.
    let default =
        if config.is_on("PREEMPT_DYNAMIC") { ", the default of a kernel that can change it" } else { "" };
    Ok((
        model.to_owned(),
        config.source.trim_start_matches('/').to_owned(),
        format!("CONFIG_{option}=y{default}"),
    ))
}

fn preemption(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (model, file, says) = model(snapshot)?;
    let default = if says.contains("default") { " by default" } else { "" };
    let said = match model.as_str() {
        "none" => Said::warning(format!("the kernel does not let itself be preempted (none{default})"))
            .effect("a woken real-time thread waits until another thread's system call ends or reaches a gap, which can \
                     take milliseconds: worst cases, not medians, grow")
            .fix("boot with preempt=full (kernels with PREEMPT_DYNAMIC), or build with CONFIG_PREEMPT=y"),
        "voluntary" => Said::info("the kernel is preempted at chosen points only (voluntary)")
            .effect("a woken real-time thread waits for the next such point: worst cases are longer than on phones, \
                     whose kernels preempt fully")
            .fix("boot with preempt=full (kernels with PREEMPT_DYNAMIC), or build with CONFIG_PREEMPT=y"),
        "lazy" => Said::info("ordinary threads are preempted lazily, real-time ones at once (lazy)")
            .effect("among ordinary threads a woken server may wait until the running thread leaves the kernel, or for the next tick")
            .fix("boot with preempt=full to measure what a fully preemptible kernel does"),
        "full" => Said::fine("the kernel is fully preemptible"),
        "rt" => Said::fine("a real-time kernel"),
        other => return Err(Unread::Nonsense(file, format!("{other:?} is no model that is known"))),
    };
    Ok(said.seen(&file, says))
}

fn realtime(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (model, file, says) = model(snapshot)?;
    let said = match model.as_str() {
        "rt" => Said::info("a real-time kernel (PREEMPT_RT)")
            .effect("binder's spinlocks sleep and hand on priorities, interrupts are threads: worst cases are shorter, \
                     medians and throughput usually worse; compare with other such kernels only"),
        _ => Said::fine("no real-time kernel"),
    };
    Ok(said.seen(&file, says))
}

/// Bits of the taint that say something about the numbers, with the letter that the kernel prints.
const TAINTS: [(u32, &str); 6] = [
    (7, "D: it has had an oops"),
    (9, "W: it has warned"),
    (14, "L: a CPU was locked up"),
    (5, "B: a page was in a bad state"),
    (12, "O: a module from outside of its tree"),
    (0, "P: a proprietary module"),
];

fn taint(snapshot: &Snapshot) -> Result<Said, Unread> {
    let bits: u64 = snapshot.value("proc/sys/kernel/tainted")?;
    let found: Vec<&str> =
        TAINTS.iter().filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, why)| *why).collect();
    let said = match found.as_slice() {
        [] => Said::fine("nothing that would matter has happened to the kernel"),
        [first, ..] if "DWLB".contains(&first[..1]) => {
            Said::warning(format!("the kernel is tainted: {}", found.join("; ")))
                .effect(
                    "something went wrong since it booted; locks may be held, checks switched off, CPUs lost",
                )
                .fix("dmesg says what it was; boot anew before measuring")
        }
        _ => Said::info(format!("the kernel is tainted: {}", found.join("; ")))
            .effect("code that is not the kernel's own runs in it"),
    };
    Ok(said.seen("proc/sys/kernel/tainted", bits.to_string()))
}

fn tracing(snapshot: &Snapshot) -> Result<Said, Unread> {
    let folders = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
    let mut absent = None;
    for folder in folders {
        let tracer = match snapshot.text(&format!("{folder}/current_tracer")) {
            Ok(tracer) => tracer,
            Err(Unread::Absent(path)) => {
                absent = absent.or(Some(path));
                continue;
            }
            Err(error) => return Err(error),
        };
        let on = snapshot.maybe(&format!("{folder}/tracing_on"))?.is_none_or(|on| on != "0");
        let events = snapshot.maybe(&format!("{folder}/events/enable"))?.unwrap_or_default();
        let said = match (tracer.as_str(), events.as_str()) {
            _ if !on => Said::fine("tracing is off"),
            ("nop", "0" | "?" | "") => Said::fine("no tracer and no trace event is on"),
            ("nop", _) => Said::info("some trace events are on")
                .effect("each costs a fraction of a microsecond where it happens, on binder's path, too")
                .fix(format!("echo 0 > /{folder}/tracing_on, unless a trace is what you want")),
            (tracer, _) => Said::warning(format!("the tracer {tracer} is on"))
                .effect("it records on the kernel's hot paths: calls take a multiple of their time")
                .fix(format!("echo nop > /{folder}/current_tracer")),
        };
        return Ok(said
            .seen(&format!("{folder}/current_tracer"), tracer)
            .seen(&format!("{folder}/events/enable"), events));
    }
    Err(Unread::Absent(absent.unwrap_or_default()))
}

fn mitigations(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let names = snapshot.names(FOLDER);
    if names.is_empty() {
        return Err(Unread::Absent(FOLDER.to_owned()));
    }
    let mut on = Vec::new();
    for name in &names {
        let text = snapshot.text(&format!("{FOLDER}/{name}"))?;
        if let Some(how) = text.strip_prefix("Mitigation: ") {
            on.push(format!("{name}: {how}"));
        }
    }
    let said = match on.len() {
        0 => Said::fine("no mitigation is in force"),
        count => Said::info(format!("{count} mitigations of processor vulnerabilities are in force"))
            .effect("each entry to the kernel and each switch between processes costs more, and a call has several of \
                     each; compare with machines that have the same ones only")
            .fix("boot with mitigations=off on a machine that runs nothing foreign, to see what they cost"),
    };
    Ok(said.seen(FOLDER, on.join("; ")))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, Verdict::*, case};

    const RELEASE: &str = "proc/sys/kernel/osrelease";
    const PREEMPT: &str = "sys/kernel/debug/sched/preempt";
    const TAINTED: &str = "proc/sys/kernel/tainted";
    const TRACER: &str = "sys/kernel/tracing/current_tracer";
    const EVENTS: &str = "sys/kernel/tracing/events/enable";
    const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities/meltdown";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("kernel-version", Info, "candidate", &[(RELEASE, "6.19.0-rc3\n")]),
        case("kernel-version", Info, "other sources", &[(RELEASE, "6.19.0-00012-g123-dirty\n")]),
        case("kernel-version", Ok, "6.1.0-38", &[(RELEASE, "6.1.0-38-amd64\n")]),
        case("kernel-version", Ok, "5.10.1", &[("proc/version", "Linux version 5.10.1 (x@y) #1\n")]),
        case("kernel-preemption", Warning, "none", &[(PREEMPT, "(none) voluntary full lazy\n")]),
        case("kernel-preemption", Info, "voluntary", &[(PREEMPT, "none (voluntary) full\n")]),
        case("kernel-preemption", Info, "lazy", &[("proc/config", "CONFIG_PREEMPT_LAZY=y\n")]),
        case("kernel-preemption", Ok, "fully", &[("proc/sys/kernel/version", "#1 SMP PREEMPT x\n")]),
        case("kernel-preemption", Ok, "real-time", &[("sys/kernel/realtime", "1\n")]),
        case("kernel-preemption", Unknown, "", &[("proc/sys/kernel/version", "#1 SMP x\n")]),
        case("kernel-rt", Info, "PREEMPT_RT", &[("sys/kernel/realtime", "1\n")]),
        case("kernel-rt", Ok, "no real-time", &[(PREEMPT, "none voluntary (full)\n")]),
        case("kernel-taint", Warning, "W: it has warned", &[(TAINTED, "512\n")]),
        case("kernel-taint", Info, "O: a module", &[(TAINTED, "4096\n")]),
        case("kernel-taint", Ok, "nothing", &[(TAINTED, "0\n")]),
        case("kernel-taint", Unknown, "no value", &[(TAINTED, "W\n")]),
        case("kernel-tracing", Warning, "function", &[(TRACER, "function\n"), (EVENTS, "0\n")]),
        case("kernel-tracing", Info, "events", &[(TRACER, "nop\n"), (EVENTS, "X\n")]),
        case("kernel-tracing", Ok, "", &[(TRACER, "nop\n"), (EVENTS, "0\n")]),
        case(
            "kernel-tracing",
            Ok,
            "off",
            &[(TRACER, "function\n"), (EVENTS, "1\n"), ("sys/kernel/tracing/tracing_on", "0\n")],
        ),
        case("kernel-tracing", Unknown, "current_tracer", &[]),
        case("mitigations", Info, "1 mitigation", &[(VULNERABILITIES, "Mitigation: PTI\n")]),
        case("mitigations", Ok, "no mitigation", &[(VULNERABILITIES, "Not affected\n")]),
        case("mitigations", Unknown, "", &[]),
    ];
}
