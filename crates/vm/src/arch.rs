//! Architectures of guests, and all constants that depend on them.
//! Not here: code that uses them.

use std::fmt;
use std::str::FromStr;

/// The architecture of a guest's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86,
    /// 64-bit ARM.
    Arm,
}

/// Constants of an architecture.
#[derive(Debug)]
pub(super) struct Facts {
    /// QEMU's program.
    pub(super) qemu: &'static str,
    /// Debian's package with that program.
    pub(super) qemu_package: &'static str,
    /// Machine model with the PCI bus that virtio needs. q35 boots Debian's kernels as fast as `microvm` does.
    pub(super) machine: &'static str,
    /// The kernel's name of the first serial port.
    pub(super) console: &'static str,
    /// Debian's name of the architecture and of its kernel flavour.
    pub(super) debian: &'static str,
    /// Rust's name of the architecture, as in `binderperf-aarch64`.
    pub(super) rust: &'static str,
    /// Target for which a program for these guests is built without a C toolchain.
    pub(super) target: &'static str,
    /// `e_machine` of its programs: of 64 and of 32 bits.
    pub(super) elf_machines: [u16; 2],
    /// CPU model for emulation.
    pub(super) emulated_cpu: &'static str,
    /// CPU model for instruction counting.
    pub(super) counted_cpu: &'static str,
    /// Kbuild's name of the architecture (`ARCH=`), and of its folder below `arch`.
    pub(super) kbuild: [&'static str; 2],
    /// Kbuild's target of the image, and the file that it makes.
    pub(super) kernel_image: [&'static str; 2],
    /// Prefix of the GNU tools that build for it on another architecture.
    pub(super) gnu: &'static str,
    /// Kernel parameters for a clock that is read without a system call.
    pub(super) clock: &'static [&'static str],
}

/// With fast string instructions a copy of any length would count as one instruction, so counting disables them. The
/// clock's parameters also skip the timer interrupt test, which fails one boot in sixty when QEMU has to wait for a
/// CPU ("IO-APIC + timer doesn't work").
static X86: Facts = Facts {
    qemu: "qemu-system-x86_64",
    qemu_package: "qemu-system-x86",
    machine: "q35",
    console: "ttyS0",
    debian: "amd64",
    rust: "x86_64",
    target: "x86_64-unknown-linux-musl",
    elf_machines: [62, 3],
    emulated_cpu: "max",
    counted_cpu: "max,-erms,-fsrm",
    kbuild: ["x86_64", "x86"],
    kernel_image: ["bzImage", "arch/x86/boot/bzImage"],
    gnu: "x86_64-linux-gnu-",
    clock: &["tsc=reliable", "clocksource=tsc", "no_timer_check"],
};

/// A CPU without pointer authentication, which is slow to emulate. It has all page sizes. With a timer of 1 GHz a
/// counted instruction is one tick of the guest's clock; QEMU's default of 62.5 MHz would round to 16.
static ARM: Facts = Facts {
    qemu: "qemu-system-aarch64",
    qemu_package: "qemu-system-arm",
    machine: "virt",
    console: "ttyAMA0",
    debian: "arm64",
    rust: "aarch64",
    target: "aarch64-unknown-linux-musl",
    elf_machines: [183, 40],
    emulated_cpu: "cortex-a76",
    counted_cpu: "cortex-a76,cntfrq=1000000000",
    kbuild: ["arm64", "arm64"],
    kernel_image: ["Image", "arch/arm64/boot/Image"],
    gnu: "aarch64-linux-gnu-",
    clock: &[],
};

impl Arch {
    /// Each architecture.
    pub const ALL: [Self; 2] = [Self::X86, Self::Arm];

    /// The architecture of guests on this machine by default: its own, or its 64-bit sibling.
    #[must_use]
    pub const fn own() -> Self {
        if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { Self::Arm } else { Self::X86 }
    }

    /// Whether this program runs in a guest of the architecture.
    pub(super) const fn runs_this_program(self) -> bool {
        match self {
            Self::X86 => cfg!(any(target_arch = "x86_64", target_arch = "x86")),
            Self::Arm => cfg!(any(target_arch = "aarch64", target_arch = "arm")),
        }
    }

    pub(super) fn facts(self) -> &'static Facts {
        match self {
            Self::X86 => &X86,
            Self::Arm => &ARM,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86 => "x86_64",
            Self::Arm => "arm64",
        })
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "x86_64" | "amd64" => Ok(Self::X86),
            "arm64" | "aarch64" => Ok(Self::Arm),
            other => Err(format!("'{other}' is none of x86_64 (amd64), arm64 (aarch64)")),
        }
    }
}
