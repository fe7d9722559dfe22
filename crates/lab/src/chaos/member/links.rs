//! Room: deaths that were asked for, and whether the news came.
//! Locks: `all`, not held while a link is made or dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipc::DeathLink;

use crate::chaos::instance::Instance;

/// One death asked for.
struct Entry {
    target: Instance,
    fired: bool,
    /// Keeps the registration; empty until it is made, and where a fault takes it back.
    link: Option<DeathLink>,
}

/// The deaths that a process asked for.
#[derive(Default)]
pub(super) struct Links {
    all: Mutex<BTreeMap<u64, Entry>>,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a death is about to be asked for.
    pub(super) fn expect(&self, number: u64, target: Instance) {
        self.lock().insert(number, Entry { target, fired: false, link: None });
    }

    /// Keeps the link that was made.
    pub(super) fn keep(&self, number: u64, link: DeathLink) {
        if let Some(entry) = self.lock().get_mut(&number) {
            entry.link = Some(link);
        }
    }

    /// Takes a death back, and forgets it: from here on the news may come or not.
    pub(super) fn forget(&self, number: u64) {
        let entry = self.lock().remove(&number);
        drop(entry);
    }

    /// Takes the oldest back if there are more than so many.
    pub(super) fn limit(&self, most: usize) {
        let oldest = {
            let all = self.lock();
            if all.len() > most { all.keys().next().copied() } else { None }
        };
        if let Some(number) = oldest {
            self.forget(number);
        }
    }

    /// The news came.
    pub(super) fn fire(&self, number: u64) {
        if let Some(entry) = self.lock().get_mut(&number) {
            entry.fired = true;
        }
    }

    /// Those that died and whose death was not told.
    pub(super) fn missing(&self, dead: &BTreeSet<Instance>) -> Vec<Instance> {
        let all = self.lock();
        all.values()
            .filter(|entry| !entry.fired && dead.contains(&entry.target))
            .map(|entry| entry.target)
            .collect()
    }

    /// Takes all back.
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
        let target = |place| Instance { place, generation: 0 };
        let links = Links::default();
        for place in 0..4 {
            links.expect(place as u64, target(place));
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
