//! Room: which objects are registered under which names, and who wants to know.
//! Not here: the calls that ask (`server`).
//! Locks: `state`; nobody is called, linked or dropped under it.
//! Facts: Android's `ServiceManager.cpp`: rules for names, overwriting, deaths, notifications.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::binder::manager::wire::{DebugInfo, Entry};
use crate::binder::manager::{CALLBACK_DESCRIPTOR, ON_REGISTRATION};
use crate::binder::status::{ExceptionKind, Status};
use crate::death::DeathLink;
use crate::proxy::Proxy;
use crate::target::Binder;

/// Longest name of a service, in characters.
const LONGEST_NAME: usize = 127;

/// Whether a service may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// One registered service, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceInfo {
    /// Its name.
    pub name: String,
    /// The process that registered it; this one for services of its own.
    pub pid: i32,
}

struct Service {
    entry: Entry,
    allow_isolated: bool,
    dump_priority: i32,
    pid: i32,
    /// Tells this registration from a later one under the same name.
    number: u64,
    /// `None` for an object of this process.
    _death: Option<DeathLink>,
}

struct Watcher {
    callback: Binder,
    _death: Option<DeathLink>,
}

#[derive(Default)]
struct State {
    services: BTreeMap<String, Service>,
    watchers: BTreeMap<String, Vec<Watcher>>,
    declared: BTreeSet<String>,
    last_number: u64,
}

/// How a service is registered.
pub(crate) struct Terms {
    pub(crate) allow_isolated: bool,
    pub(crate) dump_priority: i32,
    pub(crate) pid: i32,
}

/// The names of one context.
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
}

/// Calls `gone` when the object's process dies; `None` for an object of this process.
fn link(binder: &Binder, gone: impl FnOnce() + Send + 'static) -> Result<Option<DeathLink>, Status> {
    match binder.proxy() {
        Some(proxy) => proxy.link_to_death(gone).map(Some).map_err(|_| dead()),
        None => Ok(None),
    }
}

fn dead() -> Status {
    Status::exception(ExceptionKind::ILLEGAL_STATE, "the object is dead")
}

/// Whether the object's death has been told. Asked after an entry was made: a link may fire before.
fn is_dead(binder: &Binder) -> bool {
    binder.proxy().is_some_and(Proxy::is_known_dead)
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an object, in place of an earlier one of the name, and tells who waits for it.
    pub(crate) fn add(self: &Arc<Self>, name: &str, entry: Entry, terms: &Terms) -> Result<(), Status> {
        if !is_name(name) {
            return Err(Status::illegal_argument(format!("\"{name}\" is no name for a service")));
        }
        let service = self.linked(name, entry, terms)?;
        self.enter(name, service)
    }

    /// An object as a service that is forgotten when it dies.
    fn linked(self: &Arc<Self>, name: &str, entry: Entry, terms: &Terms) -> Result<Service, Status> {
        let number = {
            let mut state = self.lock();
            state.last_number += 1;
            state.last_number
        };
        let (weak, own) = (Arc::downgrade(self), name.to_owned());
        let gone = move || {
            if let Some(registry) = weak.upgrade() {
                registry.forget(&own, number);
            }
        };
        let death = link(&entry.0, gone)?;
        let Terms { allow_isolated, dump_priority, pid } = *terms;
        Ok(Service { entry, allow_isolated, dump_priority, pid, number, _death: death })
    }

    /// The rest of [`Self::add`].
    fn enter(&self, name: &str, service: Service) -> Result<(), Status> {
        let (entry, number) = (service.entry.clone(), service.number);
        let (previous, callbacks) = {
            let mut state = self.lock();
            let previous = state.services.insert(name.to_owned(), service);
            (previous, state.callbacks(name))
        };
        drop(previous);
        if is_dead(&entry.0) {
            // Its notification may have come before there was anything to forget.
            self.forget(name, number);
            return Err(dead());
        }
        for callback in callbacks {
            tell(&callback, name, &entry);
        }
        Ok(())
    }

    /// The object of a name, for a caller who may see it.
    pub(crate) fn find(&self, name: &str, isolated: bool) -> Option<Entry> {
        let state = self.lock();
        let service = state.services.get(name)?;
        (service.allow_isolated || !isolated).then(|| service.entry.clone())
    }

    /// The names of the classes asked for, sorted.
    pub(crate) fn names(&self, priorities: i32) -> Vec<String> {
        let state = self.lock();
        let asked = state.services.iter().filter(|(_, service)| service.dump_priority & priorities != 0);
        asked.map(|(name, _)| name.clone()).collect()
    }

    /// Tells a callback of each registration of a name, the present one first.
    pub(crate) fn watch(self: &Arc<Self>, name: &str, callback: Binder) -> Result<(), Status> {
        if !is_name(name) {
            return Err(Status::illegal_argument(format!("\"{name}\" is no name for a service")));
        }
        let watcher = self.listening(name, callback)?;
        self.listen(name, watcher)
    }

    /// A callback as a watcher that is taken off when it dies.
    fn listening(self: &Arc<Self>, name: &str, callback: Binder) -> Result<Watcher, Status> {
        let (weak, own, gone) = (Arc::downgrade(self), name.to_owned(), callback.clone());
        let death = link(&callback, move || {
            if let Some(registry) = weak.upgrade() {
                registry.unwatch(&own, &gone);
            }
        })?;
        Ok(Watcher { callback, _death: death })
    }

    /// The rest of [`Self::watch`].
    fn listen(&self, name: &str, watcher: Watcher) -> Result<(), Status> {
        let callback = watcher.callback.clone();
        let entry = {
            let mut state = self.lock();
            state.watchers.entry(name.to_owned()).or_default().push(watcher);
            state.services.get(name).map(|service| service.entry.clone())
        };
        if is_dead(&callback) {
            // Its notification may have come before there was anything to take off.
            self.unwatch(name, &callback);
            return Err(dead());
        }
        if let Some(entry) = entry {
            tell(&callback, name, &entry);
        }
        Ok(())
    }

    /// Whether the callback was one of the name's.
    pub(crate) fn unwatch(&self, name: &str, callback: &Binder) -> bool {
        let mut state = self.lock();
        let Some(watchers) = state.watchers.get_mut(name) else { return false };
        let all = std::mem::take(watchers);
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|watcher| watcher.callback == *callback);
        let found = !gone.is_empty();
        if left.is_empty() {
            state.watchers.remove(name);
        } else if let Some(watchers) = state.watchers.get_mut(name) {
            *watchers = left;
        }
        drop(state);
        drop(gone);
        found
    }

    /// Checks that a call about a service comes from the process that registered this very object.
    pub(crate) fn check_owner(&self, name: &str, binder: &Binder, pid: i32) -> Result<(), Status> {
        let state = self.lock();
        match state.services.get(name) {
            Some(service) if service.pid != pid => Err(Status::exception(
                ExceptionKind::SECURITY,
                format!("{name} was registered by another process"),
            )),
            Some(service) if service.entry.0 != *binder => {
                Err(Status::illegal_argument(format!("{name} is another object")))
            }
            Some(_) => Ok(()),
            None => Err(Status::illegal_argument(format!("{name} is not registered"))),
        }
    }

    /// Takes a service back.
    pub(crate) fn remove(&self, name: &str) {
        let gone = self.lock().services.remove(name);
        drop(gone);
    }

    /// A service's process died. A later registration under the name stays.
    fn forget(&self, name: &str, number: u64) {
        let mut state = self.lock();
        let gone = match state.services.get(name) {
            Some(service) if service.number == number => state.services.remove(name),
            _ => None,
        };
        drop(state);
        drop(gone);
    }

    /// Announces a name ("interface/instance") as one that will be registered.
    pub(crate) fn declare(&self, name: &str) {
        self.lock().declared.insert(name.to_owned());
    }

    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.lock().declared.contains(name)
    }

    /// The announced instances of an interface.
    pub(crate) fn declared_instances(&self, interface: &str) -> Vec<String> {
        let state = self.lock();
        let instances =
            state.declared.iter().filter_map(|name| name.strip_prefix(interface)?.strip_prefix('/'));
        instances.map(str::to_owned).collect()
    }

    pub(crate) fn debug_info(&self) -> Vec<DebugInfo> {
        let state = self.lock();
        let services = state.services.iter();
        services.map(|(name, service)| DebugInfo { name: name.clone(), pid: service.pid }).collect()
    }
}

impl State {
    fn callbacks(&self, name: &str) -> Vec<Binder> {
        let watchers = self.watchers.get(name).into_iter().flatten();
        watchers.map(|watcher| watcher.callback.clone()).collect()
    }
}

/// Oneway: a manager waits for nobody.
fn tell(callback: &Binder, name: &str, (binder, stability): &Entry) {
    let mut request = callback.request(CALLBACK_DESCRIPTOR);
    request.write_str(name);
    request.write_nullable_binder_as(Some(binder), *stability);
    // A callback that is gone is taken off by its death notification.
    let _ = callback.oneway(ON_REGISTRATION, request);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binder::stability::Stability;
    use crate::runtime::tests::Mortal;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "media.player", "a.b.IFoo/default", "x-y_Z9", &"n".repeat(127)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", " ", "ä", "a b", "a:b", "a\0", &"n".repeat(128)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn declared_instances_are_those_of_the_interface() {
        let registry = Registry::default();
        for name in ["a.IFoo/default", "a.IFoo/other", "a.IFooBar/default", "a.IFoo"] {
            registry.declare(name);
        }
        assert_eq!(registry.declared_instances("a.IFoo"), ["default", "other"]);
        assert!(registry.is_declared("a.IFooBar/default") && !registry.is_declared("a.IBar/default"));
    }

    const TERMS: Terms = Terms { allow_isolated: false, dump_priority: 8, pid: 7 };

    /// DTH-02, DTH-04: a link to what has just died succeeds and fires on any thread, at once.
    #[test]
    fn who_dies_between_link_and_entry_is_not_registered() {
        let registry = Arc::new(Registry::default());
        let mortal = Mortal::new();
        let entry = || (mortal.binder(), Stability::System);
        let service = registry.linked("a", entry(), &TERMS).expect("alive");
        mortal.die();
        registry.enter("a", service).expect_err("it was dead");
        assert!(registry.debug_info().is_empty());
        registry.add("a", entry(), &TERMS).expect_err("known to be dead");
    }

    #[test]
    fn a_callback_that_dies_between_link_and_entry_does_not_stay() {
        let registry = Arc::new(Registry::default());
        let mortal = Mortal::new();
        let watcher = registry.listening("a", mortal.binder()).expect("alive");
        mortal.die();
        registry.listen("a", watcher).expect_err("it was dead");
        assert!(registry.lock().watchers.is_empty());
    }

    #[test]
    fn who_dies_is_forgotten() {
        let registry = Arc::new(Registry::default());
        let mortal = Mortal::new();
        registry.add("a", (mortal.binder(), Stability::System), &TERMS).expect("alive");
        registry.watch("b", mortal.binder()).expect("alive");
        mortal.die();
        assert!(registry.debug_info().is_empty() && registry.lock().watchers.is_empty());
    }
}
