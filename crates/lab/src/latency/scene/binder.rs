//! Room: the flavour `binder`, as Android's `schd-dbg` speaks it: a transaction of bare bytes without an
//! interface header.
//! Facts: `schd-dbg.cpp`: 16 bytes each way at least; real-time callers are inherited from only where a
//! node asks for it, which libbinder's do not.

use std::sync::Arc;
use std::time::Duration;

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::{Connection, Context};
use ipc::binder::manager::Services;
use ipc::serve::{Serve, Transaction};
use ipc::{Binder, NodeOptions, Outcome, Process, ProcessOptions, Proxy, Release};
use zerocopy::{FromBytes, IntoBytes};

use super::super::sample::Answer;
use super::super::service::Service;
use super::{ANSWER_WORDS, Callee, Scene, of_words, refused, to_words};
use crate::measure::CallError;

/// The first method of an interface.
const SEND: u32 = 1;
/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process in a binder context.
pub(in crate::latency) struct OnBinder<C: Connection> {
    process: Process<C>,
    services: Services,
    /// Services of its own, which live as long as this.
    held: Vec<Binder>,
}

impl<C: Connection> OnBinder<C> {
    /// Opens the context and waits for its manager.
    pub(in crate::latency) fn enter<X: Context<Connection = C>>(
        context: &X,
        release: Release,
    ) -> Result<Self, CallError> {
        let options = ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() };
        let process = Process::open(context, options).map_err(refused)?;
        let services = Services::wait(&process, PATIENCE)
            .map_err(|error| refused(format_args!("calling the service manager: {error}")))?;
        Ok(Self { process, services, held: Vec::new() })
    }
}

impl<C: Connection> Scene for OnBinder<C> {
    type Callee = Found;

    fn start_pool(&mut self, threads: u32) -> Result<(), CallError> {
        let start = |_| self.process.start_thread_pool().map_err(CallError::os("starting the thread pool"));
        (0..threads).try_for_each(start)
    }

    fn offer(&mut self, name: &str, service: Service, inherit_rt: bool) -> Result<(), CallError> {
        let options = NodeOptions { inherit_rt, ..NodeOptions::BINDER };
        let service = Binder::Local(self.process.publish_node(Box::new(Offered(service)), options));
        let added = self.services.add(name, &service);
        added.map_err(|error| refused(format_args!("registering {name}: {error}")))?;
        self.held.push(service);
        Ok(())
    }

    fn find(&mut self, name: &str, payload: usize) -> Result<Found, CallError> {
        let found = self.services.get(name);
        match found.map_err(|error| refused(format_args!("looking up {name}: {error}")))? {
            Binder::Remote(proxy) => Ok(Found { proxy, request: vec![0; payload].into() }),
            Binder::Local(_) => Err(refused(format_args!("{name} is this very process"))),
        }
    }
}

struct Offered(Service);

impl Serve for Offered {
    fn serve(&self, call: Transaction<'_>) {
        let words = to_words(self.0.serve());
        let flags = call.answer_flags();
        // A reply that cannot be delivered is reported to the caller by the driver.
        let _ = call.reply(flags, Payload { data: words.as_bytes(), ..Payload::default() });
    }
}

/// A service that was found.
#[derive(Clone)]
pub(in crate::latency) struct Found {
    proxy: Proxy,
    request: Arc<[u8]>,
}

impl Callee for Found {
    #[inline]
    fn call(&self) -> Result<Answer, CallError> {
        let payload = Payload { data: &self.request, ..Payload::default() };
        match self.proxy.transact_payload(SEND, TransactionFlags::CALL, payload) {
            Ok(Outcome::Replied { flags, received }) if flags.0 & tf::STATUS_CODE == 0 => {
                let words = <[u64; ANSWER_WORDS]>::read_from_bytes(received.data());
                words.map(of_words).map_err(|_| refused("the service answered with other bytes than its own"))
            }
            Ok(Outcome::Replied { .. }) => Err(refused("the service answered an error")),
            Ok(Outcome::Taken(_)) => Err(refused("the call was taken and not answered")),
            Err(error) => Err(refused(error)),
        }
    }
}
