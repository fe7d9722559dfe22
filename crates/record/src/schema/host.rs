//! Room: where a run took place: machine, kernel, driver. `None` means not known, never zero.
//! Not here: judging any of it (`Finding`s carry that).

use serde::{Deserialize, Serialize, Serializer};

/// The machine of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// What kind of machine it was; decides how its times may be read.
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
    /// Address space randomisation.
    #[serde(default)]
    pub aslr_enabled: Option<bool>,
    /// Main memory in bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The kernel's current clock source, e.g. `tsc`.
    #[serde(default)]
    pub clocksource: Option<String>,
}

/// What kind of machine a run took place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostClass {
    /// No hypervisor seen.
    Bare,
    /// Some hypervisor, not started by us.
    Virtual,
    /// Our own guest under KVM.
    Kvm,
    /// Our own guest under full emulation: times are not real; ratios within one run are.
    Tcg,
    /// Our own guest under deterministic emulation: the clock counts instructions.
    Icount,
}

impl HostClass {
    /// The word used in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            HostClass::Bare => "bare",
            HostClass::Virtual => "virtual",
            HostClass::Kvm => "kvm",
            HostClass::Tcg => "tcg",
            HostClass::Icount => "icount",
        }
    }
}

/// The kernel of a run; the fields of `uname`, and its preemption model.
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
    /// `none`, `voluntary`, `full`, `lazy` or `rt`, where it can be known.
    #[serde(default)]
    pub preemption: Option<String>,
}

/// The processors of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name.
    #[serde(default)]
    pub model: String,
    /// CPUs this program may run on.
    pub count: u32,
    /// Nominal clock of one CPU in MHz.
    #[serde(default)]
    pub mhz: Option<f64>,
    /// Whether a governor may change the clock during the run.
    #[serde(default)]
    pub scaling_enabled: Option<bool>,
    /// The governor of CPU 0.
    #[serde(default)]
    pub governor: Option<String>,
    /// Caches of CPU 0.
    #[serde(default)]
    pub caches: Vec<CpuCache>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// `Data`, `Instruction` or `Unified`.
    #[serde(rename = "type")]
    pub kind: String,
    /// 1 is closest to the CPU.
    pub level: u32,
    /// Bytes.
    pub size: u64,
    /// CPUs that share it.
    pub num_sharing: u32,
}

/// The Binder driver that served a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Which implementation.
    pub kind: DriverKind,
    /// How it was reached: a device path, or `private binderfs device`.
    pub opened: String,
    /// `BINDER_VERSION`'s answer.
    pub protocol_version: i32,
    /// Names under binderfs' `features`, sorted; empty when not known.
    #[serde(default)]
    pub features: Vec<String>,
    /// What was asked for: `auto`, `kernel` or `embedded`; empty when not known.
    #[serde(default)]
    pub choice: String,
    /// Why it is this driver; empty when not known.
    #[serde(default)]
    pub reason: String,
    /// How the embedded driver was set; `None` for the kernel's, where the machine decides.
    #[serde(default)]
    pub embedded: Option<EmbeddedSettings>,
}

impl Driver {
    /// What was opened and how it was set, for a person, e.g. `/dev/binder`.
    pub fn details(&self) -> String {
        match &self.embedded {
            Some(settings) => format!("{}, {}", self.opened, settings.describe()),
            None => self.opened.clone(),
        }
    }
}

/// How the embedded driver was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedSettings {
    /// Which priorities are inherited: `none`, `nice` or `rt`.
    pub inherit: String,
    /// How threads wait: `sleep`, `spin` or `adaptive`.
    pub waiting: String,
    /// How long a thread may spin before it sleeps; up to four times that where wake-ups take longer.
    pub spin_budget_ns: u64,
    /// Whether calls without objects, or with none but scattered buffers, go from process to process;
    /// else through the broker.
    pub lanes: bool,
}

impl EmbeddedSettings {
    /// The settings in words.
    pub(crate) fn describe(&self) -> String {
        let waiting = match self.waiting.as_str() {
            "sleep" => "waiting asleep".to_owned(),
            other => format!("waiting {other} (spins {} us)", self.spin_budget_ns as f64 / 1000.0),
        };
        let way = if self.lanes { "lanes" } else { "no lanes" };
        format!("{waiting}, inherit {}, {way}", self.inherit)
    }
}

/// An implementation of the Binder driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverKind {
    /// The kernel's driver in C.
    KernelC,
    /// The kernel's driver in Rust.
    KernelRust,
    /// The kernel's driver; which of the two could not be told.
    Kernel,
    /// Our own, in user space.
    Embedded,
}

impl DriverKind {
    /// What a person reads.
    pub fn name(self) -> &'static str {
        match self {
            DriverKind::KernelC => "kernel, C",
            DriverKind::KernelRust => "kernel, Rust",
            DriverKind::Kernel => "kernel",
            DriverKind::Embedded => "embedded",
        }
    }
}

/// JSON has no word for infinity, so what is not finite is left out.
fn finite_only<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().filter(|value| value.is_finite()))
}
