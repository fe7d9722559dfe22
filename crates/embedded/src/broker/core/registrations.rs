//! Registrations of a process for notifications, of deaths or of freezes.
//! Not here: their states, and what is notified when (`death`, `freeze`).

use std::collections::{BTreeMap, BTreeSet};

use super::LIMIT;

/// A registration, with its state.
#[derive(Debug)]
pub(super) struct Registration<S> {
    pub(super) cookie: u64,
    pub(super) state: S,
    /// Work that notifies the process, while it is queued.
    pub(super) work: Option<u64>,
}

/// Registrations by number, also those whose handle has ended.
#[derive(Debug)]
pub(super) struct Registrations<S> {
    last: u64,
    all: BTreeMap<u64, Registration<S>>,
    /// Delivered registrations that are not acknowledged, by cookie and then by age.
    delivered: BTreeSet<(u64, u64)>,
}

impl<S> Default for Registrations<S> {
    fn default() -> Self {
        Self { last: 0, all: BTreeMap::new(), delivered: BTreeSet::new() }
    }
}

impl<S> Registrations<S> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a registration and returns its number; `None` if the process has too many.
    pub(super) fn add(&mut self, cookie: u64, state: S) -> Option<u64> {
        if self.all.len() >= LIMIT {
            return None;
        }
        self.last += 1;
        self.all.insert(self.last, Registration { cookie, state, work: None });
        Some(self.last)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Registration<S>> {
        self.all.get_mut(&number)
    }

    /// Records that a notification was delivered, and awaits an acknowledgement.
    pub(super) fn deliver(&mut self, number: u64) {
        if let Some(registration) = self.all.get(&number) {
            self.delivered.insert((registration.cookie, number));
        }
    }

    /// Number of the oldest delivered registration with this cookie, which is acknowledged now.
    pub(super) fn acknowledge(&mut self, cookie: u64) -> Option<u64> {
        let oldest = self.delivered.range((cookie, 0)..=(cookie, u64::MAX)).next().copied()?;
        self.delivered.remove(&oldest);
        Some(oldest.1)
    }

    /// Removes a registration; returns its queued work.
    pub(super) fn remove(&mut self, number: u64) -> Option<u64> {
        let registration = self.all.remove(&number)?;
        self.delivered.remove(&(registration.cookie, number));
        registration.work
    }
}
