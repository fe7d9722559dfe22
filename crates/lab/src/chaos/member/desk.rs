//! Room: what a process of the test tells whoever conducts it, and the watch over its calls.
//! Not here: what the lines lead to (`crate::chaos::conductor`).
//! Locks: `waits`, for a few instructions.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::chaos::tally::Counters;

/// How often counts are told, and waits looked at.
const ROUND: Duration = Duration::from_millis(100);

/// A process's line to its conductor.
pub(super) struct Desk {
    pub(super) counters: Counters,
    patience: Duration,
    waits: Mutex<BTreeMap<u64, (String, Instant)>>,
    last: AtomicU64,
    hung: AtomicBool,
}

impl Desk {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            counters: Counters::default(),
            patience,
            waits: Mutex::default(),
            last: AtomicU64::new(0),
            hung: AtomicBool::new(false),
        }
    }

    /// How long anything may take.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Says one line. Without a conductor there is nobody to tell, and this process is about to end.
    pub(super) fn say(&self, line: fmt::Arguments<'_>) {
        let line = line.to_string().replace('\n', " / ");
        let mut stdout = std::io::stdout().lock();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }

    /// A check failed.
    pub(super) fn fail(&self, what: fmt::Arguments<'_>) {
        self.say(format_args!("fail {what}"));
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Instant)>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the calling thread waits for something, until the result is dropped.
    pub(super) fn wait(&self, what: String) -> Wait<'_> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.waits().insert(number, (what, Instant::now()));
        Wait { desk: self, number }
    }

    /// Tells everything that is waited for.
    pub(super) fn tell_waits(&self) {
        let all: Vec<_> = self.waits().values().cloned().collect();
        for (what, since) in all {
            self.say(format_args!("wait for {} ms: {what}", since.elapsed().as_millis()));
        }
    }

    /// Tells counts, and once if something is waited for in vain; for a thread of its own.
    pub(super) fn watch(&self) -> ! {
        loop {
            std::thread::sleep(ROUND);
            self.say(format_args!("count {}", self.counters.tally().words()));
            let oldest = self.waits().values().min_by_key(|(_, since)| *since).cloned();
            if let Some((what, since)) = oldest
                && since.elapsed() > self.patience
                && !self.hung.swap(true, Ordering::Relaxed)
            {
                self.say(format_args!("hang no end within {} s: {what}", self.patience.as_secs_f32()));
            }
        }
    }
}

/// Something waited for; see [`Desk::wait`].
pub(super) struct Wait<'d> {
    desk: &'d Desk,
    number: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.desk.waits().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_known_until_it_ends() {
        let desk = Desk::new(Duration::from_secs(1));
        let first = desk.wait("a".to_owned());
        let second = desk.wait("b".to_owned());
        drop(first);
        assert_eq!(desk.waits().values().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["b"]);
        drop(second);
        assert!(desk.waits().is_empty());
    }
}
