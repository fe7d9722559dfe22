//! The four performance tests and the experiments around them.
//! Not here: terminal output; the caller passes a [`run::Observer`] and gets a record.
#![forbid(unsafe_code)]

pub mod ab;
pub mod background;
mod brokers;
mod call_error;
mod case;
pub mod constraints;
mod control_group;
mod endpoint;
pub mod inheritance;
pub mod inversion;
pub mod latency;
pub mod load;
pub mod matrix;
mod measure;
pub mod overload;
pub mod permission;
pub mod placing;
pub mod plan;
mod profiled;
pub mod replay;
pub mod run;
mod scheduling;
pub mod serialisation;
mod servers;
pub mod soak;
pub mod speed;
pub mod spread;
pub mod suite;
pub mod sweep;
pub mod tracing;
pub mod workers;
mod workload;

use std::process::ExitCode;

use procgroup::{RoleEntry, role};

/// Worker roles of the tests and experiments.
const ROLES: [RoleEntry; 10] = [
    RoleEntry::of::<servers::role::ServerRole>(),
    RoleEntry::of::<workers::role::WorkerRole>(),
    RoleEntry::of::<latency::role::LatencyRole>(),
    RoleEntry::of::<inversion::role::InversionRole>(),
    RoleEntry::of::<background::role::BackgroundRole>(),
    RoleEntry::of::<overload::role::OverloadRole>(),
    RoleEntry::of::<inheritance::InheritanceRole>(),
    RoleEntry::of::<load::role::LoadRole>(),
    RoleEntry::of::<soak::resident::ResidentRole>(),
    RoleEntry::of::<workload::role::ProcessRole>(),
];

/// Runs the embedded driver's broker, or a worker process, if this program was started as one; else returns
/// `None`. Call it first in `main`. It also sets this program as the embedded driver's broker. `roles` are those of other
/// crates.
#[must_use]
pub fn start_worker(roles: &[RoleEntry]) -> Option<ExitCode> {
    sys::title::take();
    backend::broker::register();
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, rest) = words.split_first()?;
    let code = match command.as_str() {
        backend::broker::COMMAND => backend::broker::run(rest),
        role::COMMAND => role::run_worker(rest, &[&ROLES, roles].concat()),
        _ => return None,
    };
    Some(ExitCode::from(code))
}
