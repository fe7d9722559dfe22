//! Echo over hwbinder, and the same interface in the caller's own process: the subject of
//! `BM_sendVec_binderize` and `BM_sendVec_passthrough`.
//! Not here: the interface and its service (`super::benchmark`), finding the peer (`crate::endpoint`). As
//! in the Android tool: the client sends its vector in place, the service returns the received bytes in
//! place, the client reads the reply in place. The reply is not kept, so a further call checks it.

use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError};

use driver::Context;
use ipc::Binder;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Reply, Status};

use super::benchmark::{Benchmark, Echo, INTERFACE, Offered, SEND_VEC, returned};
use super::{Payload, Sabotage};
use crate::call_error::{CallError, refused};
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client {
    service: HwBinder,
    payload: Payload,
}

impl Client {
    /// Creates a client for vectors of `len` bytes, with the service at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub(crate) fn find<X: Context>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError> {
        let (_endpoint, proxy) = place.find(INTERFACE)?;
        Ok(Self { service: HwBinder::from(Binder::Remote(proxy)), payload: Payload::new(len) })
    }

    fn send(&self) -> Result<Reply<'_>, CallError> {
        let mut request = self.service.request(INTERFACE);
        request.write_vec(&self.payload.sent);
        self.service.call(SEND_VEC, request).map_err(refused)
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let reply = self.send()?;
        returned(&self.payload.sent, black_box(reply.reader().read_bytes().map_err(refused)?))
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check_against(self.send()?.reader().read_bytes().map_err(refused)?)
    }
}

/// The measuring end without IPC.
pub(crate) struct InProcess {
    service: Box<dyn Benchmark>,
    payload: Payload,
}

impl InProcess {
    /// Creates one for vectors of `len` bytes.
    #[must_use]
    pub(crate) fn new(len: usize) -> Self {
        Self { service: Box::new(Echo::default()), payload: Payload::new(len) }
    }
}

impl RoundTrip for InProcess {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let sent = black_box(&self.payload.sent);
        returned(sent, black_box(self.service.send_vec(sent)))
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check_against(self.service.send_vec(&self.payload.sent))
    }

    fn calls_per_sample(&self) -> u64 {
        super::inside::CALLS_PER_SAMPLE
    }
}

/// Returns wrong answers, for tests of this tool.
struct Broken(Mutex<Sabotage>);

impl Object for Broken {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        let mut bytes = call.read_bytes()?.to_vec();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut bytes);
        let vector = reply.write_structs(bytes.len(), 1);
        reply.set(vector, 0, &bytes);
        Ok(())
    }
}

/// Registers the service, reports readiness, and serves on this thread until the process is killed.
///
/// # Errors
/// No manager exists, it refuses the name, or the driver failed.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    ready: impl FnOnce() -> io::Result<()>,
    sabotage: Sabotage,
) -> Result<(), CallError> {
    let (endpoint, _service) = place.register(|process| {
        let service = match sabotage.is_planned() {
            true => process.publish_hidl(Broken(Mutex::new(sabotage))),
            false => process.publish_hidl(Offered(Echo::default())),
        };
        service.as_binder().clone()
    })?;
    ready().map_err(CallError::os("telling the client"))?;
    endpoint.serve()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_ipc_the_vector_itself_comes_back() {
        let mut client = InProcess::new(64);
        client.stamp(7);
        client.call().expect("as long as it was");
        client.check().expect("the same bytes");
        let came = client.service.send_vec(&client.payload.sent);
        assert!(std::ptr::eq(came, &*client.payload.sent), "no copy of them");
    }
}
