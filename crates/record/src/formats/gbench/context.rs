//! Google Benchmark's context block: machine, load, warnings.
//! Not here: the context as JSON (`json`).

use crate::number;
use crate::render::printable;
use crate::schema::{CpuCache, HostClass, Run, Severity};
use std::collections::BTreeMap;

/// The block that precedes a table, on stderr.
pub fn context(run: &Run) -> String {
    let cpu = &run.host.cpu;
    let mut lines = vec![run.started.clone(), format!("Running {}", run.tool.executable)];
    let plural = if cpu.count > 1 { "s" } else { "" };
    lines.push(match cpu.mhz {
        Some(mhz) => format!("Run on ({} X {} MHz CPU {plural})", cpu.count, number::general(mhz)),
        None => format!("Run on ({} X CPU {plural})", cpu.count),
    });
    if !cpu.caches.is_empty() {
        lines.push("CPU Caches:".to_owned());
        lines.extend(cpu.caches.iter().map(|cache| cache_line(cache, cpu.count)));
    }
    if !run.host.load_avg.is_empty() {
        let load: Vec<String> = run.host.load_avg.iter().map(|load| format!("{load:.2}")).collect();
        lines.push(format!("Load Average: {}", load.join(", ")));
    }
    lines.extend(custom(run).into_iter().map(|(key, value)| format!("{key}: {value}")));
    lines.extend(warnings(run).into_iter().map(|warning| format!("***WARNING*** {warning}")));
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}

fn cache_line(cache: &CpuCache, cpus: u32) -> String {
    let line = format!("  L{} {} {} KiB", cache.level, cache.kind, cache.size / 1024);
    match cpus.checked_div(cache.num_sharing) {
        Some(count) => format!("{line} (x{count})"),
        None => line,
    }
}

/// Custom key/value pairs, sorted by key as in Google Benchmark: facts for which Google Benchmark has no field, and
/// the user's own, which take precedence.
pub(super) fn custom(run: &Run) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for (key, value) in &run.context {
        pairs.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let mut ours = vec![
        ("binderperf_version", run.tool.version.clone()),
        ("host_class", run.host.class.name().to_owned()),
        ("kernel_release", run.host.kernel.release.clone()),
    ];
    if let Some(driver) = &run.driver {
        ours.push(("binder_driver", format!("{} ({})", driver.kind.name(), driver.details())));
    }
    for (key, value) in ours {
        pairs.entry(key.to_owned()).or_insert(value);
    }
    pairs
}

fn warnings(run: &Run) -> Vec<String> {
    let mut warnings = Vec::new();
    if run.host.cpu.scaling_enabled == Some(true) {
        warnings.push(
            "CPU scaling is enabled, the benchmark real time measurements may be noisy and will \
             incur extra overhead.",
        );
    }
    if run.host.aslr_enabled == Some(true) {
        warnings.push("ASLR is enabled, the results may have unreproducible noise in them.");
    }
    if run.tool.debug_assertions {
        warnings.push("Library was built as DEBUG. Timings may be affected.");
    }
    if run.host.class == HostClass::Tcg {
        warnings.push("Emulated machine: timings are not real; ratios within this run are.");
    }
    if run.overloaded {
        warnings.push("More was run at once than there are CPUs: timings include waiting for a CPU.");
    }
    let found = run.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    warnings.into_iter().map(str::to_owned).chain(found.map(|finding| finding.text.clone())).collect()
}
