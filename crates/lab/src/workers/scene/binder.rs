//! Room: the flavour `binder` as the Android tool speaks it: a transaction of bare bytes to a service that
//! does nothing and answers with nothing.
//! Not here: parcels with headers, which this tool's calls do not have.
//! Facts: `BinderWorkerService` of `binderThroughputTest.cpp`: no interface header, an empty reply.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::{Connection, Context};
use ipc::binder::manager::{self, Services};
use ipc::binder::{CallError as Refused, Status, special};
use ipc::serve::{Serve, Transaction};
use ipc::{Binder, NodeOptions, Outcome, Process, ProcessOptions, Proxy, Release, StatusCode};

use super::{Callee, Scene};
use crate::measure::CallError;
use crate::measure::echo::Sabotage;

/// The first method of an interface.
const NOP: u32 = 1;
/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long somebody else's is waited for.
const ABSENCE: Duration = Duration::from_secs(5);

/// A worker before it knows which driver it is on.
#[derive(Clone, Debug)]
pub(in crate::workers) struct Offstage {
    /// Bytes of each call.
    pub(in crate::workers) payload: usize,
    /// Whether it serves, and threads that the driver may ask for besides the first one then.
    pub(in crate::workers) pool: Option<u32>,
    /// Whether the services are others' and answer nothing but a ping.
    pub(in crate::workers) pings: bool,
    pub(in crate::workers) release: Release,
}

impl Offstage {
    /// Opens the context and waits for its manager.
    pub(in crate::workers) fn enter<X: Context>(
        &self,
        context: &X,
    ) -> Result<OnBinder<X::Connection>, CallError> {
        let max_threads = self.pool.unwrap_or(0);
        let options = ProcessOptions { max_threads, release: self.release, ..ProcessOptions::default() };
        let process =
            Process::open(context, options).map_err(|error| CallError::Refused(error.to_string()))?;
        if self.pool.is_some() {
            process.start_thread_pool().map_err(CallError::os("starting the thread pool"))?;
        }
        let patience = if self.pings { ABSENCE } else { PATIENCE };
        let services = Services::wait(&process, patience).map_err(|error| {
            if error.is_dead() {
                CallError::no_manager(patience)
            } else {
                refused("calling the service manager")(error)
            }
        })?;
        let code = if self.pings { special::PING } else { NOP };
        Ok(OnBinder { process, services, held: Vec::new(), request: vec![0; self.payload].into(), code })
    }
}

fn refused(doing: impl std::fmt::Display) -> impl FnOnce(Refused) -> CallError {
    move |error| CallError::Refused(format!("{doing}: {error}"))
}

/// A worker in a binder context.
pub(in crate::workers) struct OnBinder<C: Connection> {
    process: Process<C>,
    services: Services,
    /// Services of its own, which live as long as this.
    held: Vec<Binder>,
    request: Arc<[u8]>,
    code: u32,
}

impl<C: Connection> Scene for OnBinder<C> {
    type Callee = Found;

    fn offer(&mut self, name: &str, sabotage: Option<Sabotage>) -> Result<(), CallError> {
        let service = Nothing { sabotage: sabotage.map(Mutex::new) };
        let service = Binder::Local(self.process.publish_node(Box::new(service), NodeOptions::default()));
        self.services.add(name, &service).map_err(refused(format_args!("registering {name}")))?;
        self.held.push(service);
        Ok(())
    }

    fn find(&mut self, name: &str) -> Result<Found, CallError> {
        let found = self.services.get(name).map_err(|error| match error {
            Refused::Status(Status::Code(StatusCode::NAME_NOT_FOUND)) => CallError::Refused(format!(
                "nobody registered {name} within {} s; start the service, or name the --device where it is",
                manager::client::PATIENCE.as_secs()
            )),
            error => refused(format_args!("looking up {name}"))(error),
        })?;
        match found {
            Binder::Remote(proxy) => Ok(Found { proxy, request: Arc::clone(&self.request), code: self.code }),
            Binder::Local(_) => Err(CallError::Refused(format!("{name} is this very process"))),
        }
    }
}

/// Does nothing, like the Android tool's.
struct Nothing {
    /// `None` in every run but a test of this tool.
    sabotage: Option<Mutex<Sabotage>>,
}

impl Serve for Nothing {
    fn serve(&self, call: Transaction<'_>) {
        if let Some(sabotage) = &self.sabotage {
            sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut []);
        }
        let flags = call.answer_flags();
        // A reply that cannot be delivered is reported to the caller by the driver.
        let _ = call.reply(flags, Payload::default());
    }
}

/// A service that was found.
pub(in crate::workers) struct Found {
    proxy: Proxy,
    request: Arc<[u8]>,
    code: u32,
}

impl Callee for Found {
    #[inline]
    fn call(&mut self) -> Result<(), CallError> {
        let payload = Payload { data: &self.request, ..Payload::default() };
        match self.proxy.transact_payload(self.code, TransactionFlags::CALL, payload) {
            Ok(Outcome::Replied { flags, .. }) if flags.0 & tf::STATUS_CODE == 0 => Ok(()),
            Ok(Outcome::Replied { .. }) => {
                Err(CallError::Refused("the service answered an error".to_owned()))
            }
            Ok(Outcome::Taken(_)) => {
                Err(CallError::Refused("the call was taken and not answered".to_owned()))
            }
            Err(error) => Err(CallError::Refused(error.to_string())),
        }
    }
}
