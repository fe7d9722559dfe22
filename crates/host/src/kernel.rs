//! The running kernel and its preemption model.
//! Facts: `/sys/kernel/debug/sched/preempt` has the current model in parentheses (kernels with `PREEMPT_DYNAMIC`,
//! possibly RT ones); other kernels name the model in their version string; the configuration has the default of a
//! dynamic kernel; `/sys/kernel/realtime` is 1 on RT kernels that have the file. `personality(2)` bit 0x0040000 and
//! `kernel.randomize_va_space` control address space randomisation.

use driver::Root;
use driver::kernel_config::KernelConfig;
use record::Kernel;

pub(crate) fn kernel(root: &Root) -> Kernel {
    let version = root.text("proc/sys/kernel/version").unwrap_or_default();
    Kernel {
        release: root.text("proc/sys/kernel/osrelease").unwrap_or_default(),
        preemption: preemption_in_force(root, &version).or_else(|| {
            let config = KernelConfig::find(root)?;
            preemption_as_built(&config).map(|(_, model)| model.to_owned())
        }),
        version,
        machine: root.text("proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
    }
}

/// The preemption option and model that the kernel was built with.
pub fn preemption_as_built(config: &KernelConfig) -> Option<(&'static str, &'static str)> {
    const MODELS: [(&str, &str); 5] = [
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    MODELS.into_iter().find(|(option, _)| config.is_on(option))
}

/// The model that the running kernel reports.
pub fn preemption_in_force(root: &Root, version: &str) -> Option<String> {
    let built = |word| version.split_whitespace().any(|part| part == word);
    // Checked first: an RT kernel that is also dynamic reports a second model.
    if built("PREEMPT_RT") || root.text("sys/kernel/realtime").as_deref() == Some("1") {
        return Some("rt".to_owned());
    }
    if let Some(models) = root.text("sys/kernel/debug/sched/preempt") {
        let marked = models.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
        return marked.map(str::to_owned);
    }
    let command_line = root.text("proc/cmdline").unwrap_or_default();
    let asked = command_line.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back();
    match asked {
        // Unless the command line has one, only the configuration names a dynamic kernel's model.
        Some(model) if built("PREEMPT_DYNAMIC") => Some(model),
        _ if built("PREEMPT_LAZY") => Some("lazy"),
        _ if built("PREEMPT") => Some("full"),
        _ => None,
    }
    .map(str::to_owned)
}

pub(super) fn aslr(root: &Root) -> Option<bool> {
    const NO_RANDOMIZE: u32 = 0x0004_0000;
    let system = root.text("proc/sys/kernel/randomize_va_space")?;
    let personality = root.text("proc/self/personality");
    let switched_off = personality
        .and_then(|text| u32::from_str_radix(&text, 16).ok())
        .is_some_and(|bits| bits & NO_RANDOMIZE != 0);
    Some(system != "0" && !switched_off)
}
