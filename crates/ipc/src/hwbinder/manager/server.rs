//! Room: the service manager as an object.
//! Not here: what is registered (`registry`).
//! Facts: hwservicemanager's `ServiceManager.cpp`. `add` carries no names of interfaces: the manager
//! asks the object, while its owner waits, and is answered on the owner's waiting thread.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::hwbinder::client::HwBinder;
use crate::hwbinder::manager::registry::Registry;
use crate::hwbinder::manager::wire::InstanceInfo;
use crate::hwbinder::manager::{INTERFACES, Method, Transport};
use crate::hwbinder::object::{Incoming, Object};
use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::status::{CallError, Status};

/// A service manager, to be made a context's manager with
/// [`crate::Process::become_hidl_context_manager`]. Clones share one registry. Its process must run
/// its pool, for the calls and for the deaths of services.
#[derive(Clone, Default)]
pub struct ServiceManager {
    registry: Arc<Registry>,
}

impl ServiceManager {
    /// A manager that knows nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces an instance as one that will be registered, as a device's manifest does.
    pub fn declare(&self, interface: &str, instance: &str) {
        self.registry.declare(interface, instance);
    }

    /// Registers an object without a call: for objects of the manager's own process, which cannot
    /// call handle 0 (contract CTX-05).
    ///
    /// # Errors
    /// The instance has no name, or the object is dead or does not say what it is.
    pub fn add(&self, instance: &str, object: &HwBinder) -> Result<(), CallError> {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        if self.add_asking(instance, object, pid)? {
            return Ok(());
        }
        Err(Status::illegal_argument(format!("\"{instance}\" is no name for an instance")).into())
    }

    /// The object of an instance.
    #[must_use]
    pub fn find(&self, interface: &str, instance: &str) -> Option<HwBinder> {
        self.registry.find(interface, instance)
    }

    /// What is registered, sorted by name.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceInfo> {
        self.registry.infos()
    }

    /// Registers an object under the interfaces that it says it has.
    fn add_asking(&self, instance: &str, object: &HwBinder, pid: i32) -> Result<bool, CallError> {
        let chain = object.interface_chain()?;
        let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
        Ok(self.registry.add(instance, object, &chain, pid))
    }

    fn watching(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let (interface, instance) = (call.read_str()?, call.read_str()?);
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        Ok(match method {
            Method::RegisterForNotifications => self.registry.watch(interface, instance, &callback),
            _ => self.registry.unwatch(interface, instance, &callback),
        })
    }

    /// What only the process that registered an instance may do with it.
    fn owners_call(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let (interface, instance) = (call.read_str()?, call.read_str()?);
        let Some(service) = call.read_nullable_binder()? else { return Ok(false) };
        let pid = call.sender_pid();
        if !self.registry.owns(interface, instance, &service, pid) {
            return Ok(false);
        }
        if method == Method::TryUnregister {
            self.registry.remove(instance, &service);
            return Ok(true);
        }
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        Ok(self.registry.add_client_callback(&service, &callback))
    }

    /// No service is every service.
    fn unregister_client_callback(&self, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let service = call.read_nullable_binder()?;
        let Some(callback) = call.read_nullable_binder()? else { return Ok(false) };
        Ok(self.registry.remove_client_callback(service.as_ref(), &callback))
    }

    fn adding(&self, method: Method, call: &mut Incoming<'_>) -> Result<bool, Status> {
        let instance = call.read_str()?;
        let Some(object) = call.read_nullable_binder()? else { return Ok(false) };
        let pid = call.sender_pid();
        if method == Method::AddWithChain {
            return Ok(self.registry.add(instance, &object, &call.read_str_vec()?, pid));
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
                let found = self.registry.find(call.read_str()?, call.read_str()?);
                reply.write_nullable_binder(found.as_ref());
            }
            Method::Add | Method::AddWithChain => reply.write_bool(self.adding(method, call)?),
            Method::GetTransport => {
                let known = self.registry.knows(call.read_str()?, call.read_str()?);
                let transport = if known { Transport::Hwbinder } else { Transport::Empty };
                reply.write_u8(transport.number());
            }
            Method::List => reply.write_str_vec(&self.registry.names()),
            Method::ListByInterface => reply.write_str_vec(&self.registry.instances(call.read_str()?)),
            Method::ListManifestByInterface => {
                reply.write_str_vec(&self.registry.declared(call.read_str()?));
            }
            Method::RegisterForNotifications | Method::UnregisterForNotifications => {
                reply.write_bool(self.watching(method, call)?);
            }
            Method::DebugDump => InstanceInfo::write_vec(&self.registry.infos(), reply),
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

impl Object for ServiceManager {
    fn interfaces(&self) -> &[&str] {
        &INTERFACES
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
        f.debug_struct("ServiceManager").field("instances", &self.registry.names()).finish()
    }
}
