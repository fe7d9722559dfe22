//! Reports from a member to the controller, and the watchdog of its calls.
//! Not here: the reaction to the reports (`crate::controller`).
//! Locks: `waits`, held for a few instructions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::messages::Report;
use crate::tally::Counters;

/// Interval of count reports and watchdog checks.
const ROUND: Duration = Duration::from_millis(100);

/// A member's output to the controller.
pub(super) struct Reporter {
    pub(super) counters: Counters,
    patience: Duration,
    waits: Mutex<BTreeMap<u64, (String, Instant)>>,
    last: AtomicU64,
    hung: AtomicBool,
}

impl Reporter {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            counters: Counters::default(),
            patience,
            waits: Mutex::default(),
            last: AtomicU64::new(0),
            hung: AtomicBool::new(false),
        }
    }

    /// Time limit of each operation.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Sends a report.
    pub(super) fn say(report: &Report) {
        procgroup::role::say(&serde_json::to_string(report).expect("a report is JSON"));
    }

    /// Reports a failed check.
    pub(super) fn fail(&self, what: fmt::Arguments<'_>) {
        Self::say(&Report::Fail(what.to_string().replace('\n', " / ")));
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Instant)>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers that the calling thread waits, until the result is dropped.
    pub(super) fn wait(&self, what: String) -> Wait<'_> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.waits().insert(number, (what, Instant::now()));
        Wait { reporter: self, number }
    }

    /// Reports all current waits.
    pub(super) fn tell_waits(&self) {
        let all: Vec<_> = self.waits().values().cloned().collect();
        for (what, since) in all {
            Self::say(&Report::Wait(format!("for {} ms: {what}", since.elapsed().as_millis())));
        }
    }

    /// Reports counts, and once a wait that exceeds the limit. Runs on a thread of its own.
    pub(super) fn watch(&self) -> ! {
        loop {
            std::thread::sleep(ROUND);
            Self::say(&Report::Count(self.counters.tally()));
            let oldest = self.waits().values().min_by_key(|(_, since)| *since).cloned();
            if let Some((what, since)) = oldest
                && sys::patience::is_over(since, self.patience)
                && !self.hung.swap(true, Ordering::Relaxed)
            {
                let waited = since.elapsed().as_secs_f32();
                Self::say(&Report::Hang(format!("no end within {waited:.1} s: {what}")));
            }
        }
    }
}

/// A registered wait; see [`Reporter::wait`].
pub(super) struct Wait<'d> {
    reporter: &'d Reporter,
    number: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.reporter.waits().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_known_until_it_ends() {
        let reporter = Reporter::new(Duration::from_secs(1));
        let first = reporter.wait("a".to_owned());
        let second = reporter.wait("b".to_owned());
        drop(first);
        assert_eq!(reporter.waits().values().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["b"]);
        drop(second);
        assert!(reporter.waits().is_empty());
    }
}
