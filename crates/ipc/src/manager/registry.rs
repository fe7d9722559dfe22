//! A service manager's table: services by key, and callbacks for their registrations and their clients.
//! Not here: keys and what a callback is told (`binder::manager::registry`, `hwbinder::manager::registry`).
//! Locks: `state`; no call, death link or drop happens under it.
//! Facts: `ServiceManager.cpp` of Android's servicemanager and hwservicemanager: a later registration takes the
//! place of an earlier one, what dies is forgotten.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::runtime::proxy::death::DeathLink;
use crate::runtime::target::Binder;

/// Objects that the two flavours register, with their names.
pub(crate) trait Flavour: Sized + 'static {
    /// The name of a service.
    type Key: Clone + Ord + Send;
    /// A registered object with what the manager keeps about it.
    type Service: Clone + Send;

    /// The registered object.
    fn binder(service: &Self::Service) -> &Binder;
    /// Whether two keys are names of one registration of an object.
    fn is_same_instance(one: &Self::Key, other: &Self::Key) -> bool;
    /// Whether a callback for `wanted` hears of `key`.
    fn matches(wanted: &Self::Key, key: &Self::Key) -> bool;
    /// Tells a callback, oneway: the manager never waits. `preexisting`: registered before the callback.
    fn tell(callback: &Binder, key: &Self::Key, service: &Self::Service, preexisting: bool);
}

/// A service with its key.
type Named<F> = (<F as Flavour>::Key, <F as Flavour>::Service);

#[derive(Clone)]
struct Entry<S> {
    service: S,
    /// Tells this registration from a later one in its place.
    number: u64,
    /// `None` for an object of this process; shared by the keys of one registration.
    _death: Option<Arc<DeathLink>>,
}

/// Event that a callback is told.
#[derive(Clone)]
pub(crate) enum Subject<K> {
    /// Registrations of the keys that match.
    Registrations(K),
    /// Whether a service has clients. Nobody is told: no service here is started on demand, so none is told that it
    /// may stop. Ends with the service's registration.
    ClientsOf(Binder),
}

struct Callback<K> {
    subject: Subject<K>,
    callback: Binder,
    _death: Option<DeathLink>,
}

struct State<F: Flavour> {
    services: BTreeMap<F::Key, Entry<F::Service>>,
    callbacks: Vec<Callback<F::Key>>,
    declared: BTreeSet<F::Key>,
    last_number: u64,
}

/// The services of one context.
pub(crate) struct Registry<F: Flavour> {
    state: Mutex<State<F>>,
}

impl<F: Flavour> Default for Registry<F> {
    fn default() -> Self {
        let (services, declared) = (BTreeMap::new(), BTreeSet::new());
        Self { state: Mutex::new(State { services, callbacks: Vec::new(), declared, last_number: 0 }) }
    }
}

impl<F: Flavour> Registry<F> {
    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an object under each key, in place of earlier ones, and tells who waits. `false`: it is dead.
    pub(crate) fn add(self: &Arc<Self>, keys: &[F::Key], service: F::Service) -> bool {
        self.linked(service).is_some_and(|entry| self.enter(keys, &entry))
    }

    /// An object as an entry that is removed when it dies; `None` if it is dead already.
    fn linked(self: &Arc<Self>, service: F::Service) -> Option<Entry<F::Service>> {
        let number = {
            let mut state = self.lock();
            state.last_number += 1;
            state.last_number
        };
        let registry = Arc::downgrade(self);
        let gone = move || {
            if let Some(registry) = registry.upgrade() {
                registry.forget(|_, entry| entry.number == number);
            }
        };
        let death = F::binder(&service).on_death(gone).ok()?;
        Some(Entry { service, number, _death: death.map(Arc::new) })
    }

    /// The rest of [`Self::add`].
    fn enter(&self, keys: &[F::Key], entry: &Entry<F::Service>) -> bool {
        let (replaced, calls) = {
            let mut state = self.lock();
            let mut replaced = keys.first().map(|key| state.take_predecessor(key)).unwrap_or_default();
            let mut calls = Vec::new();
            for key in keys {
                replaced.extend(state.services.insert(key.clone(), entry.clone()));
                calls.extend(state.callbacks_for(key).map(|callback| (callback.clone(), key)));
            }
            let callbacks = state.take_callbacks_of(&replaced);
            ((replaced, callbacks), calls)
        };
        drop(replaced);
        if F::binder(&entry.service).is_known_dead() {
            // Its notification may have come before there was anything to forget.
            self.forget(|_, known| known.number == entry.number);
            return false;
        }
        for (callback, key) in calls {
            F::tell(&callback, key, &entry.service, false);
        }
        true
    }

    /// The service of a key.
    pub(crate) fn find(&self, key: &F::Key) -> Option<F::Service> {
        self.lock().services.get(key).map(|entry| entry.service.clone())
    }

    /// Every service, sorted by key.
    pub(crate) fn services(&self) -> Vec<Named<F>> {
        let state = self.lock();
        state.services.iter().map(|(key, entry)| (key.clone(), entry.service.clone())).collect()
    }

    /// Removes an object from every key of an instance.
    pub(crate) fn remove(&self, key: &F::Key, object: &Binder) {
        self.forget(|known, entry| F::is_same_instance(key, known) && F::binder(&entry.service) == object);
    }

    fn forget(&self, meant: impl Fn(&F::Key, &Entry<F::Service>) -> bool) {
        let mut state = self.lock();
        let gone = state.take(meant);
        let callbacks = state.take_callbacks_of(&gone);
        drop(state);
        drop((gone, callbacks));
    }

    /// Tells a callback about a subject, the services that are there first. `false`: the callback is dead.
    pub(crate) fn subscribe(self: &Arc<Self>, subject: Subject<F::Key>, callback: &Binder) -> bool {
        self.watching(subject, callback).is_some_and(|entry| self.listen(entry))
    }

    /// A callback as an entry that is removed when it dies; `None` if it is dead already.
    fn watching(self: &Arc<Self>, subject: Subject<F::Key>, callback: &Binder) -> Option<Callback<F::Key>> {
        let (registry, dead) = (Arc::downgrade(self), callback.clone());
        let gone = move || {
            if let Some(registry) = registry.upgrade() {
                registry.unsubscribe(&dead, |_| true);
            }
        };
        let death = callback.on_death(gone).ok()?;
        Some(Callback { subject, callback: callback.clone(), _death: death })
    }

    /// The rest of [`Self::subscribe`].
    fn listen(&self, entry: Callback<F::Key>) -> bool {
        let callback = entry.callback.clone();
        let present = self.lock().insert_callback(entry);
        if callback.is_known_dead() {
            // Its notification may have come before there was anything to remove.
            self.unsubscribe(&callback, |_| true);
            return false;
        }
        for (key, service) in present.unwrap_or_default() {
            F::tell(&callback, &key, &service, true);
        }
        true
    }

    /// Removes a callback from the subjects meant. Whether it was there.
    pub(crate) fn unsubscribe(&self, callback: &Binder, meant: impl Fn(&Subject<F::Key>) -> bool) -> bool {
        let meant = |entry: &mut Callback<F::Key>| entry.callback == *callback && meant(&entry.subject);
        let gone: Vec<_> = self.lock().callbacks.extract_if(.., meant).collect();
        !gone.is_empty()
    }

    /// Announces a service as one that will be registered, as a device's manifest does.
    pub(crate) fn declare(&self, key: F::Key) {
        self.lock().declared.insert(key);
    }

    /// Whether a service is announced.
    pub(crate) fn is_declared(&self, key: &F::Key) -> bool {
        self.lock().declared.contains(key)
    }

    /// The announced services, sorted.
    pub(crate) fn declared(&self) -> Vec<F::Key> {
        self.lock().declared.iter().cloned().collect()
    }
}

/// Entries that are taken out are dropped when the lock is let go.
impl<F: Flavour> State<F> {
    fn take(&mut self, meant: impl Fn(&F::Key, &Entry<F::Service>) -> bool) -> Vec<Entry<F::Service>> {
        self.services.extract_if(.., |key, entry| meant(key, entry)).map(|(_, entry)| entry).collect()
    }

    /// Takes out the object of this key, under all keys of the instance: a new object replaces the old one
    /// under the interfaces that it does not have, too.
    fn take_predecessor(&mut self, key: &F::Key) -> Vec<Entry<F::Service>> {
        let Some(object) = self.services.get(key).map(|entry| F::binder(&entry.service).clone()) else {
            return Vec::new();
        };
        // The clone is not the last reference: the entries taken have the object, too.
        self.take(|known, entry| F::is_same_instance(known, key) && *F::binder(&entry.service) == object)
    }

    /// Takes out the client callbacks of objects that are registered no more.
    fn take_callbacks_of(&mut self, gone: &[Entry<F::Service>]) -> Vec<Callback<F::Key>> {
        let still = |object: &Binder| self.services.values().any(|entry| F::binder(&entry.service) == object);
        let lost = gone.iter().map(|entry| F::binder(&entry.service)).filter(|object| !still(object));
        let lost: Vec<&Binder> = lost.collect();
        let concerned = |entry: &mut Callback<F::Key>| matches!(&entry.subject, Subject::ClientsOf(object) if lost.contains(&object));
        self.callbacks.extract_if(.., concerned).collect()
    }

    fn callbacks_for(&self, key: &F::Key) -> impl Iterator<Item = &Binder> {
        self.callbacks.iter().filter_map(move |entry| match &entry.subject {
            Subject::Registrations(wanted) if F::matches(wanted, key) => Some(&entry.callback),
            _ => None,
        })
    }

    /// Returns the services that the callback is told of; the entry itself if there is one like it, for a
    /// service's client callback is kept once.
    fn insert_callback(&mut self, entry: Callback<F::Key>) -> Result<Vec<Named<F>>, Callback<F::Key>> {
        let present = match &entry.subject {
            Subject::Registrations(wanted) => {
                let present = self.services.iter().filter(|(key, _)| F::matches(wanted, key));
                present.map(|(key, entry)| (key.clone(), entry.service.clone())).collect()
            }
            Subject::ClientsOf(service) => {
                let is_this = |known: &Callback<F::Key>| {
                    known.callback == entry.callback
                        && matches!(&known.subject, Subject::ClientsOf(object) if object == service)
                };
                if self.callbacks.iter().any(is_this) {
                    return Err(entry);
                }
                Vec::new()
            }
        };
        self.callbacks.push(entry);
        Ok(present)
    }
}
