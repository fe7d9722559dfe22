//! The service manager as an object.
//! Not here: the table of services (`crate::manager::registry`).
//! Facts: hwservicemanager's `ServiceManager.cpp`. `add` carries no names of interfaces: the manager
//! asks the object, while its owner waits, and is answered on the owner's waiting thread.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::manager::registry::{Instances, Key, Service, key, keys};
use crate::hwbinder::manager::wire::InstanceInfo;
use crate::hwbinder::manager::{INTERFACES, Method, Transport};
use crate::hwbinder::object::{Incoming, Object};
use crate::hwbinder::parcel::HwParcel;
use crate::incoming::own_pid;
use crate::manager::registry::{Flavour, Registry, Subject};
use crate::manager::strangers::{Report, Strangers};
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};

/// A service manager, to be made a context's manager with
/// [`crate::Process::become_hidl_context_manager`]. Clones share one registry. Its process must run
/// its pool, for the calls and for the deaths of services.
#[derive(Clone, Default)]
pub struct ServiceManager {
    registry: Arc<Registry<Instances>>,
    strangers: Strangers,
}

impl ServiceManager {
    /// A manager with no services.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A manager that reports, once for each process, that its calls are in another dialect and refused.
    #[must_use]
    pub fn reporting(self, report: Report) -> Self {
        Self { strangers: Strangers::reporting(report), ..self }
    }

    /// Announces an instance as one that will be registered, as a device's manifest does.
    pub fn declare(&self, interface: &str, instance: &str) {
        self.registry.declare(key(interface, instance));
    }

    /// Registers an object without a call: for objects of the manager's own process, which cannot
    /// call handle 0 (contract CTX-05).
    ///
    /// # Errors
    /// The instance has no name, or the object is dead or does not say what it is.
    pub fn add(&self, instance: &str, object: &HwBinder) -> Result<(), CallError> {
        if self.add_asking(instance, object, own_pid())? {
            return Ok(());
        }
        Err(Status::illegal_argument(format!("\"{instance}\" is no name for an instance")).into())
    }

    /// The object of an instance.
    #[must_use]
    pub fn find(&self, interface: &str, instance: &str) -> Option<HwBinder> {
        self.registry.find(&key(interface, instance)).map(|service| service.object)
    }

    /// The registered services, sorted by name.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceInfo> {
        let info = |((interface, instance), service): (Key, Service)| InstanceInfo {
            interface,
            instance,
            pid: service.pid,
            clients: Vec::new(),
            arch: 0,
        };
        self.registry.services().into_iter().map(info).collect()
    }

    /// Every instance as "interface/instance", sorted.
    fn names(&self) -> Vec<String> {
        let services = self.registry.services().into_iter();
        services.map(|((interface, instance), _)| format!("{interface}/{instance}")).collect()
    }

    /// Registers an object under every interface of its chain. Whether it is registered: not with a name that
    /// cannot be, nor when it is dead.
    fn register(&self, instance: &str, object: &HwBinder, chain: &[impl AsRef<str>], pid: i32) -> bool {
        let service = Service { object: object.clone(), pid };
        keys(instance, chain).is_some_and(|keys| self.registry.add(&keys, service))
    }

    /// Registers an object under the interfaces that it says it has.
    fn add_asking(&self, instance: &str, object: &HwBinder, pid: i32) -> Result<bool, CallError> {
        Ok(self.register(instance, object, &object.interface_chain()?, pid))
    }

    fn watching(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let wanted = key(call.read_str()?, call.read_str()?);
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        let callback = callback.as_binder();
        if method == Method::RegisterForNotifications {
            return Ok(self.registry.subscribe(Subject::Registrations(wanted), callback));
        }
        let meant = |subject: &Subject<Key>| matches!(subject, Subject::Registrations(own) if Instances::matches(&wanted, own));
        Ok(self.registry.unsubscribe(callback, meant))
    }

    /// Calls that only the process that registered an instance may make.
    fn owners_call(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let key = key(call.read_str()?, call.read_str()?);
        let Some(service) = call.read_nullable_binder()? else { return Ok(false) };
        let pid = call.sender_pid();
        let known = self.registry.find(&key);
        if !known.is_some_and(|known| known.object == service && known.pid == pid) {
            return Ok(false);
        }
        if method == Method::TryUnregister {
            self.registry.remove(&key, service.as_binder());
            return Ok(true);
        }
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        let subject = Subject::ClientsOf(service.as_binder().clone());
        Ok(self.registry.subscribe(subject, callback.as_binder()))
    }

    /// No service is every service.
    fn unregister_client_callback(&self, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let service = call.read_nullable_binder()?;
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        let is_meant = |own: &Binder| service.as_ref().is_none_or(|service| service.as_binder() == own);
        let meant = |subject: &Subject<Key>| matches!(subject, Subject::ClientsOf(own) if is_meant(own));
        Ok(self.registry.unsubscribe(callback.as_binder(), meant))
    }

    fn adding(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let instance = call.read_str()?;
        let Some(object) = call.read_nullable_binder()? else { return Ok(false) };
        let pid = call.sender_pid();
        if method == Method::AddWithChain {
            return Ok(self.register(instance, &object, &call.read_str_vec()?, pid));
        }
        // One that does not say what it is cannot be registered; that is the answer, not a failure.
        Ok(self.add_asking(instance, &object, pid).unwrap_or(false))
    }

    fn answer(
        &self,
        method: Method,
        call: &mut Incoming<'_>,
        reply: &mut HwParcel<'_>,
    ) -> Result<(), Status> {
        match method {
            Method::Get => {
                let found = self.find(call.read_str()?, call.read_str()?);
                reply.write_nullable_binder(found.as_ref());
            }
            Method::Add | Method::AddWithChain => reply.write_bool(self.adding(method, call)?),
            Method::GetTransport => {
                let key = key(call.read_str()?, call.read_str()?);
                let known = self.registry.find(&key).is_some() || self.registry.is_declared(&key);
                let transport = if known { Transport::Hwbinder } else { Transport::Empty };
                reply.write_u8(transport.number());
            }
            Method::List => reply.write_str_vec(&self.names()),
            Method::ListByInterface => {
                let services = self.registry.services();
                let keys = services.iter().map(|(key, _)| key);
                reply.write_str_vec(&instances_of(call.read_str()?, keys));
            }
            Method::ListManifestByInterface => {
                reply.write_str_vec(&instances_of(call.read_str()?, &self.registry.declared()));
            }
            Method::RegisterForNotifications | Method::UnregisterForNotifications => {
                reply.write_bool(self.watching(method, call)?);
            }
            Method::DebugDump => InstanceInfo::write_vec(&self.instances(), reply),
            // Who loads a library into its own process is not this manager's to keep.
            Method::RegisterPassthroughClient => {}
            Method::RegisterClientCallback | Method::TryUnregister => {
                reply.write_bool(self.owners_call(method, call)?);
            }
            Method::UnregisterClientCallback => {
                reply.write_bool(self.unregister_client_callback(call)?);
            }
        }
        Ok(())
    }
}

/// The instances among these that are of an interface.
fn instances_of<'k>(interface: &str, keys: impl IntoIterator<Item = &'k Key>) -> Vec<&'k str> {
    let own = keys.into_iter().filter(|(name, _)| name == interface);
    own.map(|(_, instance)| instance.as_str()).collect()
}

impl Object for ServiceManager {
    fn interfaces(&self) -> &[&str] {
        &INTERFACES
    }

    fn on_other_header(&self, call: &Incoming<'_>) {
        self.strangers.report(call.sender_pid(), || {
            "calls in AIDL or for another interface, and this manager speaks HIDL: start another one without --hw, for \
             /dev/binder"
                .to_owned()
        });
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        let method = Method::numbered(call.code()).ok_or(Status::UNKNOWN_TRANSACTION)?;
        self.answer(method, call, reply)
    }

    fn debug(&self, to: &mut dyn io::Write, _options: &[&str]) -> io::Result<()> {
        let line = |info: &InstanceInfo| writeln!(to, "{} {}/{}", info.pid, info.interface, info.instance);
        self.instances().iter().try_for_each(line)
    }
}

impl fmt::Debug for ServiceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceManager").field("instances", &self.names()).finish()
    }
}
