//! Room: what must be known about a machine to judge the numbers it gave.
//! Not here: judging them (`crate::doctor`), the document's form (`record::schema`).
//! Each fact is read from a file of the kernel's; what cannot be read is left out, never guessed.

mod class;
mod cpu;
mod driver;
mod kernel;

pub use class::class;
pub(crate) use class::class_of;
pub use driver::driver;
pub(crate) use driver::kind;
pub(crate) use kernel::{preemption_as_built, preemption_in_force};

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use record::{Host, HostClass, Tool};

/// The most that is read of one file.
const LONGEST: u64 = 4 << 20;

/// The files of a machine; `/`, or a folder of copied ones.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    pub(crate) fn of_this_machine() -> Self {
        Self(PathBuf::from("/"))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// A file's text without the white space around it; `None` when it cannot be read or is empty.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.path(path)).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// The machine as it is now.
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
    }
}

/// This program as it is built and was called.
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

/// This moment, RFC 3339 with offset and milliseconds, in local time.
pub fn now() -> String {
    sys::local_time::LocalTime::now().to_string()
}

/// CPUs that this program may run on; at least 1.
#[must_use]
pub fn cpus() -> u32 {
    sys::sched::usable_cpus()
}

/// Main memory of this machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory(&Root::of_this_machine())
}

fn load(root: &Root) -> Vec<f64> {
    let text = root.text("proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect()
}

fn memory(root: &Root) -> Option<u64> {
    let text = root.text("proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests;
