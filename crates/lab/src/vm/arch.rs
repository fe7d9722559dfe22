//! Room: every name that depends on the guest's architecture.
//! Not here: what is done with them. A second architecture is a second constant.

/// What this lane must know about an architecture.
#[derive(Debug)]
pub(super) struct Arch {
    /// QEMU's program for it.
    pub(super) qemu: &'static str,
    /// Debian's package with that program.
    pub(super) qemu_package: &'static str,
    /// Machine model: q35 boots Debian's kernels as fast as the smaller `microvm`, has the PCI bus
    /// that virtio needs without ACPI tricks, and was never seen to fail.
    pub(super) machine: &'static str,
    /// First serial port, as the kernel calls it.
    pub(super) console: &'static str,
    /// Debian's name of the architecture, and of its kernel flavour.
    pub(super) debian: &'static str,
    /// `e_machine` of its programs.
    pub(super) elf_machine: u16,
    /// CPU model under emulation.
    pub(super) emulated_cpu: &'static str,
    /// CPU model for instruction counting: with the fast string instructions a copy of any length
    /// would count as one instruction.
    pub(super) counted_cpu: &'static str,
    /// Kernel parameters that make the clock a cheap one, read without a system call, and keep the
    /// kernel from testing its timer interrupt: where QEMU must wait for a CPU the test fails, and with
    /// it one boot in sixty ("IO-APIC + timer doesn't work").
    pub(super) clock: &'static [&'static str],
}

/// The architecture that guests have.
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
