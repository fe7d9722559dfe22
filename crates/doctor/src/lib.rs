//! The doctor: finds what affects measurements on a machine, with evidence and remedy.
//! Not here: the document and its rendering (`record::checkup`), command-line options (`cli::doctor`).
//!
//! Each probe (`probe`, `probes/`) is a pure function of a [`Snapshot`]: the machine's files, live or copied
//! ([`save()`]), and the [`Facts`] that are in no file (`gather`, `measure`). So a phone can be examined elsewhere,
//! and each probe is tested on files.
#![forbid(unsafe_code)]

mod allows;
mod archive;
mod collect;
mod distribution;
mod disturbance;
mod facts;
mod gather;
mod measure;
mod probe;
mod probes;
mod save;
mod snapshot;
#[cfg(test)]
mod tests;
mod throttling;
mod vendor;

pub use allows::allows;
pub use collect::script;
pub use disturbance::{DISTURBED, disturbance, spoiled};
pub use facts::{Attempt, ContextTried, Facts, Measured, Realtime, Tried, Wake};
pub use gather::gather;
pub use measure::measure;
pub use probe::{Grounds, Probe};
pub use save::{SaveError, save};
pub use snapshot::{Snapshot, SnapshotError};
pub use throttling::of_conditions;

use record::checkup::{Checkup, SCHEMA, VERSION};
use record::{DriverKind, Finding, HostClass, Severity};

/// All probes with the names of their areas.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static Probe)> {
    probes::AREAS.iter().flat_map(|area| area.probes.iter().map(|probe| (area.name, probe)))
}

/// Runs all probes on a machine.
#[must_use]
pub fn examine(snapshot: &Snapshot) -> Checkup {
    let looked_at = match snapshot.is_live() {
        true => "this machine".to_owned(),
        false => snapshot.name().to_owned(),
    };
    Checkup {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        tool: host::tool(),
        looked_at,
        release: snapshot.release(),
        class: probes::machine::class(snapshot),
        checks: catalogue().map(|(_, probe)| probe.look(snapshot)).collect(),
    }
}

/// Runs all probes on this machine, with measurements.
#[must_use]
pub fn examine_here() -> Checkup {
    examine(&Snapshot::live(Facts { measured: measure(), ..gather(true) }))
}

/// Probes whose findings every rendering of a run shows anyway, from the record's own fields.
const SAID_ANYWAY: [&str; 2] = ["debug-build", "emulation"];

/// The findings stored in a run's record: everything found on this machine without measuring. Probes of the kernel
/// driver are skipped if a run uses another driver, or none.
///
/// Findings of warning level at most: an error among a run's findings means that part of the test failed.
#[must_use]
pub fn at_start(class: HostClass, driver: Option<DriverKind>) -> Vec<Finding> {
    let of_kernel = driver.is_some_and(|kind| kind != DriverKind::Embedded);
    let facts = Facts { class: Some(class), ..gather(of_kernel) };
    let snapshot = Snapshot::live(facts);
    let areas = probes::AREAS.iter().filter(|area| of_kernel || !area.of_kernel_driver);
    let found = areas.flat_map(|area| area.probes).filter_map(|probe| probe.look(&snapshot).finding());
    found
        .map(|finding| {
            let most = match SAID_ANYWAY.contains(&finding.id.as_str()) {
                true => Severity::Info,
                false => Severity::Warning,
            };
            Finding { severity: finding.severity.min(most), ..finding }
        })
        .collect()
}
