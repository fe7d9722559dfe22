//! One process in a binder or hwbinder context: registering services and finding those of other processes at
//! the service manager, and calls of bare bytes.
//! Not here: the services and their calls (`measure::echo`, `workers`, `latency`, `inversion`,
//! `inheritance`). The manager is the system's if it has one, else ours in a process of its own (contract
//! CTX-05).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::{Connection, Context};
use ipc::binder::manager::Services;
use ipc::binder::{CallError as Refused, Object};
use ipc::hwbinder::{HwBinder, manager as hidl};
use ipc::{Binder, NodeOptions, Outcome, Process, ProcessOptions, Proxy, Serve, Transaction};
use sys::patience::{is_over, stretched};

use crate::call_error::{CallError, refused};
use crate::plan::Dialect;

/// Time limit for a newly started service manager to answer a service.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of a wait for a service, or for its manager.
const ABSENCE: Duration = Duration::from_secs(5);
/// Time limit for a driver to release a process that has ended.
const RELEASE_TIME: Duration = Duration::from_secs(2);

fn refused_while(doing: impl fmt::Display) -> impl FnOnce(Refused) -> CallError {
    move |error| refused(format_args!("{doing}: {error}"))
}

/// Error of a wait for the service manager that began at `since`.
fn unmanaged(since: Instant, dialect: Dialect) -> impl FnOnce(Refused) -> CallError {
    move |error| match error.is_dead() {
        true => refused(format_args!(
            "no service manager (of hwbinder: hwservicemanager) came to this context within {} s: start it, or name \
             the --device where it is",
            since.elapsed().as_secs()
        )),
        false => refused(format_args!("calling the service manager: {error}{}", dialect_hint(dialect))),
    }
}

/// Error of a wait for a service.
fn unserved(name: &str, dialect: Dialect) -> impl FnOnce(Refused) -> CallError {
    let hint = dialect_hint(dialect);
    move |error| match error {
        Refused::NoService { name, waited, remedy } => refused(format_args!(
            "nobody serves {name}: not registered within {} s; start the service, name the --device where it is, or see \
             `{remedy}`{hint}",
            waited.as_secs()
        )),
        error => refused(format_args!("looking up {name}: {error}{hint}")),
    }
}

/// Hint at a manager of another dialect, for errors of a service manager: of another release, or of the other flavour.
fn dialect_hint(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Binder(_) => "; or this system's manager speaks another release's dialect: --android",
        Dialect::Hwbinder => {
            "; or this context's manager is one of binder, which speaks another dialect: --device hwbinder"
        }
    }
}

/// A process in a context.
pub(crate) struct Endpoint<C: Connection> {
    pub(crate) process: Process<C>,
    pub(crate) dialect: Dialect,
}

impl<C: Connection> Endpoint<C> {
    /// Opens the context and starts no thread. The driver may ask for `max_threads` threads.
    pub(crate) fn open<X: Context<Connection = C>>(
        context: &X,
        dialect: Dialect,
        max_threads: u32,
    ) -> Result<Self, CallError> {
        let options = match dialect {
            Dialect::Binder(release) => ProcessOptions { release, ..ProcessOptions::default() },
            Dialect::Hwbinder => ProcessOptions::hwbinder(),
        };
        let options = ProcessOptions { max_threads, ..options };
        Ok(Self { process: Process::open(context, options).map_err(refused)?, dialect })
    }

    /// Starts a thread that serves.
    pub(crate) fn start_thread(&self) -> Result<(), CallError> {
        self.process.start_thread_pool().map_err(CallError::os("starting the thread pool"))
    }

    /// Serves on the calling thread until the process is killed.
    pub(crate) fn serve(&self) -> Result<(), CallError> {
        self.process.join_thread_pool().map_err(refused)
    }

    /// Options of a node as the flavour's library publishes it, with or without `INHERIT_RT`.
    pub(crate) fn node_options(&self, inherit_rt: bool) -> NodeOptions {
        NodeOptions { inherit_rt, ..self.dialect.node_options() }
    }

    /// Publishes an object that takes bare transactions.
    pub(crate) fn publish_bare(&self, object: impl Serve, options: NodeOptions) -> Binder {
        Binder::Local(self.process.publish_node(Box::new(object), options))
    }

    /// Registers a service under this name; for hwbinder, as this instance.
    pub(crate) fn register(&self, name: &str, service: &Binder) -> Result<(), CallError> {
        let since = Instant::now();
        let added = match self.dialect {
            Dialect::Binder(_) => {
                let services = Services::wait(&self.process, stretched(PATIENCE))
                    .map_err(unmanaged(since, self.dialect))?;
                services.add(name, service)
            }
            Dialect::Hwbinder => {
                let services = hidl::Services::wait(&self.process, stretched(PATIENCE))
                    .map_err(unmanaged(since, self.dialect))?;
                services.add(name, &HwBinder::from(service.clone()))
            }
        };
        added.map_err(refused_while(format_args!(
            "the service manager did not register {name} (this system's manager, or its security policy, may forbid it{}; or \
             use --device private)",
            dialect_hint(self.dialect)
        )))
    }

    /// The context's manager, after a wait for it.
    pub(crate) fn manager(&self) -> Result<Proxy, CallError> {
        let since = Instant::now();
        let ready = match self.dialect {
            Dialect::Binder(_) => Services::wait(&self.process, stretched(ABSENCE)).map(drop),
            Dialect::Hwbinder => hidl::Services::wait(&self.process, stretched(ABSENCE)).map(drop),
        };
        ready.map_err(unmanaged(since, self.dialect))?;
        self.process.context_manager().map_err(refused)
    }

    /// Finds another process's service, after a wait for it; for hwbinder, by this interface.
    pub(crate) fn find(&self, interface: &str, name: &str) -> Result<Proxy, CallError> {
        let since = Instant::now();
        let found = match self.dialect {
            Dialect::Binder(_) => {
                let services = Services::wait(&self.process, stretched(ABSENCE))
                    .map_err(unmanaged(since, self.dialect))?;
                services.wait_for(name, stretched(ABSENCE)).map_err(unserved(name, self.dialect))?
            }
            Dialect::Hwbinder => {
                let services = hidl::Services::wait(&self.process, stretched(ABSENCE))
                    .map_err(unmanaged(since, self.dialect))?;
                let found = services
                    .wait_for(interface, name, stretched(ABSENCE))
                    .map_err(unserved(name, self.dialect))?;
                found.as_binder().clone()
            }
        };
        match found {
            Binder::Remote(proxy) => Ok(proxy),
            Binder::Local(_) => Err(refused(format_args!("{name} is this very process"))),
        }
    }
}

impl<C: Connection> Endpoint<C> {
    /// Finds the object with this name whatever its interface is; without a name the context's manager. A hwbinder object
    /// is named `INTERFACE/INSTANCE`.
    pub(crate) fn find_object(&self, name: &str) -> Result<Proxy, CallError> {
        match (name, self.dialect) {
            ("", _) => self.manager(),
            (name, Dialect::Binder(_)) => self.find("", name),
            (name, Dialect::Hwbinder) => {
                let (interface, instance) = name.rsplit_once('/').unwrap_or((name, "default"));
                self.find(interface, instance)
            }
        }
    }
}

/// A service that answers bare transactions with bytes.
pub(crate) struct BareService<F>(pub(crate) F);

impl<F, A> Serve for BareService<F>
where
    F: Fn() -> A + Send + Sync + 'static,
    A: AsRef<[u8]>,
{
    fn serve(&self, call: Transaction<'_>) {
        let answer = (self.0)();
        let flags = call.answer_flags();
        // The driver reports an undeliverable reply to the caller.
        let _ = call.reply(flags, Payload { data: answer.as_ref(), ..Payload::default() });
    }
}

/// Calls a service of bare transactions. `read` decodes the reply; `None` for one that is malformed.
pub(crate) fn call_bare<T>(
    proxy: &Proxy,
    code: u32,
    data: &[u8],
    read: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, CallError> {
    match proxy.transact_payload(code, TransactionFlags::CALL, Payload { data, ..Payload::default() }) {
        Ok(Outcome::Replied { flags, received }) if flags.0 & tf::STATUS_CODE == 0 => {
            read(received.data()).ok_or_else(|| refused("the service answered with other bytes than its own"))
        }
        Ok(Outcome::Replied { .. }) => Err(refused("the service answered an error")),
        Ok(Outcome::Taken(_)) => Err(refused("the call was taken and not answered")),
        Err(error) => Err(refused(error)),
    }
}

/// Context and service name for two processes to find each other.
#[derive(Debug)]
pub(crate) struct Rendezvous<'r, X> {
    /// The context.
    pub(crate) context: &'r X,
    /// Protocol of its manager.
    pub(crate) dialect: Dialect,
    /// Name of the service; for hwbinder, the instance.
    pub(crate) name: &'r str,
}

impl<X: Context> Rendezvous<'_, X> {
    /// Opens the context, and finds the service.
    pub(crate) fn find(&self, interface: &str) -> Result<(Endpoint<X::Connection>, Proxy), CallError> {
        let endpoint = Endpoint::open(self.context, self.dialect, 0)?;
        let service = endpoint.find(interface, self.name)?;
        Ok((endpoint, service))
    }

    /// Opens the context, and finds the object by [`Endpoint::find_object`].
    pub(crate) fn find_object(&self) -> Result<Proxy, CallError> {
        Endpoint::open(self.context, self.dialect, 0)?.find_object(self.name)
    }

    /// Opens the context, and registers the object that `publish` creates.
    pub(crate) fn register(
        &self,
        publish: impl FnOnce(&Process<X::Connection>) -> Binder,
    ) -> Result<(Endpoint<X::Connection>, Binder), CallError> {
        let endpoint = Endpoint::open(self.context, self.dialect, 0)?;
        let service = publish(&endpoint.process);
        endpoint.register(self.name, &service)?;
        Ok((endpoint, service))
    }
}

/// Becomes the context's service manager, for binder with this object, reports readiness, and serves on this thread until
/// the process is killed.
///
/// # Errors
/// A manager exists already; `explain` says which.
pub(crate) fn manage<X: Context>(
    context: &X,
    dialect: Dialect,
    explain: impl FnOnce(io::Error) -> String,
    ready: impl FnOnce() -> io::Result<()>,
    manager: &Arc<impl Object>,
) -> Result<(), CallError> {
    let endpoint = Endpoint::open(context, dialect, 0)?;
    let process = &endpoint.process;
    let become_manager = || match dialect {
        Dialect::Binder(_) => process.become_context_manager(Arc::clone(manager)).map(drop),
        Dialect::Hwbinder => process.become_hidl_context_manager(hidl::ServiceManager::new()).map(drop),
    };
    let start = Instant::now();
    loop {
        match become_manager() {
            // The driver releases a killed manager of ours with a delay (contract EXT-04).
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && !is_over(start, RELEASE_TIME) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => break result.map_err(|error| refused(explain(error)))?,
        }
    }
    ready().map_err(CallError::os("telling the client"))?;
    endpoint.serve()
}

/// Returns true if the context has a service manager.
///
/// # Errors
/// The context cannot be opened, or its manager does not answer as one.
pub(crate) fn is_managed<X: Context>(context: &X, dialect: Dialect) -> Result<bool, CallError> {
    let process = Endpoint::open(context, dialect, 0)?.process;
    let answer = match dialect {
        Dialect::Binder(_) => Services::of(&process).map(drop),
        Dialect::Hwbinder => hidl::Services::of(&process).map(drop),
    };
    match answer {
        Ok(()) => Ok(true),
        Err(error) if error.is_dead() => Ok(false),
        Err(error) => Err(unmanaged(Instant::now(), dialect)(error)),
    }
}
