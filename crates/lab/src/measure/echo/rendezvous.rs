//! Room: how the two processes of a binder echo find each other: a name at a service manager.
//! Not here: what they then say (`super::binder`, `super::raw`).
//! The manager is the system's where there is one, else ours in a third process (contract CTX-05).

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use driver::{Connection, Context};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{CallError as Refused, Object};
use ipc::{Binder, Process, ProcessOptions, Release, hwbinder};

use crate::measure::CallError;

/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a driver may take to release a process that is gone.
const RELEASE_TIME: Duration = Duration::from_secs(2);

/// A place to meet at.
#[derive(Debug)]
pub struct Rendezvous<'r, X> {
    /// The context.
    pub context: &'r X,
    /// Whose dialect its manager speaks.
    pub release: Release,
    /// The service's name.
    pub name: &'r str,
}

/// A process and what it holds on to: a service of another process, or a node of its own.
pub(super) type Met<X> = (Process<<X as Context>::Connection>, Binder);

fn open<X: Context>(context: &X, release: Release) -> Result<Process<X::Connection>, CallError> {
    // No pool: each process has the thread that joins, or calls, and no other.
    let options = ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() };
    Process::open(context, options).map_err(|error| CallError::Refused(error.to_string()))
}

fn refused(doing: impl fmt::Display) -> impl FnOnce(Refused) -> CallError {
    move |error| CallError::Refused(format!("{doing}: {error}"))
}

impl<X: Context> Rendezvous<'_, X> {
    /// Finds the service.
    pub(super) fn find(&self) -> Result<Met<X>, CallError> {
        let process = open(self.context, self.release)?;
        let services = Services::of(&process).map_err(refused("calling the service manager"))?;
        let service = services.get(self.name).map_err(refused(format_args!("looking up {}", self.name)))?;
        Ok((process, service))
    }

    /// Registers the service.
    pub(super) fn register(&self, object: impl Object) -> Result<Met<X>, CallError> {
        let process = open(self.context, self.release)?;
        let services = Services::wait(&process, PATIENCE).map_err(refused("calling the service manager"))?;
        let service = process.publish(object);
        services.add(self.name, &service).map_err(refused(format_args!(
            "the service manager did not register {} (this system's manager, or its security policy, may forbid it, \
             or speak another release's dialect: --android; or use --device private)",
            self.name
        )))?;
        Ok((process, service))
    }

    /// Registers so many services besides, under the name with a number behind it.
    pub(super) fn register_more<O: Object>(
        &self,
        process: &Process<X::Connection>,
        more: u32,
        object: impl Fn() -> O,
    ) -> Result<Vec<Binder>, CallError> {
        if more == 0 {
            return Ok(Vec::new());
        }
        let services = Services::of(process).map_err(refused("calling the service manager"))?;
        let register = |number| {
            let (name, service) = (numbered(self.name, number), process.publish(object()));
            services.add(&name, &service).map_err(refused(format_args!("registering {name}")))?;
            Ok(service)
        };
        (0..more).map(register).collect()
    }
}

fn numbered(name: &str, number: u32) -> String {
    format!("{name}.{number}")
}

/// Finds the first so many of the services that [`Rendezvous::register_more`] registered.
pub(super) fn look_up_more<C: Connection>(
    process: &Process<C>,
    name: &str,
    count: u32,
) -> Result<Vec<Binder>, CallError> {
    let services = Services::of(process).map_err(refused("calling the service manager"))?;
    let find = |number| {
        let name = numbered(name, number);
        services.get(&name).map_err(refused(format_args!("looking up {name}")))
    };
    (0..count).map(find).collect()
}

/// Becomes the context's service manager, says so, and serves on this thread until it is ended.
///
/// # Errors
/// There is one already; `explain` says who.
pub(crate) fn manage<X: Context>(
    context: &X,
    release: Release,
    explain: impl FnOnce(io::Error) -> String,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), CallError> {
    let process = open(context, release)?;
    manage_with(&process, || process.become_context_manager(ServiceManager::new()).map(drop), explain, ready)
}

/// The same for hwbinder.
///
/// # Errors
/// As [`manage`].
pub(crate) fn manage_hidl<X: Context>(
    context: &X,
    explain: impl FnOnce(io::Error) -> String,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), CallError> {
    let process = open_hidl(context)?;
    let manager = hwbinder::manager::ServiceManager::new();
    manage_with(&process, || process.become_hidl_context_manager(manager.clone()).map(drop), explain, ready)
}

fn manage_with<C: Connection>(
    process: &Process<C>,
    mut become_manager: impl FnMut() -> io::Result<()>,
    explain: impl FnOnce(io::Error) -> String,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), CallError> {
    let start = Instant::now();
    loop {
        match become_manager() {
            // An earlier one of ours that was killed goes a little later (contract EXT-04).
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < RELEASE_TIME => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => break result.map_err(|error| CallError::Refused(explain(error)))?,
        }
    }
    ready().map_err(CallError::os("telling the client"))?;
    process.join_thread_pool().map_err(|error| CallError::Refused(error.to_string()))
}

/// Whether somebody manages the hwbinder context.
///
/// # Errors
/// As [`is_managed`].
pub(crate) fn is_managed_hidl<X: Context>(context: &X) -> Result<bool, CallError> {
    use hwbinder::{CallError as Refused, manager::Services};
    match Services::of(&open_hidl(context)?) {
        Ok(_) => Ok(true),
        Err(Refused::Transact(error)) if error.refusal() == Some(ipc::Refusal::Dead) => Ok(false),
        Err(error) => Err(CallError::Refused(format!("calling the hardware service manager: {error}"))),
    }
}

fn open_hidl<X: Context>(context: &X) -> Result<Process<X::Connection>, CallError> {
    Process::open(context, ProcessOptions::hwbinder()).map_err(|error| CallError::Refused(error.to_string()))
}

/// Whether somebody manages the context.
///
/// # Errors
/// The context cannot be opened, or its manager does not answer as one.
pub(crate) fn is_managed<X: Context>(context: &X, release: Release) -> Result<bool, CallError> {
    match Services::of(&open(context, release)?) {
        Ok(_) => Ok(true),
        Err(error) if error.is_dead() => Ok(false),
        Err(error) => Err(refused("calling the service manager")(error)),
    }
}
