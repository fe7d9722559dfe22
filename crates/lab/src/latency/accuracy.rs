//! Room: whether the latency test is right: a known delay is put into the service, and looked for in the
//! medians.
//! Not here: delaying (`super::service`), measuring (`super`).
//! Both sides share a CPU. Each round measures without a delay first, by the same way, so that a slow drift of the machine cancels.

use std::fmt;

use record::{Class, Run};

use super::{Ask, Flavour, Injected, execute};
use crate::plan::{Driver, Inherit, Waiting, Wanted};
use crate::run::{Observer, RunError};

/// What a measured delay may be off by.
const LIMIT_SHARE: f64 = 0.02;
const LIMIT_US: f64 = 20.0;
/// Calls of each class for one median.
const ITERATIONS: u64 = 60;

/// How the injected time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The service computes.
    Running,
    /// The service sleeps.
    Asleep,
}

impl Spent {
    fn inject(self, us: u64) -> Injected {
        match self {
            Self::Running => Injected::Delay { us, share: 1.0 },
            Self::Asleep => Injected::StallServer { us },
        }
    }
}

/// What came out for one delay.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// How it was spent.
    pub spent: Spent,
    /// Whose calls.
    pub class: Class,
    /// What was put in, in us.
    pub injected_us: u64,
    /// What was found: the median over rounds of the medians' difference, in us.
    pub found_us: f64,
}

/// The table's first line.
pub const HEAD: &str = "injected          class     found         off   limit\n";

impl Found {
    /// How far it is off, in us.
    #[must_use]
    pub fn off_us(&self) -> f64 {
        self.found_us - self.injected_us as f64
    }

    /// How far it may be.
    #[must_use]
    pub fn limit_us(&self) -> f64 {
        LIMIT_SHARE * self.injected_us as f64 + LIMIT_US
    }

    /// Whether it is within that.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.off_us().abs() <= self.limit_us()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spent, class, injected_us, found_us } = self;
        let how = if *spent == Spent::Running { "running" } else { "asleep" };
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

struct Nobody;

impl Observer for Nobody {}

fn medians(wanted: &Wanted, injected: Injected) -> Result<[Option<u64>; 2], RunError> {
    let ask = Ask {
        iterations: ITERATIONS,
        deadline_us: 1_000_000,
        scenes: false,
        wanted: wanted.clone(),
        injected: vec![injected],
        ..Ask::usual(Flavour::Hwbinder)
    };
    let run = execute(&ask, &mut Nobody)?;
    if run.any_failed() || !run.complete {
        let why = run.incomplete_reason.unwrap_or_else(|| "a pair broke".to_owned());
        return Err(RunError::Unready(format!("{injected}: {why}")));
    }
    let median = |run: &Run, class| {
        let all = &run.latency.as_ref()?.all;
        all.iter().find(|totals| totals.class == class).map(|totals| totals.percentiles.p50)
    };
    Ok(Class::BOTH.map(|class| median(&run, class)))
}

/// Rows for so many delays.
#[must_use]
pub fn rows(delays: usize) -> usize {
    delays * 2 * Class::BOTH.len()
}

/// Injects each delay, in both ways, in so many rounds, on the embedded driver; tells about each once all are
/// done.
///
/// # Errors
/// See [`execute`].
pub fn measure(delays_us: &[u64], rounds: u32) -> Result<Vec<Found>, RunError> {
    let mut wanted = Wanted { driver: Driver::Embedded, ..Wanted::default() };
    wanted.settings.inherit = Inherit::Rt;
    // A delayed caller sleeps, so it does without a delay, too: else its wake-up would count as delay.
    wanted.settings.waiting = Waiting::Sleep;
    let kinds: Vec<(Spent, u64)> = [Spent::Running, Spent::Asleep]
        .into_iter()
        .flat_map(|spent| delays_us.iter().map(move |us| (spent, *us)))
        .collect();
    // On one CPU: a caller that waits for long wakes up from a deeper sleep of its CPU, which is latency, but not
    // the delay.
    let before = sys::sched::affinity().map_err(RunError::Os)?;
    sys::sched::set_affinity(&before[before.len() - 1..]).map_err(RunError::Os)?;
    let found = in_rounds(&wanted, &kinds, rounds);
    // It was allowed before.
    let _ = sys::sched::set_affinity(&before);
    found
}

fn in_rounds(wanted: &Wanted, kinds: &[(Spent, u64)], rounds: u32) -> Result<Vec<Found>, RunError> {
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
            Some(Found { spent: *spent, class, injected_us: *us, found_us })
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
            Found { spent: Spent::Running, class: Class::Fifo, injected_us, found_us }.is_right()
        };
        assert!(found(1000, 1039.9) && found(1000, 960.1) && found(0, -20.0));
        assert!(!found(1000, 1040.1) && !found(1000, 959.9) && !found(0, 20.1));
    }
}
