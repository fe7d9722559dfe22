//! Room: which objects are registered as which instance of which interface, and who wants to know.
//! Not here: the calls that ask (`server`).
//! Locks: `state`; nobody is called, linked or dropped under it.
//! Facts: hwservicemanager's `ServiceManager.cpp`: an object is registered under every interface of its
//! chain; a later one takes the place of an earlier one; what dies is forgotten.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::death::DeathLink;
use crate::hwbinder::client::HwBinder;
use crate::hwbinder::manager::wire::InstanceInfo;
use crate::hwbinder::manager::{NOTIFICATION, ON_REGISTRATION};
use crate::proxy::Proxy;

/// Longest chain of interfaces that is believed.
const LONGEST_CHAIN: usize = 64;

/// Whether an interface may be called this. No '/': "interface/instance" is taken apart at the first one.
fn is_interface(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
}

/// Whether an instance may be called this. Cameras are "legacy/0"; Android checks nothing at all.
fn is_instance(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0')
}

#[derive(Clone)]
struct Service {
    object: HwBinder,
    pid: i32,
    /// Tells this registration from a later one in its place.
    number: u64,
    /// `None` for an object of this process; shared by the interfaces of one registration.
    _death: Option<Arc<DeathLink>>,
}

struct Watcher {
    /// Empty: every interface.
    interface: String,
    /// Empty: every instance.
    instance: String,
    callback: HwBinder,
    _death: Option<DeathLink>,
}

/// Who wants to be told when a service's clients come and go.
struct ClientCallback {
    service: HwBinder,
    callback: HwBinder,
    _death: Option<DeathLink>,
}

type Key = (String, String);

#[derive(Default)]
struct State {
    /// By interface, then instance.
    services: BTreeMap<Key, Service>,
    watchers: Vec<Watcher>,
    client_callbacks: Vec<ClientCallback>,
    declared: BTreeSet<Key>,
    last_number: u64,
}

/// The instances of one context.
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
}

/// Calls `gone` when the object's process dies: `Ok(None)` for an object of this process, `Err` for one
/// that is dead already.
fn link(object: &HwBinder, gone: impl FnOnce() + Send + 'static) -> Result<Option<DeathLink>, ()> {
    match object.proxy() {
        Some(proxy) => proxy.link_to_death(gone).map(Some).map_err(drop),
        None => Ok(None),
    }
}

/// Whether the object's death has been told. Asked after an entry was made: a link may fire before.
fn is_dead(object: &HwBinder) -> bool {
    object.proxy().is_some_and(Proxy::is_known_dead)
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an object under every interface of its chain, in place of earlier ones, and tells who
    /// waits. Whether it is registered: not with a name that cannot be, nor when it is dead.
    pub(crate) fn add(self: &Arc<Self>, instance: &str, object: &HwBinder, chain: &[&str], pid: i32) -> bool {
        let named = is_instance(instance) && chain.iter().all(|name| is_interface(name));
        if !named || chain.is_empty() || chain.len() > LONGEST_CHAIN {
            return false;
        }
        self.linked(object, pid).is_some_and(|service| self.enter(instance, chain, &service))
    }

    /// An object as a service that is forgotten when it dies; `None` if it is dead already.
    fn linked(self: &Arc<Self>, object: &HwBinder, pid: i32) -> Option<Service> {
        let number = {
            let mut state = self.lock();
            state.last_number += 1;
            state.last_number
        };
        let weak = Arc::downgrade(self);
        let gone = move || {
            if let Some(registry) = weak.upgrade() {
                registry.forget(|_, service| service.number == number);
            }
        };
        let death = link(object, gone).ok()?.map(Arc::new);
        Some(Service { object: object.clone(), pid, number, _death: death })
    }

    /// The rest of [`Self::add`]. Whether the object still lived.
    fn enter(&self, instance: &str, chain: &[&str], service: &Service) -> bool {
        let key = |interface: &str| (interface.to_owned(), instance.to_owned());
        let (previous, calls) = {
            let mut state = self.lock();
            let mut previous = state.take_predecessor(chain.first().copied().map(key).as_ref());
            let mut calls = Vec::new();
            for interface in chain {
                previous.extend(state.services.insert(key(interface), service.clone()));
                let watchers = state.watchers.iter().filter(|watcher| watcher.wants(interface, instance));
                calls.extend(watchers.map(|watcher| (watcher.callback.clone(), *interface)));
            }
            let callbacks = state.take_callbacks_of(&previous);
            ((previous, callbacks), calls)
        };
        drop(previous);
        if is_dead(&service.object) {
            // Its notification may have come before there was anything to forget.
            self.forget(|_, entry| entry.number == service.number);
            return false;
        }
        for (callback, interface) in calls {
            tell(&callback, interface, instance, false);
        }
        true
    }

    /// The object of an instance.
    pub(crate) fn find(&self, interface: &str, instance: &str) -> Option<HwBinder> {
        let state = self.lock();
        Some(state.services.get(&(interface.to_owned(), instance.to_owned()))?.object.clone())
    }

    /// Whether an instance is registered, or will be.
    pub(crate) fn knows(&self, interface: &str, instance: &str) -> bool {
        let state = self.lock();
        let key = (interface.to_owned(), instance.to_owned());
        state.services.contains_key(&key) || state.declared.contains(&key)
    }

    /// Every instance as "interface/instance", sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().services.keys().map(|(interface, instance)| format!("{interface}/{instance}")).collect()
    }

    /// The instances of an interface, sorted.
    pub(crate) fn instances(&self, interface: &str) -> Vec<String> {
        let state = self.lock();
        let own = state.services.keys().filter(|(name, _)| name == interface);
        own.map(|(_, instance)| instance.clone()).collect()
    }

    /// Announces an instance as one that will be registered, as a device's manifest does.
    pub(crate) fn declare(&self, interface: &str, instance: &str) {
        self.lock().declared.insert((interface.to_owned(), instance.to_owned()));
    }

    /// The announced instances of an interface, sorted.
    pub(crate) fn declared(&self, interface: &str) -> Vec<String> {
        let state = self.lock();
        let own = state.declared.iter().filter(|(name, _)| name == interface);
        own.map(|(_, instance)| instance.clone()).collect()
    }

    /// Everything, for people.
    pub(crate) fn infos(&self) -> Vec<InstanceInfo> {
        let state = self.lock();
        let info = |((interface, instance), service): (&Key, &Service)| InstanceInfo {
            interface: interface.clone(),
            instance: instance.clone(),
            pid: service.pid,
            clients: Vec::new(),
            arch: 0,
        };
        state.services.iter().map(info).collect()
    }

    /// Tells a callback of each registration, the present ones first. Whether it will hear.
    pub(crate) fn watch(self: &Arc<Self>, interface: &str, instance: &str, callback: &HwBinder) -> bool {
        self.listening(interface, instance, callback).is_some_and(|watcher| self.listen(watcher))
    }

    /// A callback as a watcher that is taken off when it dies; `None` if it is dead already.
    fn listening(self: &Arc<Self>, interface: &str, instance: &str, callback: &HwBinder) -> Option<Watcher> {
        let (weak, dead) = (Arc::downgrade(self), callback.clone());
        let gone = move || {
            if let Some(registry) = weak.upgrade() {
                registry.unwatch("", "", &dead);
            }
        };
        let death = link(callback, gone).ok()?;
        let (interface, instance) = (interface.to_owned(), instance.to_owned());
        Some(Watcher { interface, instance, callback: callback.clone(), _death: death })
    }

    /// The rest of [`Self::watch`]. Whether the callback still lived.
    fn listen(&self, watcher: Watcher) -> bool {
        let callback = watcher.callback.clone();
        let present: Vec<Key> = {
            let mut state = self.lock();
            let wanted = state.services.keys().filter(|(name, instance)| watcher.wants(name, instance));
            let present = wanted.cloned().collect();
            state.watchers.push(watcher);
            present
        };
        if is_dead(&callback) {
            // Its notification may have come before there was anything to take off.
            self.unwatch("", "", &callback);
            return false;
        }
        for (interface, instance) in present {
            tell(&callback, &interface, &instance, true);
        }
        true
    }

    /// Takes a callback off what it was registered for; an empty name is any. Whether it was there.
    pub(crate) fn unwatch(&self, interface: &str, instance: &str, callback: &HwBinder) -> bool {
        let meant = |watcher: &Watcher| {
            watcher.callback == *callback
                && (interface.is_empty() || watcher.interface == interface)
                && (instance.is_empty() || watcher.instance == instance)
        };
        let gone: Vec<Watcher> = self.lock().watchers.extract_if(.., |watcher| meant(watcher)).collect();
        !gone.is_empty()
    }

    /// Whether an instance is this object, registered by this process.
    pub(crate) fn owns(&self, interface: &str, instance: &str, object: &HwBinder, pid: i32) -> bool {
        let state = self.lock();
        let service = state.services.get(&(interface.to_owned(), instance.to_owned()));
        service.is_some_and(|service| service.object == *object && service.pid == pid)
    }

    /// Takes an object back from every interface that it is this instance of.
    pub(crate) fn remove(&self, instance: &str, object: &HwBinder) {
        self.forget(|(_, name), service| name == instance && service.object == *object);
    }

    fn forget(&self, meant: impl Fn(&Key, &Service) -> bool) {
        let mut state = self.lock();
        let gone = state.take(meant);
        let callbacks = state.take_callbacks_of(&gone);
        drop(state);
        drop((gone, callbacks));
    }

    /// Notes who wants to hear of a service's clients. It never does: no service here is started on
    /// demand, so none is told that it may stop. Whether it is noted: not when it is dead.
    pub(crate) fn add_client_callback(self: &Arc<Self>, service: &HwBinder, callback: &HwBinder) -> bool {
        self.calling_back(service, callback).is_some_and(|entry| self.note(entry))
    }

    /// An entry that is taken off when its callback dies; `None` if that is dead already.
    fn calling_back(self: &Arc<Self>, service: &HwBinder, callback: &HwBinder) -> Option<ClientCallback> {
        let (weak, dead) = (Arc::downgrade(self), callback.clone());
        let gone = move || {
            if let Some(registry) = weak.upgrade() {
                registry.remove_client_callback(None, &dead);
            }
        };
        let death = link(callback, gone).ok()?;
        Some(ClientCallback { service: service.clone(), callback: callback.clone(), _death: death })
    }

    /// The rest of [`Self::add_client_callback`]. Whether the callback still lived.
    fn note(&self, entry: ClientCallback) -> bool {
        let callback = entry.callback.clone();
        let again = {
            let mut state = self.lock();
            if state.client_callbacks.iter().any(|known| known.is(Some(&entry.service), &callback)) {
                Some(entry)
            } else {
                state.client_callbacks.push(entry);
                None
            }
        };
        drop(again);
        if is_dead(&callback) {
            // Its notification may have come before there was anything to take off.
            self.remove_client_callback(None, &callback);
            return false;
        }
        true
    }

    /// Takes that back, from one service or from all. Whether it was there.
    pub(crate) fn remove_client_callback(&self, service: Option<&HwBinder>, callback: &HwBinder) -> bool {
        let meant = |entry: &mut ClientCallback| entry.is(service, callback);
        let gone: Vec<_> = self.lock().client_callbacks.extract_if(.., meant).collect();
        !gone.is_empty()
    }
}

impl State {
    /// Takes these entries out, to be dropped when the lock is let go.
    fn take(&mut self, meant: impl Fn(&Key, &Service) -> bool) -> Vec<Service> {
        self.services.extract_if(.., |key, service| meant(key, service)).map(|(_, service)| service).collect()
    }

    /// Takes out the object of this key, under all its interfaces: what extends the interface that is
    /// registered anew is replaced with it.
    fn take_predecessor(&mut self, key: Option<&Key>) -> Vec<Service> {
        let Some((key, object)) = key.and_then(|key| Some((key, self.services.get(key)?.object.clone())))
        else {
            return Vec::new();
        };
        // The clone is not the last: what is taken has the object, too.
        self.take(|(_, instance), service| *instance == key.1 && service.object == object)
    }

    /// Takes out the client callbacks of those that are registered no more.
    fn take_callbacks_of(&mut self, gone: &[Service]) -> Vec<ClientCallback> {
        let still = |object: &HwBinder| self.services.values().any(|service| service.object == *object);
        let lost: Vec<&HwBinder> = gone.iter().map(|service| &service.object).collect();
        let lost: Vec<&HwBinder> = lost.into_iter().filter(|object| !still(object)).collect();
        self.client_callbacks.extract_if(.., |entry| lost.contains(&&entry.service)).collect()
    }
}

impl ClientCallback {
    /// Whether it is this callback of this service, or of any.
    fn is(&self, service: Option<&HwBinder>, callback: &HwBinder) -> bool {
        service.is_none_or(|service| self.service == *service) && self.callback == *callback
    }
}

impl Watcher {
    fn wants(&self, interface: &str, instance: &str) -> bool {
        (self.interface.is_empty() || self.interface == interface)
            && (self.instance.is_empty() || self.instance == instance)
    }
}

/// Oneway: a manager waits for nobody.
fn tell(callback: &HwBinder, interface: &str, instance: &str, preexisting: bool) {
    let mut request = callback.request(NOTIFICATION);
    request.write_str(interface);
    request.write_str(instance);
    request.write_bool(preexisting);
    // A callback that is gone is taken off by its death notification.
    let _ = callback.oneway(ON_REGISTRATION, request);
}
