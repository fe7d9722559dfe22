//! The running kernel: preemption model, mitigations.
//! Not here: debugging options (`kernel_options`), the scheduler (`sched`), active tracing (`tracing`).
//! Facts: `/sys/kernel/debug/sched/preempt` and `kernel/Kconfig.preempt` (lazy since 6.13, RT in mainline
//! since 6.12); `Documentation/admin-guide/hw-vuln/`.

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "kernel-preemption",
        looks_at: "preemption model",
        proof: "cat /sys/kernel/debug/sched/preempt; uname -v",
        grounds: Grounds::Cited {
            source: "kernel/Kconfig.preempt; Android, Binder performance tests: what can affect latency",
            says: "the more of the kernel can be preempted, the shorter its scheduling latencies",
        },
        look: preemption,
    },
    Probe {
        id: "kernel-rt",
        looks_at: "real-time kernel (PREEMPT_RT)",
        proof: "cat /sys/kernel/realtime; uname -v",
        grounds: Grounds::Cited {
            source: "kernel/Kconfig.preempt, PREEMPT_RT; Android, Binder performance tests: what can affect latency",
            says: "locks that sleep and threaded interrupts make the kernel almost wholly preemptible",
        },
        look: realtime,
    },
    Probe {
        id: "mitigations",
        looks_at: "mitigations of processor vulnerabilities",
        proof: "grep . /sys/devices/system/cpu/vulnerabilities/*",
        grounds: Grounds::Cited {
            source: "Documentation/admin-guide/kernel-parameters.txt, mitigations=off",
            says: "switching them off improves performance",
        },
        look: mitigations,
    },
];

/// `uname -v`, also from the line that has it at its end.
fn version(snapshot: &Snapshot) -> Result<String, Unavailable> {
    match snapshot.text("proc/sys/kernel/version") {
        Err(why @ Unavailable::Absent(_)) => {
            let whole = snapshot.text("proc/version").map_err(|_| why)?;
            Ok(whole.find('#').map_or_else(String::new, |at| whole[at..].to_owned()))
        }
        version => version,
    }
}

/// The current preemption model, with its source.
fn model(snapshot: &Snapshot) -> Result<(String, String, String), Unavailable> {
    let version = version(snapshot);
    let told = version.as_deref().unwrap_or_default();
    let model = host::preemption_in_force(snapshot.root(), told);
    // Whether it is a real-time kernel shows in that line.
    let (model, version) = match model {
        Some(model) if model == "rt" => (Some(model), version.unwrap_or_else(|_| "real-time".to_owned())),
        model => (model, version?),
    };
    if let Some(model) = model {
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
        snapshot.text("proc/cmdline")?;
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
