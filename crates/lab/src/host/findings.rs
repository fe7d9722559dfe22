//! Room: what a machine has that spoils numbers taken on it, and what to do about it.
//! Not here: reading the facts (`super`). What every rendering says of a record's own fields (a debug
//! build, an emulated machine) is found at `Info`, so that it is not said twice.

use record::{Finding, Host, HostClass, Severity, Tool};

/// Looks through the facts.
#[must_use]
pub fn findings(host: &Host, tool: &Tool) -> Vec<Finding> {
    [debug_build(tool), emulation(host), governor(host), load(host)].into_iter().flatten().collect()
}

fn finding(id: &str, severity: Severity, text: String, fix: &str) -> Finding {
    Finding { fix: (!fix.is_empty()).then(|| fix.to_owned()), ..Finding::new(id, severity, text) }
}

fn debug_build(tool: &Tool) -> Option<Finding> {
    tool.debug_assertions.then(|| {
        let text = "binderperf was built for debugging; its part of every number is too large".to_owned();
        finding("debug-build", Severity::Info, text, "cargo build --release")
    })
}

fn emulation(host: &Host) -> Option<Finding> {
    (host.class == HostClass::Tcg).then(|| {
        let text = "an emulated machine: timings are not real, only ratios within this run tell something; client \
                    and service shared one CPU, except for spinning";
        let fix = "run on real hardware or under KVM, or count instructions with binderperf vm --icount";
        finding("emulation", Severity::Info, text.to_owned(), fix)
    })
}

fn governor(host: &Host) -> Option<Finding> {
    let governor = host.cpu.governor.as_deref().filter(|governor| *governor != "performance")?;
    let text =
        format!("CPU frequency is governed by {governor}: the first cases may run slower than the last");
    let fix = "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    Some(finding("cpu-governor", Severity::Warning, text, fix))
}

fn load(host: &Host) -> Option<Finding> {
    // An emulated machine counts its own start as load.
    let guest = matches!(host.class, HostClass::Tcg | HostClass::Icount | HostClass::Kvm);
    let load = *host.load_avg.first()?;
    (!guest && load > f64::from(host.cpu.count) / 2.0).then(|| {
        let text = format!("the machine is busy: load {load:.2} on {} CPUs", host.cpu.count);
        finding("load", Severity::Warning, text, "stop other work, or wait a minute for the average to fall")
    })
}
