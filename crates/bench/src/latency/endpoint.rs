//! Both ends of a pair in either flavour: an offered service, a found callee; and the service within the
//! caller's own process.
//! Not here: the service's work (`super::service`), the schedule (`super::caller`).
//! Facts: flavour `binder` is as in `schd-dbg.cpp`: a transaction of bare bytes without an interface header, at
//! least 16 bytes each way. Flavour `hwbinder` is as in `libhwbinder_latency`:
//! `android.hardware.tests.libhwbinder@1.0::IScheduleTest`: `configure(uint32_t)`, then `send(uint32_t cfg,
//! uint32_t callerSta) generates (uint32_t)`; here more results follow the first, and a requested payload
//! follows the arguments as a vector.

use std::hint::black_box;
use std::sync::Arc;

use driver::Connection;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Status};
use ipc::{Binder, Proxy};
use zerocopy::{FromBytes, transmute};

use super::sample::ServerFacts;
use super::service::Service;
use crate::call_error::{CallError, refused};
use crate::endpoint::{BareService, Endpoint, call_bare};
use crate::plan::Dialect;

/// The only method of a bare service.
const BARE_SEND: u32 = 1;
/// The HIDL interface and its methods.
const INTERFACE: &str = "android.hardware.tests.libhwbinder@1.0::IScheduleTest";
const CONFIGURE: u32 = 1;
const SEND: u32 = 2;

/// Words of an answer in the wire format.
type Words = [u64; 3];

fn to_words(answer: ServerFacts) -> Words {
    [u64::from(answer.tid) << 32 | u64::from(answer.cpu), answer.sched, answer.cpu_ns]
}

fn of_words([thread, sched, cpu_ns]: Words) -> ServerFacts {
    ServerFacts { tid: (thread >> 32) as u32, cpu: thread as u32, sched, cpu_ns }
}

/// Registers a service under this name. It lives as long as the returned value.
pub(super) fn offer<C: Connection>(
    endpoint: &Endpoint<C>,
    name: &str,
    service: Service,
    inherit_rt: bool,
) -> Result<Binder, CallError> {
    let options = endpoint.node_options(inherit_rt);
    let service = match endpoint.dialect {
        Dialect::Binder(_) => {
            let answer = move || -> [u8; size_of::<Words>()] { transmute!(to_words(service.serve())) };
            endpoint.publish_bare(BareService(answer), options)
        }
        Dialect::Hwbinder => {
            endpoint.process.publish_hidl_with(HidlService(service), options).as_binder().clone()
        }
    };
    endpoint.register(name, &service)?;
    Ok(service)
}

/// A callable service; each thread uses its own clone.
pub(super) trait Callee: Clone + Send + 'static {
    /// Makes one call. The measured time is that of this function, from preparing the transaction to its
    /// result.
    ///
    /// # Errors
    /// The call failed or its reply is malformed.
    fn call(&self) -> Result<ServerFacts, CallError>;
}

/// A service found by flavour `binder`.
#[derive(Clone)]
pub(super) struct BareCallee {
    proxy: Proxy,
    request: Arc<[u8]>,
}

impl BareCallee {
    /// Finds a service. Each call carries `payload` bytes.
    pub(super) fn find<C: Connection>(
        endpoint: &Endpoint<C>,
        name: &str,
        payload: usize,
    ) -> Result<Self, CallError> {
        Ok(Self { proxy: endpoint.find("", name)?, request: vec![0; payload].into() })
    }
}

impl Callee for BareCallee {
    fn call(&self) -> Result<ServerFacts, CallError> {
        call_bare(&self.proxy, BARE_SEND, &self.request, |bytes| {
            Words::read_from_bytes(bytes).ok().map(of_words)
        })
    }
}

struct HidlService(Service);

impl Object for HidlService {
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

/// A service found by flavour `hwbinder`.
#[derive(Clone)]
pub(super) struct HidlCallee {
    service: HwBinder,
    data: Arc<[u8]>,
}

impl HidlCallee {
    /// Finds a service, and configures it. Each call carries `payload` bytes.
    pub(super) fn find<C: Connection>(
        endpoint: &Endpoint<C>,
        name: &str,
        payload: usize,
    ) -> Result<Self, CallError> {
        let service = HwBinder::from(Binder::Remote(endpoint.find(INTERFACE, name)?));
        let mut request = service.request(INTERFACE);
        request.write_u32(0);
        service.call(CONFIGURE, request).map_err(refused)?;
        Ok(Self { service, data: vec![0; payload].into() })
    }
}

impl Callee for HidlCallee {
    fn call(&self) -> Result<ServerFacts, CallError> {
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
#[derive(Clone)]
pub(super) struct InProcess(pub(super) Arc<Service>);

impl Callee for InProcess {
    fn call(&self) -> Result<ServerFacts, CallError> {
        Ok(black_box(self.0.serve()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let answer = ServerFacts { tid: 77, cpu: 3, sched: 0x01_63_00, cpu_ns: u64::MAX };
        assert_eq!(of_words(to_words(answer)), answer);
    }
}
