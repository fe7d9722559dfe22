//! The wishes of the plan's tests.

use crate::arch::Arch;

use super::options::{Driver, Tools, Wanted};

/// The usual kernel for x86-64.
pub(super) fn wanted() -> Wanted {
    Wanted {
        source: "debian".to_owned(),
        driver: Driver::C,
        preempt: None,
        checks: Vec::new(),
        settings: Vec::new(),
        patches: Vec::new(),
        arch: Arch::X86,
        tools: Tools::Auto,
        jobs: 2,
        refresh: false,
    }
}
