//! Room: the probes, area by area, in the order in which they are told.
//! Not here: what a probe is (`super::probe`), what it sees (`super::snapshot`).

pub(super) mod build;
mod busy;
mod cpu;
mod driver;
mod kernel;
mod kernel_options;
pub(super) mod machine;
mod memory_debug;
mod rights;
pub(super) mod sched;
pub(super) mod users;

use super::probe::Probe;

/// An area and its probes.
pub(super) struct Area {
    /// What they look at together.
    pub(super) name: &'static str,
    /// The probes.
    pub(super) probes: &'static [Probe],
    /// Whether they are about the kernel's driver, and so tell nothing of a run on another.
    pub(super) of_kernel_driver: bool,
}

/// All areas.
pub(super) const AREAS: &[Area] = &[
    Area { name: "builds", probes: build::PROBES, of_kernel_driver: false },
    Area { name: "the binder driver", probes: driver::PROBES, of_kernel_driver: true },
    Area { name: "users of binder", probes: users::PROBES, of_kernel_driver: true },
    Area { name: "the kernel", probes: kernel::PROBES, of_kernel_driver: false },
    Area { name: "options of the kernel", probes: kernel_options::PROBES, of_kernel_driver: false },
    Area { name: "the scheduler", probes: sched::PROBES, of_kernel_driver: false },
    Area { name: "the CPUs", probes: cpu::PROBES, of_kernel_driver: false },
    Area { name: "the machine", probes: machine::PROBES, of_kernel_driver: false },
    Area { name: "what else goes on", probes: busy::PROBES, of_kernel_driver: false },
    Area { name: "rights", probes: rights::PROBES, of_kernel_driver: false },
];

/// Machines made of a few files for each probe.
#[cfg(test)]
pub(super) fn cases() -> impl Iterator<Item = &'static super::tests::Case> {
    let all = [
        build::CASES,
        driver::CASES,
        users::CASES,
        kernel::CASES,
        kernel_options::CASES,
        memory_debug::CASES,
        sched::CASES,
        cpu::CASES,
        machine::CASES,
        busy::CASES,
        rights::CASES,
    ];
    all.into_iter().flatten()
}
