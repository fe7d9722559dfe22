//! Verdicts. Those of Android's tools on a latency test are here: SYNC, the share of calls that met the deadline. Ours
//! hold what was measured against what was promised: [`Verdict`].
//!
//! - [`judged`]: the type; [`mod@of_run`]: all tests of a run, with the [`headline`] of a throughput test and what the
//!   [`placement`] of its sides makes of it; [`latency`]: a latency test; [`lost`]: a run that lost
//!   its broker; [`from_host`]: next steps after a guest.
//!
//! Not here: those on an experiment (`crate::experiments`), the numbers (`crate::schema`), rendering (`crate::render`).
//! Facts: the words and the limit of 0.6: AOSP `libhwbinder_latency`.

mod from_host;
mod headline;
pub(crate) mod judged;
mod latency;
mod lost;
mod of_run;
mod placement;

pub use crate::experiments::background::verdict::of_background;
pub use crate::experiments::inheritance::verdict::{InheritanceVerdict, as_expected, inheritance};
pub use crate::experiments::overload::verdict::of_overload;
pub use from_host::ON_COMMANDS;
pub(crate) use from_host::runnable;
pub use judged::{Grade, TestVerdicts, Verdict};
pub use latency::of_latency;
use lost::of_lost_broker;
pub(crate) use of_run::of_run;

use crate::schema::{Case, Measurement, Outcome};

/// SYNC is good if more than this share of the calls was served on the CPU of their caller.
pub const GOOD_ABOVE: f64 = 0.6;

/// Whether calls are served on the caller's CPU, as the driver's scheduler hint requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncVerdict {
    /// More than [`GOOD_ABOVE`] of the calls.
    Good,
    /// At most [`GOOD_ABOVE`] of the calls.
    Poor,
}

impl SyncVerdict {
    /// The word that Android's tools print.
    pub fn name(self) -> &'static str {
        match self {
            SyncVerdict::Good => "GOOD",
            SyncVerdict::Poor => "POOR",
        }
    }
}

/// Counts of calls by the CPU on which they were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// All calls.
    pub calls: u64,
    /// Calls served on the caller's CPU.
    pub same_cpu: u64,
    /// Calls during which the caller moved to another CPU, in neither group.
    pub migrated: u64,
    /// Other calls whose called object told nothing of its CPU.
    pub untold: u64,
}

impl Served {
    /// The calls of these cases; cases without latency results do not count.
    pub fn of<'c>(cases: impl IntoIterator<Item = &'c Case>) -> Served {
        let mut served = Served::default();
        for case in cases {
            let Some(latency) = &case.latency else { continue };
            served.calls = served.calls.saturating_add(calls(case));
            served.same_cpu = served.same_cpu.saturating_add(latency.same_cpu);
            served.migrated = served.migrated.saturating_add(latency.migrated);
            if latency.untold {
                let stayed = calls(case).saturating_sub(latency.migrated);
                served.untold = served.untold.saturating_add(stayed);
            }
        }
        served
    }

    /// Share of calls served on the caller's CPU, among those that told it and whose caller did not migrate; `None` without any.
    pub fn ratio(self) -> Option<f64> {
        share(self.same_cpu, self.calls.saturating_sub(self.migrated).saturating_sub(self.untold))
    }

    /// The verdict; `None` without a ratio.
    pub fn sync(self) -> Option<SyncVerdict> {
        self.ratio().map(|ratio| if ratio > GOOD_ABOVE { SyncVerdict::Good } else { SyncVerdict::Poor })
    }
}

/// Number of calls of a case, including those before it broke.
pub fn calls(case: &Case) -> u64 {
    numbers(case).map_or(0, |numbers| numbers.iterations)
}

/// The measurement of a case; for a broken one, the calls before it broke.
pub fn numbers(case: &Case) -> Option<&Measurement> {
    case.outcomes().find_map(Outcome::numbers)
}

/// `meetR`: share of the calls that met the deadline; `None` without calls.
pub fn met(misses: u64, calls: u64) -> Option<f64> {
    share(calls.saturating_sub(misses), calls)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests;
