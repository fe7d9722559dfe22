//! Accuracy of the latency test: injects a known delay into the service, and compares it with the change of
//! the medians.
//! Not here: delaying (`super::service`), measuring (`super`). Both sides share a CPU. Each round also
//! measures without a delay, in the same way, so that slow drift of the machine cancels.

use std::fmt;

use record::{Class, Run};

use super::{Injected, LatencyOptions, execute};
use crate::plan::{Driver, Flavour, Inherit, Waiting, Wanted};
use crate::run::{Observer, RunError};

/// Permitted relative error of a measured delay.
const LIMIT_SHARE: f64 = 0.02;
const LIMIT_US: f64 = 20.0;
/// Calls of each class for one median.
const ITERATIONS: u64 = 60;

/// Kind of the injected delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayKind {
    /// The service computes.
    Running,
    /// The service sleeps.
    Asleep,
}

impl DelayKind {
    fn inject(self, us: u64) -> Injected {
        match self {
            Self::Running => Injected::Delay { us, share: 1.0 },
            Self::Asleep => Injected::StallServer { us },
        }
    }
}

/// Result for one delay.
#[derive(Clone, Copy, Debug)]
pub struct DelayResult {
    /// Kind of the delay.
    pub spent: DelayKind,
    /// Class of the calls.
    pub class: Class,
    /// Injected delay, in us.
    pub injected_us: u64,
    /// Measured delay, in us: the median over rounds of the difference of the medians.
    pub found_us: f64,
}

/// Header line of the table.
pub const HEAD: &str = "injected          class     found         off   limit\n";

impl DelayResult {
    /// Absolute error, in us.
    #[must_use]
    pub fn off_us(&self) -> f64 {
        self.found_us - self.injected_us as f64
    }

    /// Permitted error, in us.
    #[must_use]
    pub fn limit_us(&self) -> f64 {
        LIMIT_SHARE * self.injected_us as f64 + LIMIT_US
    }

    /// Returns true if the error is within the limit.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.off_us().abs() <= self.limit_us()
    }
}

impl fmt::Display for DelayResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spent, class, injected_us, found_us } = self;
        let how = if *spent == DelayKind::Running { "running" } else { "asleep" };
        let verdict = if self.is_right() { "right" } else { "WRONG" };
        write!(
            f,
            "{injected_us:>5} us {how:<8} {:<5} {found_us:>8.1} us {:>+8.1} us {:>4.0} us  {verdict}",
            class.name(),
            self.off_us(),
            self.limit_us()
        )
    }
}

struct SilentObserver;

impl Observer for SilentObserver {}

fn medians(wanted: &Wanted, injected: Injected) -> Result<[Option<u64>; 2], RunError> {
    let options = LatencyOptions {
        iterations: ITERATIONS,
        deadline_us: 1_000_000,
        scenes: false,
        wanted: wanted.clone(),
        injected: vec![injected],
        ..LatencyOptions::usual(Flavour::Hwbinder)
    };
    let run = execute(&options, &mut SilentObserver)?;
    if run.any_failed() || !run.complete {
        let why = run.incomplete_reason.unwrap_or_else(|| "a pair broke".to_owned());
        return Err(RunError::Unready(format!("{injected}: {why}")));
    }
    let median = |run: &Run, class| {
        let all = &run.latency()?.all;
        all.iter().find(|totals| totals.class == class).map(|totals| totals.percentiles.p50)
    };
    Ok(Class::BOTH.map(|class| median(&run, class)))
}

/// Number of rows for this many delays.
#[must_use]
pub fn rows(delays: usize) -> usize {
    delays * 2 * Class::BOTH.len()
}

/// Injects each delay, in both ways, in each of `rounds` rounds, on the embedded driver; returns the results
/// of all rounds.
///
/// # Errors
/// See [`execute`].
pub fn measure(delays_us: &[u64], rounds: u32) -> Result<Vec<DelayResult>, RunError> {
    let mut wanted = Wanted { driver: Driver::Embedded, ..Wanted::default() };
    wanted.settings.inherit = Inherit::Rt;
    // A delayed caller sleeps, so the caller sleeps without a delay, too: else its wake-up would count as
    // delay.
    wanted.settings.waiting = Waiting::Sleep;
    let kinds: Vec<(DelayKind, u64)> = [DelayKind::Running, DelayKind::Asleep]
        .into_iter()
        .flat_map(|spent| delays_us.iter().map(move |us| (spent, *us)))
        .collect();
    // On one CPU: after a long wait a caller's own CPU wakes up from a deeper sleep, which is latency, but
    // not the delay.
    let before = sys::sched::affinity().map_err(RunError::Os)?;
    sys::sched::set_affinity(&before[before.len() - 1..]).map_err(RunError::Os)?;
    let found = in_rounds(&wanted, &kinds, rounds);
    // This affinity was permitted before.
    let _ = sys::sched::set_affinity(&before);
    found
}

fn in_rounds(wanted: &Wanted, kinds: &[(DelayKind, u64)], rounds: u32) -> Result<Vec<DelayResult>, RunError> {
    let mut differences = vec![[Vec::new(), Vec::new()]; kinds.len()];
    for _ in 0..rounds {
        let without = medians(wanted, Injected::Delay { us: 0, share: 1.0 })?;
        for ((spent, us), all) in kinds.iter().zip(&mut differences) {
            let with = medians(wanted, spent.inject(*us))?;
            for (list, (with, without)) in all.iter_mut().zip(with.into_iter().zip(without)) {
                list.extend(with.zip(without).map(|(with, without)| (with as f64 - without as f64) / 1e3));
            }
        }
    }
    let found = kinds.iter().zip(&differences).flat_map(|((spent, us), all)| {
        Class::BOTH.into_iter().zip(all).filter_map(move |(class, list)| {
            let found_us = record::stats::median(list)?;
            Some(DelayResult { spent: *spent, class, injected_us: *us, found_us })
        })
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_is_within_two_percent_and_twenty_microseconds() {
        let found = |injected_us, found_us| {
            DelayResult { spent: DelayKind::Running, class: Class::Fifo, injected_us, found_us }.is_right()
        };
        assert!(found(1000, 1039.9) && found(1000, 960.1) && found(0, -20.0));
        assert!(!found(1000, 1040.1) && !found(1000, 959.9) && !found(0, 20.1));
    }
}
