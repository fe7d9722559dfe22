//! Death registrations and their notifications.
//! Locks: `all`, not held while a link is made or dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::DeathLink;

use crate::instance::Instance;

/// One registration.
struct Entry {
    target: Instance,
    fired: bool,
    /// Keeps the registration; `None` until it is made, and if a fault drops it.
    link: Option<DeathLink>,
}

/// The registrations of a process.
#[derive(Default)]
pub(super) struct Links {
    all: Mutex<BTreeMap<u64, Entry>>,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry before the registration is made.
    pub(super) fn expect(&self, number: u64, target: Instance) {
        self.lock().insert(number, Entry { target, fired: false, link: None });
    }

    /// Stores the link.
    pub(super) fn keep(&self, number: u64, link: DeathLink) {
        if let Some(entry) = self.lock().get_mut(&number) {
            entry.link = Some(link);
        }
    }

    /// Cancels a registration; its notification may then come or not.
    pub(super) fn forget(&self, number: u64) {
        let entry = self.lock().remove(&number);
        drop(entry);
    }

    /// Cancels the oldest one if there are more than `most`.
    pub(super) fn limit(&self, most: usize) {
        let oldest = {
            let all = self.lock();
            if all.len() > most { all.keys().next().copied() } else { None }
        };
        if let Some(number) = oldest {
            self.forget(number);
        }
    }

    /// Records the notification.
    pub(super) fn fire(&self, number: u64) {
        if let Some(entry) = self.lock().get_mut(&number) {
            entry.fired = true;
        }
    }

    /// Dead processes whose notification did not come.
    pub(super) fn missing(&self, dead: &BTreeSet<Instance>) -> Vec<Instance> {
        let all = self.lock();
        all.values()
            .filter(|entry| !entry.fired && dead.contains(&entry.target))
            .map(|entry| entry.target)
            .collect()
    }

    /// Cancels all registrations.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untold_deaths_are_missing() {
        let target = |index| Instance { index, generation: 0 };
        let links = Links::default();
        for index in 0..4 {
            links.expect(index as u64, target(index));
        }
        links.fire(1);
        links.forget(2);
        let dead = BTreeSet::from([0, 1, 2].map(target));
        assert_eq!(links.missing(&dead), [target(0)]);
        links.limit(2);
        assert_eq!(links.missing(&dead), [], "the oldest was taken back");
        links.clear();
        assert_eq!(links.missing(&BTreeSet::from([target(3)])), []);
    }
}
