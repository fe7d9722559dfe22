//! Client of a service manager, this crate's or Android's.
//! Not here: method numbers (`codes`), payloads (`wire`).
//! Facts: Android's `IServiceManager.cpp`: a lookup is tried again until the service is there.

use std::fmt;
use std::time::Duration;

use driver::Connection;

use crate::binder::client::Reply;
use crate::binder::manager::codes::{LookupReply, Method};
use crate::binder::manager::wire::{Addition, ServiceInfo};
use crate::binder::manager::{CALLBACK_DESCRIPTOR, DESCRIPTOR, ON_REGISTRATION, dump_priority};
use crate::binder::object::{Incoming, Object};
use crate::binder::parcel::Parcel;
use crate::manager;
use crate::process::Process;
use crate::release::Release;
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// How long [`Services::get`] waits for a service, as libbinder does.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The service manager as its clients see it, in the dialect of the process's release.
#[derive(Clone, PartialEq, Eq)]
pub struct Services {
    manager: Binder,
    release: Release,
}

impl Services {
    /// The manager of a process's context.
    ///
    /// # Errors
    /// The context has no manager, the manager does not answer, or it is this very process.
    pub fn of<C: Connection>(process: &Process<C>) -> Result<Self, CallError> {
        Self::wait(process, Duration::ZERO)
    }

    /// [`Self::of`], waiting up to `patience` for a manager to start.
    ///
    /// # Errors
    /// No manager appeared within `patience`.
    pub fn wait<C: Connection>(process: &Process<C>, patience: Duration) -> Result<Self, CallError> {
        let manager = manager::reach(process, patience, "", |manager| manager.ping())?;
        Ok(Self { manager, release: process.release() })
    }

    /// The object of a name; waits some seconds for a manager, and for the name to be registered.
    ///
    /// # Errors
    /// [`CallError::NoManager`], [`CallError::NoService`], and what the manager answers.
    pub fn find<C: Connection>(process: &Process<C>, name: &str) -> Result<Binder, CallError> {
        Self::wait(process, PATIENCE)?.get(name)
    }

    /// The manager itself.
    #[must_use]
    pub fn manager(&self) -> &Binder {
        &self.manager
    }

    fn request(&self) -> Parcel {
        self.manager.request(DESCRIPTOR)
    }

    fn code(&self, method: Method) -> Result<u32, CallError> {
        Ok(method.code(self.release).ok_or(Status::UNKNOWN_TRANSACTION)?)
    }

    fn call(&self, method: Method, request: Parcel) -> Result<Reply<'_>, CallError> {
        self.manager.call(self.code(method)?, request)
    }

    /// Calls a method with a name and the objects that it is about.
    fn call_about(&self, method: Method, name: &str, objects: &[&Binder]) -> Result<Reply<'_>, CallError> {
        let mut request = self.request();
        request.write_str(name);
        objects.iter().for_each(|object| request.write_binder(object));
        self.call(method, request)
    }

    /// Registers an object under a name, in place of an earlier one. It is forgotten with the manager: see
    /// [`Registration::of_binder`](crate::Registration::of_binder).
    ///
    /// # Errors
    /// The manager refuses (a name that cannot be), or see [`CallError`].
    pub fn add(&self, name: &str, binder: &Binder) -> Result<(), CallError> {
        self.add_with(name, binder, false, dump_priority::DEFAULT)
    }

    /// [`Self::add`] for isolated callers too, or with a class for dumps.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub fn add_with(
        &self,
        name: &str,
        binder: &Binder,
        allow_isolated: bool,
        dump_priority: i32,
    ) -> Result<(), CallError> {
        let mut request = self.request();
        Addition::write(&mut request, name, binder, allow_isolated, dump_priority);
        self.call(Method::AddService, request).map(drop)
    }

    /// The object of a name, if it is registered now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn check(&self, name: &str) -> Result<Option<Binder>, CallError> {
        // The newest form that the release has.
        let two = Method::CheckService2.code(self.release);
        self.look_up(if two.is_some() { Method::CheckService2 } else { Method::CheckService }, name)
    }

    /// Looks a name up with this very method.
    ///
    /// # Errors
    /// `UNKNOWN_TRANSACTION`: the release does not have the method. See [`CallError`].
    pub fn look_up(&self, method: Method, name: &str) -> Result<Option<Binder>, CallError> {
        let mut request = self.request();
        request.write_str(name);
        let code = self.code(method)?;
        match method.lookup_reply(self.release) {
            LookupReply::Bare => {
                let reply = self.manager.transact(code, &request)?;
                Ok(LookupReply::Bare.read(&mut reply.reader())?)
            }
            found => {
                let reply = self.manager.call(code, request)?;
                Ok(found.read(&mut reply.reader())?)
            }
        }
    }

    /// The object of a name; waits [`PATIENCE`] for it to be registered.
    ///
    /// # Errors
    /// [`CallError::NoService`]: nobody registered it. See [`CallError`].
    pub fn get(&self, name: &str) -> Result<Binder, CallError> {
        self.wait_for(name, PATIENCE)
    }

    /// The object of a name; waits so long for it to be registered.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn wait_for(&self, name: &str, patience: Duration) -> Result<Binder, CallError> {
        let flag = match self.release == Release::default() {
            true => String::new(),
            false => format!("--release {}", self.release),
        };
        manager::wait_for(name, patience, || manager::listing(&self.manager, &flag), || self.check(name))
    }

    /// Every name, sorted.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn list(&self) -> Result<Vec<String>, CallError> {
        if self.release > Release::Android10 {
            let mut request = self.request();
            request.write_i32(dump_priority::ALL);
            return Ok(self.call(Method::ListServices, request)?.reader().read_str_vec()?);
        }
        let mut names = Vec::new();
        loop {
            let mut request = self.request();
            request.write_i32(i32::try_from(names.len()).unwrap_or(i32::MAX));
            if self.release >= Release::Android9 {
                request.write_i32(dump_priority::ALL);
            }
            match self.manager.transact(self.code(Method::ListServices)?, &request) {
                Ok(reply) => names.push(reply.reader().read_str()?),
                // Past the end.
                Err(CallError::Status(Status::Code(StatusCode::PERMISSION_DENIED))) => return Ok(names),
                Err(error) => return Err(error),
            }
        }
    }

    /// Calls `registered` with each object that is registered under a name, the present one first,
    /// on a pool thread. The result is the callback; it hears until
    /// [`Self::unregister_for_notifications`] or the end of this process.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn on_registration(
        &self,
        name: &str,
        registered: impl Fn(&str, Binder) + Send + Sync + 'static,
    ) -> Result<Binder, CallError> {
        let Binder::Remote(proxy) = &self.manager else {
            return Err(StatusCode::INVALID_OPERATION.into());
        };
        let callback = proxy.publish_beside(Callback { registered });
        self.register_for_notifications(name, &callback)?;
        Ok(callback)
    }

    /// Registers an object of `android.os.IServiceCallback` for a name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn register_for_notifications(&self, name: &str, callback: &Binder) -> Result<(), CallError> {
        self.call_about(Method::RegisterForNotifications, name, &[callback]).map(drop)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// It was not registered; see [`CallError`].
    pub fn unregister_for_notifications(&self, name: &str, callback: &Binder) -> Result<(), CallError> {
        self.call_about(Method::UnregisterForNotifications, name, &[callback]).map(drop)
    }

    /// Takes a service of one's own back.
    ///
    /// # Errors
    /// It is another object, another process's, or not registered; see [`CallError`].
    pub fn try_unregister(&self, name: &str, service: &Binder) -> Result<(), CallError> {
        self.call_about(Method::TryUnregisterService, name, &[service]).map(drop)
    }

    /// Registers an object of `android.os.IClientCallback` for a service of one's own.
    ///
    /// # Errors
    /// See [`Self::try_unregister`].
    pub fn register_client_callback(
        &self,
        name: &str,
        service: &Binder,
        callback: &Binder,
    ) -> Result<(), CallError> {
        self.call_about(Method::RegisterClientCallback, name, &[service, callback]).map(drop)
    }

    /// Whether a name is announced.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn is_declared(&self, name: &str) -> Result<bool, CallError> {
        Ok(self.call_about(Method::IsDeclared, name, &[])?.reader().read_bool()?)
    }

    /// The announced instances of an interface.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn declared_instances(&self, interface: &str) -> Result<Vec<String>, CallError> {
        Ok(self.call_about(Method::GetDeclaredInstances, interface, &[])?.reader().read_str_vec()?)
    }

    /// Names and process ids.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn debug_info(&self) -> Result<Vec<ServiceInfo>, CallError> {
        let reply = self.call(Method::GetServiceDebugInfo, self.request())?;
        Ok(reply.reader().read_vec(ServiceInfo::read)?)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("release", &self.release).finish_non_exhaustive()
    }
}

/// `android.os.IServiceCallback` over a closure.
struct Callback<F> {
    registered: F,
}

impl<F: Fn(&str, Binder) + Send + Sync + 'static> Object for Callback<F> {
    fn descriptor(&self) -> &str {
        CALLBACK_DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, _reply: &mut Parcel) -> Result<(), Status> {
        if call.code() != ON_REGISTRATION {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let name = call.read_str()?;
        let binder = call.read_binder()?;
        (self.registered)(&name, binder);
        Ok(())
    }
}
