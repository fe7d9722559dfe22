//! Room: the doctor: what on a machine affects the numbers, probe by probe, with evidence and cure.
//! Not here: the document and its rendering (`record::checkup`), typed words (`cli::doctor`).
//!
//! Each probe (`probe`, `probes/`) is a pure function of a [`Snapshot`]: the machine's files, live or copied
//! ([`save()`]), and the [`Facts`] that no file tells (`gather`, `measure`). So what is said of a phone can be
//! said elsewhere, and each probe is tested on files.

mod distribution;
mod facts;
mod gather;
pub mod klog;
mod measure;
mod parse;
mod probe;
mod probes;
mod save;
mod snapshot;
#[cfg(test)]
mod tests;

pub use facts::{Facts, Measured, Realtime, Wake};
pub use gather::gather;
pub use measure::measure;
pub use probe::Probe;
pub use save::{SaveError, save};
pub use snapshot::{NoSnapshot, Snapshot};

use record::checkup::{Checkup, SCHEMA, VERSION};
use record::{DriverKind, Finding, HostClass, Severity};

use crate::host;

/// Every probe with its area's name.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static Probe)> {
    probes::AREAS.iter().flat_map(|area| area.probes.iter().map(|probe| (area.name, probe)))
}

/// Looks at a machine with every probe.
#[must_use]
pub fn examine(snapshot: &Snapshot) -> Checkup {
    let looked_at = match snapshot.is_live() {
        true => "this machine".to_owned(),
        false => snapshot.root().display().to_string(),
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

/// Looks at this machine with every probe, and measures.
#[must_use]
pub fn examine_here() -> Checkup {
    examine(&Snapshot::live(Facts { measured: measure(), ..gather(true) }))
}

/// Probes of which every rendering of a run says the same by itself, from the record's own fields.
const SAID_ANYWAY: [&str; 2] = ["debug-build", "emulation"];

/// What a run keeps: everything that is found on this machine without measuring. Probes of the kernel's
/// driver are left out where another serves, or none.
///
/// An error among a run's findings is a part of the test that failed, so the machine's are warnings at most.
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
