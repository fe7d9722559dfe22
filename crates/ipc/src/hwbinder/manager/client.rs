//! Client of a service manager, this crate's or Android's.
//! Not here: its methods (`manager`), the structure of a dump (`wire`).
//! Facts: libhidl's `ServiceManagement.cpp`: which calls a client makes, and that it waits.

use std::fmt;
use std::time::Duration;

use driver::Connection;

use crate::hwbinder::client::Reply;
use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::manager::wire::InstanceInfo;
use crate::hwbinder::manager::{Method, NOTIFICATION, ON_REGISTRATION, Transport};
use crate::hwbinder::object::{Incoming, Object};
use crate::hwbinder::parcel::HwParcel;
use crate::manager;
use crate::process::Process;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// The service manager as its clients see it.
#[derive(Clone, PartialEq, Eq)]
pub struct Services {
    manager: HwBinder,
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
        let manager = manager::reach(process, patience, "--hw", |manager| HwBinder::from(manager).ping())?;
        Ok(Self { manager: manager.into() })
    }

    /// The manager itself.
    #[must_use]
    pub fn manager(&self) -> &HwBinder {
        &self.manager
    }

    /// Calls a method with what `write` puts behind the header.
    fn call(&self, method: Method, write: impl FnOnce(&mut HwParcel<'_>)) -> Result<Reply<'_>, CallError> {
        let mut request = self.manager.request(method.interface());
        write(&mut request);
        self.manager.call(method.code(), request)
    }

    /// A call about an instance that says whether it was done.
    fn about(&self, method: Method, names: (&str, &str), objects: &[&HwBinder]) -> Result<bool, CallError> {
        let reply = self.call(method, |request| {
            request.write_str(names.0);
            request.write_str(names.1);
            for object in objects {
                request.write_binder(object);
            }
        })?;
        Ok(reply.reader().read_bool()?)
    }

    fn names(&self, method: Method, interface: Option<&str>) -> Result<Vec<String>, CallError> {
        let reply = self.call(method, |request| {
            if let Some(interface) = interface {
                request.write_str(interface);
            }
        })?;
        Ok(reply.reader().read_str_vec()?.into_iter().map(str::to_owned).collect())
    }

    /// The object of an instance ("default" where an interface has one), if it is registered now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn get(&self, interface: &str, instance: &str) -> Result<Option<HwBinder>, CallError> {
        let reply = self.call(Method::Get, |request| {
            request.write_str(interface);
            request.write_str(instance);
        })?;
        Ok(reply.reader().read_nullable_binder()?)
    }

    /// The object of an instance; waits so long for it to be registered.
    ///
    /// # Errors
    /// [`CallError::NoService`]: nobody registered it. See [`CallError`].
    pub fn wait_for(
        &self,
        interface: &str,
        instance: &str,
        patience: Duration,
    ) -> Result<HwBinder, CallError> {
        let listing = || manager::listing(self.manager.as_binder(), "--hw");
        let name = format!("{interface}/{instance}");
        manager::wait_for(&name, patience, listing, || self.get(interface, instance))
    }

    /// Registers an object as an instance of each of its interfaces, which the manager asks it for.
    ///
    /// # Errors
    /// The manager refuses (an instance that cannot be), or see [`CallError`].
    pub fn add(&self, instance: &str, object: &HwBinder) -> Result<(), CallError> {
        let reply = self.call(Method::Add, |request| {
            request.write_str(instance);
            request.write_binder(object);
        })?;
        added(instance, reply.reader().read_bool()?)
    }

    /// [`Self::add`] with the interface chain in the request, as Android does since 10.
    ///
    /// # Errors
    /// See [`Self::add`]; `UNKNOWN_TRANSACTION` from older managers.
    pub fn add_with_chain(&self, instance: &str, object: &HwBinder) -> Result<(), CallError> {
        let chain = object.interface_chain()?;
        let reply = self.call(Method::AddWithChain, |request| {
            request.write_str(instance);
            request.write_binder(object);
            request.write_str_vec(&chain);
        })?;
        added(instance, reply.reader().read_bool()?)
    }

    /// How an instance is reached.
    ///
    /// # Errors
    /// `BAD_VALUE`: not in any way known here. See [`CallError`].
    pub fn transport(&self, interface: &str, instance: &str) -> Result<Transport, CallError> {
        let reply = self.call(Method::GetTransport, |request| {
            request.write_str(interface);
            request.write_str(instance);
        })?;
        Ok(Transport::numbered(reply.reader().read_u8()?).ok_or(StatusCode::BAD_VALUE)?)
    }

    /// Every "interface/instance", sorted; one object has as many as it has interfaces.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn list(&self) -> Result<Vec<String>, CallError> {
        self.names(Method::List, None)
    }

    /// The instances of an interface.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn instances(&self, interface: &str) -> Result<Vec<String>, CallError> {
        self.names(Method::ListByInterface, Some(interface))
    }

    /// The instances of an interface that were announced.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn declared_instances(&self, interface: &str) -> Result<Vec<String>, CallError> {
        self.names(Method::ListManifestByInterface, Some(interface))
    }

    /// Everything that is registered, and by whom.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn debug_dump(&self) -> Result<Vec<InstanceInfo>, CallError> {
        let reply = self.call(Method::DebugDump, |_| ())?;
        Ok(InstanceInfo::read_vec(&mut reply.reader())?)
    }

    /// Calls `registered` with interface, instance, and whether it was there before, for each
    /// registration; an empty instance is any. It runs on a pool thread. The result is the callback;
    /// it hears until [`Self::unregister_for_notifications`] or the end of this process.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn on_registration(
        &self,
        interface: &str,
        instance: &str,
        registered: impl Fn(&str, &str, bool) + Send + Sync + 'static,
    ) -> Result<HwBinder, CallError> {
        let Some(proxy) = self.manager.proxy() else { return Err(StatusCode::INVALID_OPERATION.into()) };
        let callback = proxy.publish_hidl_beside(Notification { registered });
        match self.register_for_notifications(interface, instance, &callback)? {
            true => Ok(callback),
            false => Err(Status::illegal_argument("the manager takes no such callback").into()),
        }
    }

    /// Registers an object of [`NOTIFICATION`] for an instance. Whether it will hear.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn register_for_notifications(
        &self,
        interface: &str,
        instance: &str,
        callback: &HwBinder,
    ) -> Result<bool, CallError> {
        self.about(Method::RegisterForNotifications, (interface, instance), &[callback])
    }

    /// Takes that back; an empty name is any. Whether it was there.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn unregister_for_notifications(
        &self,
        interface: &str,
        instance: &str,
        callback: &HwBinder,
    ) -> Result<bool, CallError> {
        self.about(Method::UnregisterForNotifications, (interface, instance), &[callback])
    }

    /// Registers an object of `IClientCallback` for a service of one's own. Whether it was.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn register_client_callback(
        &self,
        interface: &str,
        instance: &str,
        service: &HwBinder,
        callback: &HwBinder,
    ) -> Result<bool, CallError> {
        self.about(Method::RegisterClientCallback, (interface, instance), &[service, callback])
    }

    /// Takes that back, from one service or, with `None`, from all. Whether it was there.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn unregister_client_callback(
        &self,
        service: Option<&HwBinder>,
        callback: &HwBinder,
    ) -> Result<bool, CallError> {
        let reply = self.call(Method::UnregisterClientCallback, |request| {
            request.write_nullable_binder(service);
            request.write_binder(callback);
        })?;
        Ok(reply.reader().read_bool()?)
    }

    /// Takes a service of one's own back, from each of its interfaces. Whether it was.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn try_unregister(
        &self,
        interface: &str,
        instance: &str,
        service: &HwBinder,
    ) -> Result<bool, CallError> {
        self.about(Method::TryUnregister, (interface, instance), &[service])
    }
}

fn added(instance: &str, done: bool) -> Result<(), CallError> {
    if done {
        return Ok(());
    }
    let why = format!("the service manager does not register an instance \"{instance}\" of this object");
    Err(Status::illegal_argument(why).into())
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("manager", &self.manager).finish()
    }
}

/// `IServiceNotification` over a closure.
struct Notification<F> {
    registered: F,
}

impl<F: Fn(&str, &str, bool) + Send + Sync + 'static> Object for Notification<F> {
    fn interfaces(&self) -> &[&str] {
        &[NOTIFICATION]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, _reply: &mut HwParcel<'t>) -> Result<(), Status> {
        if call.code() != ON_REGISTRATION {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let (interface, instance) = (call.read_str()?, call.read_str()?);
        let preexisting = call.read_bool()?;
        (self.registered)(interface, instance, preexisting);
        Ok(())
    }
}
