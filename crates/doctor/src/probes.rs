//! The probes by area, in output order.
//! Not here: the probe type (`super::probe`), its input (`super::snapshot`).

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
mod tracing;
pub(super) mod users;

use super::probe::Probe;

/// An area and its probes.
pub(super) struct Area {
    /// Name.
    pub(super) name: &'static str,
    /// The probes.
    pub(super) probes: &'static [Probe],
    /// Whether they are about the kernel driver, and so irrelevant for a run on another driver.
    pub(super) of_kernel_driver: bool,
}

/// All areas.
pub(super) const AREAS: &[Area] = &[
    Area { name: "builds", probes: build::PROBES, of_kernel_driver: false },
    Area { name: "the binder driver", probes: driver::PROBES, of_kernel_driver: true },
    Area { name: "users of binder", probes: users::PROBES, of_kernel_driver: true },
    Area { name: "the kernel", probes: kernel::PROBES, of_kernel_driver: false },
    Area { name: "tracing", probes: tracing::PROBES, of_kernel_driver: false },
    Area { name: "options of the kernel", probes: kernel_options::PROBES, of_kernel_driver: false },
    Area { name: "the scheduler", probes: sched::PROBES, of_kernel_driver: false },
    Area { name: "the CPUs", probes: cpu::PROBES, of_kernel_driver: false },
    Area { name: "the machine", probes: machine::PROBES, of_kernel_driver: false },
    Area { name: "what else goes on", probes: busy::PROBES, of_kernel_driver: false },
    Area { name: "rights", probes: rights::PROBES, of_kernel_driver: false },
];
