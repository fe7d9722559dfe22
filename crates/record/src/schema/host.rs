//! The environment of a run: machine, kernel, driver. `None` means unknown, never zero.
//! Not here: judging the environment (`Finding`s do).

use serde::{Deserialize, Serialize, Serializer};

/// The machine of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The kind of machine, which decides how its times may be read.
    pub class: HostClass,
    /// Node name.
    pub host_name: String,
    /// The running kernel.
    pub kernel: Kernel,
    /// The processors.
    pub cpu: Cpu,
    /// Load averages over 1, 5 and 15 minutes at the start; empty when not known.
    #[serde(default, serialize_with = "finite_only")]
    pub load_avg: Vec<f64>,
    /// Whether address space layout randomisation is on.
    #[serde(default)]
    pub aslr_enabled: Option<bool>,
    /// Main memory in bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The kernel's current clock source, e.g. `tsc`.
    #[serde(default)]
    pub clocksource: Option<String>,
    /// The phone or board; `None` if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<super::Device>,
    /// The kernel of a guest of `binderperf vm`, as given to `--kernel`; empty elsewhere, and for the kernel that `vm`
    /// takes by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guest_kernel: Vec<String>,
    /// How the user's machine reaches this one, as given to `--on`; `None` for the user's machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

/// The kind of machine that a run took place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostClass {
    /// No hypervisor detected.
    Bare,
    /// A hypervisor that binderperf did not start.
    Virtual,
    /// A guest that binderperf started under KVM.
    Kvm,
    /// A guest that binderperf started under full emulation: times are not real, ratios within one run are.
    Tcg,
    /// A guest that binderperf started under deterministic emulation: the clock counts instructions.
    Icount,
    /// Not known: another program measured.
    Unknown,
}

impl HostClass {
    /// Whether binderperf started this machine, as a guest of `vm` or `run --vm`.
    pub fn is_own_guest(self) -> bool {
        matches!(self, HostClass::Kvm | HostClass::Tcg | HostClass::Icount)
    }

    /// The word used in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            HostClass::Bare => "bare",
            HostClass::Virtual => "virtual",
            HostClass::Kvm => "kvm",
            HostClass::Tcg => "tcg",
            HostClass::Icount => "icount",
            HostClass::Unknown => "unknown",
        }
    }
}

/// The kernel of a run: the fields of `uname` and the preemption model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// e.g. `6.12.9-amd64`.
    pub release: String,
    /// Build line, e.g. `#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1`.
    #[serde(default)]
    pub version: String,
    /// e.g. `x86_64`.
    #[serde(default)]
    pub machine: String,
    /// `none`, `voluntary`, `full`, `lazy` or `rt`, if known.
    #[serde(default)]
    pub preemption: Option<String>,
}

/// The processors of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name.
    #[serde(default)]
    pub model: String,
    /// Number of CPUs that this program may run on.
    pub count: u32,
    /// Nominal clock of one CPU in MHz.
    #[serde(default)]
    pub mhz: Option<f64>,
    /// Whether a governor may change the clock frequency during the run.
    #[serde(default)]
    pub scaling_enabled: Option<bool>,
    /// The governor of CPU 0.
    #[serde(default)]
    pub governor: Option<String>,
    /// Caches of CPU 0.
    #[serde(default)]
    pub caches: Vec<CpuCache>,
}

/// A CPU cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// `Data`, `Instruction` or `Unified`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Level; 1 is closest to the CPU.
    pub level: u32,
    /// Size in bytes.
    pub size: u64,
    /// Number of CPUs that share it.
    pub num_sharing: u32,
}

/// The Binder driver of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The implementation.
    pub kind: DriverKind,
    /// How it was reached: a device path, or `private binderfs device`.
    pub opened: String,
    /// The answer to `BINDER_VERSION`.
    pub protocol_version: i32,
    /// Names under binderfs' `features`, sorted; empty when not known.
    #[serde(default)]
    pub features: Vec<String>,
    /// The driver asked for: `auto`, `kernel` or `embedded`; empty if unknown.
    #[serde(default)]
    pub choice: String,
    /// The reason for choosing this driver; empty if unknown.
    #[serde(default)]
    pub reason: String,
    /// Settings of the embedded driver; `None` for the kernel driver.
    #[serde(default)]
    pub embedded: Option<EmbeddedSettings>,
}

impl Driver {
    /// Device and settings in words, e.g. `/dev/binder`.
    pub fn details(&self) -> String {
        match &self.embedded {
            Some(settings) => format!("{}, {}", self.opened, settings.describe()),
            None => self.opened.clone(),
        }
    }
}

/// Settings of the embedded driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedSettings {
    /// Which priorities are inherited: `none`, `nice` or `rt`.
    pub inherit: String,
    /// How threads wait: `sleep`, `spin` or `adaptive`.
    pub waiting: String,
    /// Longest time that a thread spins before it sleeps. Up to version 0.2.0 it was four times that where wake-ups took longer.
    pub spin_budget_ns: u64,
    /// Whether calls without objects, or with scatter-gather buffers only, use call slots between the processes;
    /// otherwise they go through the broker.
    #[serde(alias = "lanes")]
    pub direct: bool,
}

impl EmbeddedSettings {
    /// The settings in words.
    pub(crate) fn describe(&self) -> String {
        let waiting = match self.waiting.as_str() {
            "sleep" => "waiting asleep".to_owned(),
            other => format!("waiting {other} (spins {} us)", self.spin_budget_ns as f64 / 1000.0),
        };
        let way = if self.direct { "direct calls" } else { "all calls through the broker" };
        format!("{waiting}, inherit {}, {way}", self.inherit)
    }
}

/// An implementation of the Binder driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverKind {
    /// The kernel driver in C.
    KernelC,
    /// The kernel driver in Rust.
    KernelRust,
    /// The kernel driver, in an undetermined language.
    Kernel,
    /// The embedded driver, in user space.
    Embedded,
}

impl DriverKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            DriverKind::KernelC => "kernel, C",
            DriverKind::KernelRust => "kernel, Rust",
            DriverKind::Kernel => "kernel",
            DriverKind::Embedded => "embedded",
        }
    }
}

/// JSON cannot express infinity or NaN, so such values are left out.
fn finite_only<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().filter(|value| value.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_old_records_are_read() {
        let read = |word: &str| {
            let text = format!(r#"{{"inherit":"nice","waiting":"sleep","spin_budget_ns":0,"{word}":false}}"#);
            serde_json::from_str::<EmbeddedSettings>(&text).expect(word)
        };
        assert_eq!(read("lanes"), read("direct"));
        assert!(read("lanes").describe().ends_with("all calls through the broker"));
    }
}
