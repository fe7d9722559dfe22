//! All constants that depend on the guest's architecture.
//! Not here: code that uses them. A second architecture would be a second constant.

/// Constants of an architecture.
#[derive(Debug)]
pub(super) struct Arch {
    /// QEMU's program.
    pub(super) qemu: &'static str,
    /// Debian's package with that program.
    pub(super) qemu_package: &'static str,
    /// Machine model. q35 boots Debian's kernels as fast as `microvm` does, and has the PCI bus that virtio needs
    /// without ACPI workarounds.
    pub(super) machine: &'static str,
    /// The kernel's name of the first serial port.
    pub(super) console: &'static str,
    /// Debian's name of the architecture and of its kernel flavour.
    pub(super) debian: &'static str,
    /// `e_machine` of its programs.
    pub(super) elf_machine: u16,
    /// CPU model for emulation.
    pub(super) emulated_cpu: &'static str,
    /// CPU model for instruction counting: with fast string instructions a copy of any length would count as one
    /// instruction.
    pub(super) counted_cpu: &'static str,
    /// Kernel parameters for a clock that is read without a system call. They also skip the timer interrupt test,
    /// which fails one boot in sixty when QEMU has to wait for a CPU ("IO-APIC + timer doesn't work").
    pub(super) clock: &'static [&'static str],
}

/// The guests' architecture.
pub(super) const GUEST: Arch = Arch {
    qemu: "qemu-system-x86_64",
    qemu_package: "qemu-system-x86",
    machine: "q35",
    console: "ttyS0",
    debian: "amd64",
    elf_machine: 62,
    emulated_cpu: "max",
    counted_cpu: "max,-erms,-fsrm",
    clock: &["tsc=reliable", "clocksource=tsc", "no_timer_check"],
};
