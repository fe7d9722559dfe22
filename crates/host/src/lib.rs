//! Facts about the machine that are needed to judge its measurements.
//! Not here: the judgement (`doctor`), the document's form (`record::schema`).
//! Each fact is read from a file of the kernel; an unreadable one is omitted, never guessed.
#![forbid(unsafe_code)]

mod class;
pub mod clock_cost;
mod condition;
mod cpu;
mod device;
mod driver;
pub mod evidence;
mod kernel;
pub mod klog;
mod load;
pub mod parse;
pub mod realtime;
mod release;
mod steal;

pub use class::class_of;
pub use class::{CLASS_VARIABLE, KERNEL_VARIABLE, ON_VARIABLE, class};
pub use condition::battery;
pub use condition::{conditions, until_now};
pub use device::clusters;
pub use driver::driver;
pub use driver::kind;
pub use kernel::{preemption_as_built, preemption_in_force};
pub use load::{Load, MOST_OTHERS, MOST_STOLEN, Shares};
pub use release::Release;
pub use steal::Steal;

use ::driver::Root;
use record::{Host, HostClass, Tool};

/// The machine's current facts.
#[must_use]
pub fn facts(class: HostClass) -> Host {
    let root = Root::of_this_machine();
    Host {
        class,
        host_name: root.text("proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: kernel::kernel(&root),
        cpu: cpu::cpu(&root, sys::sched::usable_cpus()),
        load_avg: load(&root),
        aslr_enabled: kernel::aslr(&root),
        memory_bytes: memory(&root),
        clocksource: root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        device: device::device(&root),
        guest_kernel: class::guest_kernel(class),
        on: std::env::var(ON_VARIABLE).ok(),
    }
}

/// How this program was built and called.
#[must_use]
pub fn tool() -> Tool {
    let debug_assertions = cfg!(debug_assertions);
    Tool {
        name: "binderperf".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: option_env!("BINDERPERF_GIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
        build_profile: if debug_assertions { "dev" } else { "release" }.to_owned(),
        executable: std::env::args().next().unwrap_or_default(),
        debug_assertions,
    }
}

/// The current local time, RFC 3339 with offset and milliseconds.
pub fn now() -> String {
    sys::local_time::LocalTime::now().to_string()
}

/// The local time of a moment, as [`now`] writes it.
#[must_use]
pub fn date(moment: std::time::SystemTime) -> String {
    sys::local_time::LocalTime::of(moment).to_string()
}

/// CPUs that this program may run on; at least 1.
#[must_use]
pub fn cpus() -> u32 {
    sys::sched::usable_cpus()
}

/// Main memory of this machine.
pub fn memory_bytes() -> Option<u64> {
    memory(&Root::of_this_machine())
}

fn load(root: &Root) -> Vec<f64> {
    let text = root.text("proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect()
}

fn memory(root: &Root) -> Option<u64> {
    parse::kibibytes(&root.text("proc/meminfo")?, "MemTotal")
}

#[cfg(test)]
mod tests;
