//! The running kernel: version, preemption model, taint, mitigations, active tracing.
//! Not here: debugging options (`kernel_options`), the scheduler (`sched`).
//! Facts: `/sys/kernel/debug/sched/preempt` and `kernel/Kconfig.preempt` (lazy since 6.13, RT in mainline
//! since 6.12); `Documentation/admin-guide/tainted-kernels.rst`; `Documentation/admin-guide/hw-vuln/`;
//! `Documentation/trace/ftrace.rst`.

use crate::probe::{Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};

pub(super) const PROBES: &[Probe] = &[
    Probe { id: "kernel-version", looks_at: "the kernel's release", proof: "uname -r", look: version },
    Probe {
        id: "kernel-preemption",
        looks_at: "preemption model",
        proof: "cat /sys/kernel/debug/sched/preempt; uname -v",
        look: preemption,
    },
    Probe {
        id: "kernel-rt",
        looks_at: "real-time kernel (PREEMPT_RT)",
        proof: "cat /sys/kernel/realtime; uname -v",
        look: realtime,
    },
    Probe {
        id: "kernel-taint",
        looks_at: "kernel taint: warnings, crashes and foreign modules since boot",
        proof: "cat /proc/sys/kernel/tainted; dmesg",
        look: taint,
    },
    Probe {
        id: "kernel-tracing",
        looks_at: "active tracers and trace events",
        proof: "cd /sys/kernel/tracing && cat current_tracer tracing_on set_event",
        look: tracing,
    },
    Probe {
        id: "mitigations",
        looks_at: "mitigations of processor vulnerabilities",
        proof: "grep . /sys/devices/system/cpu/vulnerabilities/*",
        look: mitigations,
    },
];

fn version(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let release = snapshot.release();
    if release.is_empty() {
        return Err(Unavailable::absent("proc/sys/kernel/osrelease"));
    }
    let said = if release.contains("-rc") {
        ProbeResult::info(format!("Linux {release} is a release candidate"))
            .effect("it may have defects and debugging code that the release does not have")
    } else if release.ends_with('+') || release.contains("-dirty") {
        ProbeResult::info(format!("Linux {release} was built from modified sources"))
            .effect("the release name does not identify it; store the commit in the record (--context)")
    } else {
        ProbeResult::fine(format!("Linux {release}"))
    };
    Ok(said.seen("proc/sys/kernel/osrelease", release))
}

/// The current preemption model, with its source.
fn model(snapshot: &Snapshot) -> Result<(String, String, String), Unavailable> {
    let version = snapshot.maybe("proc/sys/kernel/version")?.unwrap_or_default();
    if let Some(model) = host::preemption_in_force(snapshot.root(), &version) {
        let seen = match snapshot.maybe("sys/kernel/debug/sched/preempt") {
            Ok(Some(models)) if model != "rt" => ("sys/kernel/debug/sched/preempt", models),
            _ => ("proc/sys/kernel/version", version),
        };
        return Ok((model, seen.0.to_owned(), seen.1));
    }
    let config = snapshot.config()?;
    let (option, model) = host::preemption_as_built(config).ok_or_else(|| {
        Unavailable::malformed(config.source.trim_start_matches('/'), "no CONFIG_PREEMPT* is set")
    })?;
    if config.is_on("PREEMPT_DYNAMIC") {
        // It may name another model.
        snapshot.maybe("proc/cmdline")?;
    }
    // The model may have been changed since, in a file that could not be read.
    let default =
        if config.is_on("PREEMPT_DYNAMIC") { ", the default of a kernel that can change it" } else { "" };
    Ok((
        model.to_owned(),
        config.source.trim_start_matches('/').to_owned(),
        format!("CONFIG_{option}=y{default}"),
    ))
}

fn preemption(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (model, file, says) = model(snapshot)?;
    let default = if says.contains("default") { " by default" } else { "" };
    let said = match model.as_str() {
        "none" => ProbeResult::warning(format!("kernel code is not preemptible (none{default})"))
            .effect("a woken real-time thread waits until another thread's system call ends or yields, which can \
                     take milliseconds: worst cases grow, medians do not")
            .fix("boot with preempt=full (kernels with PREEMPT_DYNAMIC), or build with CONFIG_PREEMPT=y"),
        "voluntary" => ProbeResult::info("kernel code is preemptible only at certain points (voluntary)")
            .effect("a woken real-time thread waits for the next such point: worst cases are longer than on phones, \
                     whose kernels are fully preemptible")
            .fix("boot with preempt=full (kernels with PREEMPT_DYNAMIC), or build with CONFIG_PREEMPT=y"),
        "lazy" => ProbeResult::info("kernel code is preempted late by ordinary threads, at once by real-time ones (lazy)")
            .effect("a woken ordinary server thread may wait until the running thread leaves the kernel, or for the next tick")
            .fix("boot with preempt=full to measure a fully preemptible kernel"),
        "full" => ProbeResult::fine("the kernel is fully preemptible"),
        "rt" => ProbeResult::fine("a real-time kernel"),
        other => return Err(Unavailable::Malformed(file, format!("{other:?} is not a known model"))),
    };
    Ok(said.seen(&file, says))
}

fn realtime(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (model, file, says) = model(snapshot)?;
    let said = match model.as_str() {
        "rt" => ProbeResult::info("a real-time kernel (PREEMPT_RT)")
            .effect("binder's spinlocks sleep and inherit priorities, interrupts run in threads: worst cases are shorter, \
                     medians and throughput usually worse; compare with other such kernels only"),
        _ => ProbeResult::fine("not a real-time kernel"),
    };
    Ok(said.seen(&file, says))
}

/// Taint bits that matter for measurements, with the kernel's letters.
const TAINTS: [(u32, &str); 6] = [
    (7, "D: an oops occurred"),
    (9, "W: a warning occurred"),
    (14, "L: a CPU lockup occurred"),
    (5, "B: a page was in a bad state"),
    (12, "O: an out-of-tree module"),
    (0, "P: a proprietary module"),
];

fn taint(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let bits: u64 = snapshot.value("proc/sys/kernel/tainted")?;
    let found: Vec<&str> =
        TAINTS.iter().filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, why)| *why).collect();
    let said = match found.as_slice() {
        [] => ProbeResult::fine("no relevant taint"),
        [first, ..] if "DWLB".contains(&first[..1]) => {
            ProbeResult::warning(format!("the kernel is tainted: {}", found.join("; ")))
                .effect("something went wrong since boot; locks may be held, checks disabled, CPUs lost")
                .fix("see dmesg for the cause; reboot before measuring")
        }
        _ => ProbeResult::info(format!("the kernel is tainted: {}", found.join("; ")))
            .effect("the kernel runs code from other sources"),
    };
    Ok(said.seen("proc/sys/kernel/tainted", bits.to_string()))
}

fn tracing(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let folders = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
    let mut absent = None;
    for folder in folders {
        let tracer = match snapshot.text(&format!("{folder}/current_tracer")) {
            Ok(tracer) => tracer,
            Err(Unavailable::Absent(path)) => {
                absent = absent.or(Some(path));
                continue;
            }
            Err(error) => return Err(error),
        };
        let on = snapshot.maybe(&format!("{folder}/tracing_on"))?.is_none_or(|on| on != "0");
        let events = snapshot.maybe(&format!("{folder}/events/enable"))?.unwrap_or_default();
        let said = match (tracer.as_str(), events.as_str()) {
            _ if !on => ProbeResult::fine("tracing is off"),
            ("nop", "0" | "?" | "") => ProbeResult::fine("no tracer and no trace event is on"),
            ("nop", _) => ProbeResult::info("some trace events are on")
                .effect("each costs a fraction of a microsecond, also in binder calls")
                .fix(format!("echo 0 > /{folder}/tracing_on, unless you want the trace")),
            (tracer, _) => ProbeResult::warning(format!("the tracer {tracer} is on"))
                .effect("it records in the kernel's hot paths: calls take several times as long")
                .fix(format!("echo nop > /{folder}/current_tracer")),
        };
        return Ok(said
            .seen(&format!("{folder}/current_tracer"), tracer)
            .seen(&format!("{folder}/events/enable"), events));
    }
    Err(Unavailable::Absent(absent.unwrap_or_default()))
}

fn mitigations(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let names = snapshot.root().names(FOLDER);
    if names.is_empty() {
        return Err(Unavailable::absent(FOLDER));
    }
    let mut on = Vec::new();
    for name in &names {
        let text = snapshot.text(&format!("{FOLDER}/{name}"))?;
        if let Some(how) = text.strip_prefix("Mitigation: ") {
            on.push(format!("{name}: {how}"));
        }
    }
    let said = match on.len() {
        0 => ProbeResult::fine("no mitigation is active"),
        count => ProbeResult::info(format!("{count} mitigations of processor vulnerabilities are active"))
            .effect(
                "each kernel entry and each context switch costs more, and a call has several of \
                     each; compare only with machines that have the same mitigations",
            )
            .fix("boot with mitigations=off, on a machine without untrusted code, to see their cost"),
    };
    Ok(said.seen(FOLDER, on.join("; ")))
}
