//! The service manager as an object: its calls, in every release's dialect.
//! Not here: the table of services (`crate::manager::registry`), method numbers (`codes`).
//! Facts: Android's `ServiceManager.cpp`; up to 10, `service_manager.c`. It makes no call that waits
//! for anyone.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::binder::manager::codes::Method;
use crate::binder::manager::dialect::{self, Stranger, Taken};
use crate::binder::manager::registry::{Names, Service, is_name};
use crate::binder::manager::wire::{Addition, ServiceInfo};
use crate::binder::manager::{DESCRIPTOR, dump_priority};
use crate::binder::object::{Incoming, Object};
use crate::binder::parcel::Parcel;
use crate::binder::stability::Stability;
use crate::incoming::own_pid;
use crate::manager::registry::{Registry, Subject};
use crate::manager::strangers::{Report, Strangers};
use crate::release::Release;
use crate::runtime::target::Binder;
use crate::status::{ExceptionKind, Status};
use crate::status_code::StatusCode;

/// A service manager, to be made a context's manager with
/// [`crate::Process::become_context_manager`]. Clones share one registry. Its process must run its
/// pool, for the calls and for the deaths of services.
#[derive(Clone, Default)]
pub struct ServiceManager {
    registry: Arc<Registry<Names>>,
    /// It speaks every dialect that a header shows.
    any: bool,
    strangers: Strangers,
}

impl ServiceManager {
    /// A manager with no services.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A manager that answers each caller in the dialect that its header shows: of Android 8, 9 and 10, and, from 11 on, of the
    /// process's release.
    #[must_use]
    pub fn speaking_any(self) -> Self {
        Self { any: true, ..self }
    }

    /// A manager that reports, once for each process, that its calls are in another dialect and refused.
    #[must_use]
    pub fn reporting(self, report: Report) -> Self {
        Self { strangers: Strangers::reporting(report), ..self }
    }

    /// Announces a name ("interface/instance") as one that will be registered, as a system's
    /// manifest does.
    pub fn declare(&self, name: &str) {
        self.registry.declare(name.to_owned());
    }

    /// Registers an object without a call: for objects of the manager's own process, which cannot
    /// call handle 0 (contract CTX-05).
    ///
    /// # Errors
    /// The name is none, or the object is dead.
    pub fn add(&self, name: &str, binder: &Binder) -> Result<(), Status> {
        let entry = (binder.clone(), Stability::System);
        let dump_priority = dump_priority::DEFAULT;
        self.register(name, Service { entry, allow_isolated: false, dump_priority, pid: own_pid() })
    }

    /// The object of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Binder> {
        self.service(name).map(|service| service.entry.0)
    }

    /// The registered services, sorted by name.
    #[must_use]
    pub fn services(&self) -> Vec<ServiceInfo> {
        let services = self.registry.services().into_iter();
        services.map(|(name, service)| ServiceInfo { name, pid: service.pid }).collect()
    }

    fn service(&self, name: &str) -> Option<Service> {
        self.registry.find(&name.to_owned())
    }

    fn register(&self, name: &str, service: Service) -> Result<(), Status> {
        check_name(name)?;
        self.registry.add(&[name.to_owned()], service).then_some(()).ok_or_else(dead)
    }

    fn add_service(&self, call: &mut Incoming<'_>) -> Result<(), Status> {
        let Addition { name, entry, allow_isolated, dump_priority } = Addition::read(call)?;
        let entry = entry.ok_or_else(|| Status::illegal_argument("no object to register"))?;
        self.register(&name, Service { entry, allow_isolated, dump_priority, pid: call.sender_pid() })
    }

    /// The names of the dump classes asked for, sorted.
    fn names(&self, priorities: i32) -> Vec<String> {
        let services = self.registry.services().into_iter();
        let asked = services.filter(|(_, service)| service.dump_priority & priorities != 0);
        asked.map(|(name, _)| name).collect()
    }

    fn list(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if call.release() > Release::Android10 {
            let names = self.names(call.read_i32()?);
            reply.write_str_slice(&names);
            return Ok(());
        }
        let index = call.read_i32()?;
        let has_priority = call.release() >= Release::Android9;
        let asked = if has_priority { call.read_i32()? } else { dump_priority::ALL };
        let names = self.names(asked);
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
        if method == Method::RegisterForNotifications {
            check_name(&name)?;
            let subject = Subject::Registrations(name);
            return self.registry.subscribe(subject, &callback).then_some(()).ok_or_else(dead);
        }
        let meant =
            |subject: &Subject<String>| matches!(subject, Subject::Registrations(own) if *own == name);
        if self.registry.unsubscribe(&callback, meant) {
            return Ok(());
        }
        Err(Status::illegal_argument(format!("no such callback for {name}")))
    }

    /// Checks that a call about a service comes from the process that registered this very object.
    fn check_owner(&self, name: &str, binder: &Binder, pid: i32) -> Result<(), Status> {
        match self.service(name) {
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

    fn owners_call(&self, method: Method, call: &mut Incoming<'_>) -> Result<(), Status> {
        let (name, binder) = Self::callback(call)?;
        self.check_owner(&name, &binder, call.sender_pid())?;
        if method == Method::TryUnregisterService {
            self.registry.remove(&name, &binder);
        }
        // A client callback is accepted and never called: no service here is started on demand, so
        // none is ever told to stop.
        Ok(())
    }

    fn answer(&self, method: Method, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match method {
            Method::GetService | Method::GetService2 | Method::CheckService | Method::CheckService2 => {
                let name = call.read_str()?;
                let isolated = is_isolated(call.sender_euid());
                let found = self.service(&name).filter(|service| service.allow_isolated || !isolated);
                let entry = found.map(|service| service.entry);
                method.lookup_reply(call.release()).write(reply, entry.as_ref());
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
                let (interface, declared) = (call.read_str()?, self.registry.declared());
                let instance =
                    |name: &String| Some(name.strip_prefix(&interface)?.strip_prefix('/')?.to_owned());
                reply.write_str_slice(&declared.iter().filter_map(instance).collect::<Vec<String>>());
            }
            // No service here comes out of an updatable module, and none lives on another machine.
            Method::UpdatableViaApex => reply.write_nullable_str(None),
            Method::GetUpdatableNames => reply.write_str_slice::<&str>(&[]),
            Method::GetConnectionInfo => reply.write_bool(false),
            Method::GetServiceDebugInfo => {
                reply.write_slice(&self.services(), |parcel, info| info.write(parcel));
            }
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), Status> {
    if is_name(name) {
        return Ok(());
    }
    Err(Status::illegal_argument(format!("\"{name}\" is no name for a service")))
}

fn dead() -> Status {
    Status::exception(ExceptionKind::ILLEGAL_STATE, "the object is dead")
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
        match dialect::taken(call.code(), call.reader, call.release(), self.any) {
            Taken::Own => {}
            Taken::As(release) => {
                call.reader.set_release(release);
                *reply = Parcel::for_release(release);
                reply.write_no_exception();
            }
            Taken::Foreign(speaks) => {
                let (pid, own) = (call.sender_pid(), call.release());
                self.strangers.report(pid, || Stranger { speaks: &speaks, own }.to_string());
                return Err(StatusCode::BAD_TYPE.into());
            }
        }
        let method = Method::numbered(call.code(), call.release()).ok_or(Status::UNKNOWN_TRANSACTION)?;
        let old = call.release() <= Release::Android10;
        self.answer(method, call, reply).map_err(|status| match status {
            // Up to 10 there are no exceptions; every refusal is -1.
            Status::Exception(_) if old => Status::Code(StatusCode::PERMISSION_DENIED),
            status => status,
        })
    }

    fn on_other_header(&self, call: &Incoming<'_>) {
        self.strangers.report(call.sender_pid(), || dialect::other_interface(call.reader));
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
