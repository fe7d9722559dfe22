//! Room: the flavour `hwbinder`, as Android's `libhwbinder_latency` speaks it, and the same interface in the
//! caller's own process.
//! Facts: `android.hardware.tests.libhwbinder@1.0::IScheduleTest`: `configure(uint32_t)`, then
//! `send(uint32_t cfg, uint32_t callerSta) generates (uint32_t)`; here more results follow the first, and a
//! vector the arguments where a payload was asked for.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use driver::{Connection, Context};
use ipc::hwbinder::manager::Services;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Status};
use ipc::{Binder, NodeOptions, Process, ProcessOptions};

use super::super::sample::Answer;
use super::super::service::Service;
use super::{Callee, Scene, of_words, refused, to_words};
use crate::measure::CallError;

/// The interface's name.
const INTERFACE: &str = "android.hardware.tests.libhwbinder@1.0::IScheduleTest";
/// Its methods.
const CONFIGURE: u32 = 1;
const SEND: u32 = 2;
/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a service is waited for.
const ABSENCE: Duration = Duration::from_secs(5);

/// A process in a hwbinder context.
pub(in crate::latency) struct OnHwbinder<C: Connection> {
    process: Process<C>,
    services: Services,
    /// Services of its own, which live as long as this.
    held: Vec<HwBinder>,
}

impl<C: Connection> OnHwbinder<C> {
    /// Opens the context and waits for its manager.
    pub(in crate::latency) fn enter<X: Context<Connection = C>>(context: &X) -> Result<Self, CallError> {
        let process = Process::open(context, ProcessOptions::hwbinder()).map_err(refused)?;
        let services = Services::wait(&process, PATIENCE)
            .map_err(|error| refused(format_args!("calling the service manager: {error}")))?;
        Ok(Self { process, services, held: Vec::new() })
    }
}

impl<C: Connection> Scene for OnHwbinder<C> {
    type Callee = Found;

    fn start_pool(&mut self, threads: u32) -> Result<(), CallError> {
        let start = |_| self.process.start_thread_pool().map_err(CallError::os("starting the thread pool"));
        (0..threads).try_for_each(start)
    }

    fn offer(&mut self, name: &str, service: Service, inherit_rt: bool) -> Result<(), CallError> {
        let options = NodeOptions { inherit_rt, ..NodeOptions::HWBINDER };
        let service = self.process.publish_hidl_with(Offered(service), options);
        let added = self.services.add(name, &service);
        added.map_err(|error| refused(format_args!("registering {INTERFACE}/{name}: {error}")))?;
        self.held.push(service);
        Ok(())
    }

    fn find(&mut self, name: &str, payload: usize) -> Result<Found, CallError> {
        let service = self.services.wait_for(INTERFACE, name, ABSENCE).map_err(refused)?;
        if matches!(service.as_binder(), Binder::Local(_)) {
            return Err(refused(format_args!("{name} is this very process")));
        }
        let mut request = service.request(INTERFACE);
        request.write_u32(0);
        service.call(CONFIGURE, request).map_err(refused)?;
        Ok(Found { service, data: vec![0; payload].into() })
    }
}

struct Offered(Service);

impl Object for Offered {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        match call.code() {
            CONFIGURE => call.read_u32().map(drop).map_err(Status::from),
            SEND => {
                let (_cfg, _caller) = (call.read_u32()?, call.read_u32()?);
                let words = to_words(self.0.serve());
                reply.write_u32(0);
                words.iter().for_each(|word| reply.write_u64(*word));
                Ok(())
            }
            _ => Err(Status::UNKNOWN_TRANSACTION),
        }
    }
}

/// A service that was found.
#[derive(Clone)]
pub(in crate::latency) struct Found {
    service: HwBinder,
    data: Arc<[u8]>,
}

impl Callee for Found {
    #[inline]
    fn call(&self) -> Result<Answer, CallError> {
        let mut request = self.service.request(INTERFACE);
        request.write_u32(0);
        request.write_u32(0);
        if !self.data.is_empty() {
            request.write_vec(&self.data);
        }
        let reply = self.service.call(SEND, request).map_err(refused)?;
        let mut reader = reply.reader();
        reader.read_u32().map_err(refused)?;
        let mut word = || reader.read_u64().map_err(refused);
        Ok(of_words([word()?, word()?, word()?]))
    }
}

/// The service in the caller's own process.
#[derive(Clone, Default)]
pub(in crate::latency) struct InProcess {
    service: Arc<Service>,
}

impl InProcess {
    pub(in crate::latency) fn with(service: Service) -> Self {
        Self { service: Arc::new(service) }
    }
}

impl Scene for InProcess {
    type Callee = Self;

    fn start_pool(&mut self, _threads: u32) -> Result<(), CallError> {
        Ok(())
    }

    fn offer(&mut self, name: &str, _service: Service, _inherit_rt: bool) -> Result<(), CallError> {
        Err(refused(format_args!("{name} cannot be offered to other processes without IPC")))
    }

    fn find(&mut self, _name: &str, _payload: usize) -> Result<Self, CallError> {
        Ok(self.clone())
    }
}

impl Callee for InProcess {
    #[inline]
    fn call(&self) -> Result<Answer, CallError> {
        Ok(black_box(self.service.serve()))
    }
}
