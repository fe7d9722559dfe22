//! Room: how the two processes of a binder echo find each other: a name at a service manager of either
//! flavour.
//! Not here: what they then say (`super::binder`, `super::hwbinder`, `super::raw`).
//! The manager is the system's where there is one, else ours in a third process (contract CTX-05).

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use driver::{Connection, Context};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{CallError as Refused, Object};
use ipc::hwbinder::{HwBinder, manager as hidl};
use ipc::{Binder, Process, ProcessOptions};

use crate::measure::CallError;
use crate::plan::Dialect;

/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a service is waited for.
const ABSENCE: Duration = Duration::from_secs(5);
/// How long a driver may take to release a process that is gone.
const RELEASE_TIME: Duration = Duration::from_secs(2);

/// A place to meet at.
#[derive(Debug)]
pub struct Rendezvous<'r, X> {
    /// The context.
    pub context: &'r X,
    /// What its manager speaks.
    pub dialect: Dialect,
    /// The service's name; of hwbinder's the instance.
    pub name: &'r str,
}

/// A process and what it holds on to: a service of another process, or a node of its own.
pub(super) type Met<X> = (Process<<X as Context>::Connection>, Binder);

fn open<X: Context>(context: &X, dialect: Dialect) -> Result<Process<X::Connection>, CallError> {
    // No pool: each process has the thread that joins, or calls, and no other.
    let options = match dialect {
        Dialect::Binder(release) => ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() },
        Dialect::Hwbinder => ProcessOptions::hwbinder(),
    };
    Process::open(context, options).map_err(|error| CallError::Refused(error.to_string()))
}

fn refused(doing: impl fmt::Display) -> impl FnOnce(Refused) -> CallError {
    move |error| CallError::Refused(format!("{doing}: {error}"))
}

const CALLING: &str = "calling the service manager";

impl<X: Context> Rendezvous<'_, X> {
    /// Finds the service; hwbinder's by this interface, and after waiting for it.
    ///
    /// # Errors
    /// Nobody manages the context, or serves that name.
    pub(super) fn find(&self, interface: &str) -> Result<Met<X>, CallError> {
        let process = open(self.context, self.dialect)?;
        let service = match self.dialect {
            Dialect::Binder(_) => {
                let services = Services::of(&process).map_err(refused(CALLING))?;
                services.get(self.name).map_err(refused(format_args!("looking up {}", self.name)))?
            }
            Dialect::Hwbinder => {
                let services = hidl::Services::wait(&process, ABSENCE).map_err(|error| {
                    if error.is_dead() { CallError::no_manager(ABSENCE) } else { refused(CALLING)(error) }
                })?;
                let found = services.wait_for(interface, self.name, ABSENCE);
                found.map_err(|error| CallError::Refused(error.to_string()))?.as_binder().clone()
            }
        };
        Ok((process, service))
    }

    /// Registers what `publish` offers.
    pub(super) fn register(
        &self,
        publish: impl FnOnce(&Process<X::Connection>) -> Binder,
    ) -> Result<Met<X>, CallError> {
        let process = open(self.context, self.dialect)?;
        let name = self.name;
        let did_not = refused(format!(
            "the service manager did not register {name} (this system's manager, or its security policy, may forbid it, \
             or speak another release's dialect: --android; or use --device private)"
        ));
        let service = match self.dialect {
            Dialect::Binder(_) => {
                let services = Services::wait(&process, PATIENCE).map_err(refused(CALLING))?;
                let service = publish(&process);
                services.add(name, &service).map_err(did_not)?;
                service
            }
            Dialect::Hwbinder => {
                let services = hidl::Services::wait(&process, PATIENCE).map_err(refused(CALLING))?;
                let service = publish(&process);
                services.add(name, &HwBinder::from(service.clone())).map_err(did_not)?;
                service
            }
        };
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
    dialect: Dialect,
    explain: impl FnOnce(io::Error) -> String,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), CallError> {
    let process = open(context, dialect)?;
    let become_manager = || match dialect {
        Dialect::Binder(_) => process.become_context_manager(ServiceManager::new()).map(drop),
        Dialect::Hwbinder => process.become_hidl_context_manager(hidl::ServiceManager::new()).map(drop),
    };
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

/// Whether somebody manages the context.
///
/// # Errors
/// The context cannot be opened, or its manager does not answer as one.
pub(crate) fn is_managed<X: Context>(context: &X, dialect: Dialect) -> Result<bool, CallError> {
    let process = open(context, dialect)?;
    let answer = match dialect {
        Dialect::Binder(_) => Services::of(&process).map(drop),
        Dialect::Hwbinder => hidl::Services::of(&process).map(drop),
    };
    match answer {
        Ok(()) => Ok(true),
        Err(error) if error.is_dead() => Ok(false),
        Err(error) => Err(refused(CALLING)(error)),
    }
}
