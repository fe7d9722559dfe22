//! Room: what is good or poor about a latency test: SYNC, the share that met the deadline, inheritance.
//! Not here: the numbers it is judged by (`crate::schema`), how it is shown (`crate::render::latency`).
//! Facts: the words and the limit of 0.6: AOSP `libhwbinder_latency`.

use crate::schema::{Case, Hop, Inheritance, LatencyTest, Level, Measurement, Outcome};

/// SYNC is good if more than this share of the calls was served on the CPU that they were made on.
pub const GOOD_ABOVE: f64 = 0.6;

/// Whether calls are served where they are made, as the driver's hint to the scheduler asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// More than [`GOOD_ABOVE`] of them.
    Good,
    /// Not more.
    Poor,
}

impl Sync {
    /// The word of Android's tools.
    pub fn name(self) -> &'static str {
        match self {
            Sync::Good => "GOOD",
            Sync::Poor => "POOR",
        }
    }
}

/// Calls by where they were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// All of them.
    pub calls: u64,
    /// On the caller's CPU.
    pub same_cpu: u64,
    /// While the caller moved to another CPU: neither here nor there.
    pub migrated: u64,
}

impl Served {
    /// The calls of these cases; those without a latency test's findings do not count.
    pub fn of<'c>(cases: impl IntoIterator<Item = &'c Case>) -> Served {
        let mut served = Served::default();
        for case in cases {
            let Some(latency) = &case.latency else { continue };
            served.calls = served.calls.saturating_add(calls(case));
            served.same_cpu = served.same_cpu.saturating_add(latency.same_cpu);
            served.migrated = served.migrated.saturating_add(latency.migrated);
        }
        served
    }

    /// Share of the calls served on the caller's CPU, of those in which it stayed on one; `None` if
    /// there is none of them.
    pub fn ratio(self) -> Option<f64> {
        share(self.same_cpu, self.calls.saturating_sub(self.migrated))
    }

    /// The verdict; `None` where there is no ratio.
    pub fn sync(self) -> Option<Sync> {
        self.ratio().map(|ratio| if ratio > GOOD_ABOVE { Sync::Good } else { Sync::Poor })
    }
}

/// Calls of a case, those before it broke among them.
pub fn calls(case: &Case) -> u64 {
    numbers(case).map_or(0, |numbers| numbers.iterations)
}

/// What a case measured, if it broke, until then.
pub fn numbers(case: &Case) -> Option<&Measurement> {
    case.repetitions.iter().find_map(|repetition| match &repetition.outcome {
        Outcome::Measured(numbers) | Outcome::Failed { partial: Some(numbers), .. } => Some(numbers),
        Outcome::Failed { .. } | Outcome::Skipped { .. } => None,
    })
}

/// `meetR`: share of the calls that met the deadline; `None` without calls.
pub fn met(misses: u64, calls: u64) -> Option<f64> {
    share(calls.saturating_sub(misses), calls)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The word of Android's tools on inheritance: whether real-time callers are served at their priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherited {
    /// Every call was served at its caller's priority, and some callers were real-time ones.
    Pass,
    /// At least one was not.
    Fail,
    /// It cannot be told.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Inherited {
    /// The word in documents and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Inherited::Pass => "PASS",
            Inherited::Fail => "FAIL",
            Inherited::Unknown { .. } => "UNKNOWN",
        }
    }

    /// Whether a latency test passes. Where there was no real-time caller it tells nothing, so it does not.
    pub fn of(test: &LatencyTest) -> Inherited {
        let unknown = |reason: &str| Inherited::Unknown { reason: reason.to_owned() };
        if !test.realtime.is_some_and(|caller| caller.is_realtime()) {
            let why = test.realtime_problem.as_deref().filter(|why| !why.is_empty());
            return unknown(why.unwrap_or("there was no real-time caller"));
        }
        match test.inheritance {
            Inheritance { calls: 0, .. } => unknown("no call was answered"),
            Inheritance { not_inherited: 0, .. } => Inherited::Pass,
            _ => Inherited::Fail,
        }
    }
}

/// Whether priorities were inherited as far as this driver is known to let them be, which may well be less
/// than Android asks for; `None` if either level is not known.
pub fn as_expected(inheritance: &Inheritance) -> Option<bool> {
    Some(inheritance.measured? == inheritance.expected?)
}

/// How a driver did less, or more, than it is known for; `None` if it did not, or if nothing is known of it.
pub fn short_of_known(test: &LatencyTest) -> Option<String> {
    let found = &test.inheritance;
    let level = |level: Option<Level>| level.map_or("unknown", Level::name);
    if as_expected(found) == Some(false) {
        let (measured, expected) = (level(found.measured), level(found.expected));
        return Some(format!("this driver inherits {measured}, expected {expected}"));
    }
    if found.expected == Some(Level::Rt) && found.not_inherited > 0 {
        let (part, whole) = (found.not_inherited, found.calls);
        return Some(format!("{part} of {whole} calls were served at another priority than their caller's"));
    }
    let wrong = |hop: &&Hop| hop.as_expected() == Some(false) || hop.is_broken();
    let hop = found.hops.iter().find(wrong)?;
    let how = if hop.is_broken() { "broke" } else { "was not as expected" };
    Some(format!("the hop {} {how} {}", hop.scene, hop.note).trim_end().to_owned())
}

#[cfg(test)]
mod tests;
