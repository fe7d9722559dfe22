//! Room: the service manager as an object: its calls, in every release's dialect.
//! Not here: what is registered (`registry`), the numbers (`codes`).
//! Facts: Android's `ServiceManager.cpp`; up to 10, `service_manager.c`. It makes no call that waits
//! for anyone.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::binder::manager::codes::Method;
use crate::binder::manager::registry::{Registry, ServiceInfo, Terms};
use crate::binder::manager::wire::{Addition, ConnectionInfo, Entry};
use crate::binder::manager::{DESCRIPTOR, dump_priority};
use crate::binder::object::{Incoming, Object};
use crate::binder::parcel::Parcel;
use crate::binder::stability::Stability;
use crate::binder::status::Status;
use crate::release::Release;
use crate::status_code::StatusCode;
use crate::target::Binder;

/// A service manager, to be made a context's manager with
/// [`crate::Process::become_context_manager`]. Clones share one registry. Its process must run its
/// pool, for the calls and for the deaths of services.
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

    /// Announces a name ("interface/instance") as one that will be registered, as a system's
    /// manifest does.
    pub fn declare(&self, name: &str) {
        self.registry.declare(name);
    }

    /// Registers an object without a call: for objects of the manager's own process, which cannot
    /// call handle 0 (contract CTX-05).
    ///
    /// # Errors
    /// The name is none, or the object is dead.
    pub fn add(&self, name: &str, binder: &Binder) -> Result<(), Status> {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let terms = Terms { allow_isolated: false, dump_priority: dump_priority::DEFAULT, pid };
        self.registry.add(name, (binder.clone(), Stability::System), &terms)
    }

    /// The object of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Binder> {
        self.registry.find(name, false).map(|(binder, _)| binder)
    }

    /// What is registered, sorted by name.
    #[must_use]
    pub fn services(&self) -> Vec<ServiceInfo> {
        let all = self.registry.debug_info().into_iter();
        all.map(|info| ServiceInfo { name: info.name, pid: info.pid }).collect()
    }

    fn add_service(&self, call: &mut Incoming<'_>) -> Result<(), Status> {
        let Addition { name, entry, allow_isolated, dump_priority } = Addition::read(call)?;
        let entry = entry.ok_or_else(|| Status::illegal_argument("no object to register"))?;
        self.registry.add(&name, entry, &Terms { allow_isolated, dump_priority, pid: call.sender_pid() })
    }

    fn list(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if call.release() > Release::Android10 {
            let names = self.registry.names(call.read_i32()?);
            reply.write_str_slice(&names);
            return Ok(());
        }
        let index = call.read_i32()?;
        let has_priority = call.release() >= Release::Android9;
        let asked = if has_priority { call.read_i32()? } else { dump_priority::ALL };
        let names = self.registry.names(asked);
        let name = usize::try_from(index).ok().and_then(|index| names.get(index));
        reply.clear();
        reply.write_str(name.ok_or(StatusCode::PERMISSION_DENIED)?);
        Ok(())
    }

    fn callback(call: &mut Incoming<'_>) -> Result<(String, Binder), Status> {
        let name = call.read_str()?;
        let callback = call.read_nullable_binder()?;
        Ok((name, callback.ok_or_else(|| Status::illegal_argument("no callback"))?))
    }

    fn watching(&self, method: Method, call: &mut Incoming<'_>) -> Result<(), Status> {
        let (name, callback) = Self::callback(call)?;
        match method {
            Method::RegisterForNotifications => self.registry.watch(&name, callback),
            _ if self.registry.unwatch(&name, &callback) => Ok(()),
            _ => Err(Status::illegal_argument(format!("no such callback for {name}"))),
        }
    }

    fn owners_call(&self, method: Method, call: &mut Incoming<'_>) -> Result<(), Status> {
        let (name, binder) = Self::callback(call)?;
        self.registry.check_owner(&name, &binder, call.sender_pid())?;
        if method == Method::TryUnregisterService {
            self.registry.remove(&name);
        }
        // A client callback is accepted and never called: no service here is started on demand, so
        // none is ever told to stop.
        Ok(())
    }

    fn answer(&self, method: Method, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match method {
            Method::GetService | Method::GetService2 | Method::CheckService | Method::CheckService2 => {
                let name = call.read_str()?;
                let entry: Option<Entry> = self.registry.find(&name, is_isolated(call.sender_euid()));
                method.found(call.release()).write(reply, entry.as_ref());
            }
            Method::AddService => self.add_service(call)?,
            Method::ListServices => self.list(call, reply)?,
            Method::RegisterForNotifications | Method::UnregisterForNotifications => {
                self.watching(method, call)?;
            }
            Method::RegisterClientCallback | Method::TryUnregisterService => {
                self.owners_call(method, call)?
            }
            Method::IsDeclared => reply.write_bool(self.registry.is_declared(&call.read_str()?)),
            Method::GetDeclaredInstances => {
                reply.write_str_slice(&self.registry.declared_instances(&call.read_str()?));
            }
            // No service here comes out of an updatable module, and none lives on another machine.
            Method::UpdatableViaApex => reply.write_nullable_str(None),
            Method::GetUpdatableNames => reply.write_str_slice::<&str>(&[]),
            Method::GetConnectionInfo => reply.write_parcelable::<ConnectionInfo>(None),
            Method::GetServiceDebugInfo => {
                reply.write_slice(&self.registry.debug_info(), |parcel, info| {
                    parcel.write_parcelable(Some(info));
                });
            }
        }
        Ok(())
    }
}

/// Android runs untrusted code under these uids; only services that allow it are shown to it.
fn is_isolated(uid: u32) -> bool {
    const PER_USER: u32 = 100_000;
    (90_000..=99_999).contains(&(uid % PER_USER))
}

impl Object for ServiceManager {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        let method = Method::numbered(call.code(), call.release()).ok_or(Status::UNKNOWN_TRANSACTION)?;
        let old = call.release() <= Release::Android10;
        self.answer(method, call, reply).map_err(|status| match status {
            // Up to 10 there are no exceptions; every refusal is -1.
            Status::Exception(_) if old => Status::Code(StatusCode::PERMISSION_DENIED),
            status => status,
        })
    }

    fn dump(&self, to: &mut dyn io::Write, _arguments: &[String]) -> io::Result<()> {
        self.services().iter().try_for_each(|service| writeln!(to, "{} {}", service.pid, service.name))
    }
}

impl fmt::Debug for ServiceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceManager").field("services", &self.services()).finish()
    }
}
