//! Room: the flavour `hwbinder`, as Android's `hwbinderThroughputTest` speaks it: `IBenchmark::sendVec` of
//! one vector; and the same interface without IPC.
//! Not here: the interface (`crate::measure::echo::benchmark`).
//! Facts: libhwbinder's `Benchmark_throughput.cpp`: 16 bytes of 0, 1, 2, ...; writing the arguments and
//! reading the results are part of what is timed; a service has one thread.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use driver::{Connection, Context};
use ipc::hwbinder::HwBinder;
use ipc::hwbinder::manager::Services;
use ipc::{Process, ProcessOptions};

use super::{Callee, Scene};
use crate::measure::CallError;
use crate::measure::echo::Sabotage;
use crate::measure::echo::benchmark::{Benchmark, Echo, INTERFACE, Offered, SEND_VEC, returned};

/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a service is waited for.
const ABSENCE: Duration = Duration::from_secs(5);

fn vector(len: usize) -> Arc<[u8]> {
    (0..len).map(|at| at as u8).collect()
}

fn refused(error: impl std::fmt::Display) -> CallError {
    CallError::Refused(error.to_string())
}

/// A worker in a hwbinder context.
pub(in crate::workers) struct OnHwbinder<C: Connection> {
    process: Process<C>,
    services: Services,
    /// Services of its own, which live as long as this.
    held: Vec<HwBinder>,
    data: Arc<[u8]>,
}

impl<C: Connection> OnHwbinder<C> {
    /// Opens the context and waits for its manager. `pool`: whether it serves, and threads that the
    /// driver may ask for besides the first one then.
    pub(in crate::workers) fn enter<X: Context<Connection = C>>(
        context: &X,
        pool: Option<u32>,
        payload: usize,
    ) -> Result<Self, CallError> {
        let options = ProcessOptions { max_threads: pool.unwrap_or(0), ..ProcessOptions::hwbinder() };
        let process = Process::open(context, options).map_err(refused)?;
        if pool.is_some() {
            process.start_thread_pool().map_err(CallError::os("starting the thread pool"))?;
        }
        let services = Services::wait(&process, PATIENCE)
            .map_err(|error| refused(format_args!("calling the service manager: {error}")))?;
        Ok(Self { process, services, held: Vec::new(), data: vector(payload) })
    }
}

impl<C: Connection> Scene for OnHwbinder<C> {
    type Callee = Found;

    fn offer(&mut self, name: &str, sabotage: Option<Sabotage>) -> Result<(), CallError> {
        let service = self.process.publish_hidl(Offered(Echo::with(sabotage)));
        let added = self.services.add(name, &service);
        added.map_err(|error| refused(format_args!("registering {INTERFACE}/{name}: {error}")))?;
        self.held.push(service);
        Ok(())
    }

    fn find(&mut self, name: &str) -> Result<Found, CallError> {
        let service = self.services.wait_for(INTERFACE, name, ABSENCE).map_err(refused)?;
        Ok(Found { service, data: Arc::clone(&self.data) })
    }
}

/// A service that was found.
pub(in crate::workers) struct Found {
    service: HwBinder,
    data: Arc<[u8]>,
}

impl Callee for Found {
    #[inline]
    fn call(&mut self) -> Result<(), CallError> {
        let mut request = self.service.request(INTERFACE);
        request.write_vec(&self.data);
        let reply = self.service.call(SEND_VEC, request).map_err(refused)?;
        let came = reply.reader().read_bytes().map_err(refused)?;
        returned(&self.data, black_box(came))
    }
}

/// A worker without IPC: each service that it finds is an implementation in its own process.
pub(in crate::workers) struct InProcess {
    data: Arc<[u8]>,
}

impl InProcess {
    pub(in crate::workers) fn new(payload: usize) -> Self {
        Self { data: vector(payload) }
    }
}

impl Scene for InProcess {
    type Callee = Own;

    fn offer(&mut self, name: &str, _sabotage: Option<Sabotage>) -> Result<(), CallError> {
        Err(refused(format_args!("{name} cannot be offered to other processes without IPC")))
    }

    fn find(&mut self, _name: &str) -> Result<Own, CallError> {
        Ok(Own { service: Box::new(Echo::default()), data: Arc::clone(&self.data) })
    }
}

/// An implementation in this process, called as Android calls one: through the interface.
pub(in crate::workers) struct Own {
    service: Box<dyn Benchmark>,
    data: Arc<[u8]>,
}

impl Callee for Own {
    #[inline]
    fn call(&mut self) -> Result<(), CallError> {
        returned(&self.data, black_box(self.service.send_vec(black_box(&self.data))))
    }
}
