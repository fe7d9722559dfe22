//! Room: the echo over hwbinder, and the same interface in the caller's own process: what
//! `BM_sendVec_binderize` and `BM_sendVec_passthrough` measure.
//! Not here: the interface and its service (`super::benchmark`), finding each other (`super::rendezvous`).
//! As the Android tool: the client's vector goes out from where it lies, the service returns the bytes that
//! it received in place, the client reads the reply where it came. Nobody keeps it, so whether it was
//! right is seen by a further call.

use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError};

use driver::Context;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Reply, Status};

use super::benchmark::{Benchmark, Echo, INTERFACE, Offered, SEND_VEC, returned};
use super::rendezvous::Rendezvous;
use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};

/// The measuring end.
#[derive(Debug)]
pub struct Client {
    service: HwBinder,
    payload: Payload,
}

fn broken(error: impl std::fmt::Display) -> CallError {
    CallError::Refused(error.to_string())
}

impl Client {
    /// For vectors of `len` bytes, served by [`serve`] or somebody else's service at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub fn find<X: Context>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError> {
        let (_process, service) = place.find(INTERFACE)?;
        Ok(Self { service: HwBinder::from(service), payload: Payload::new(len) })
    }

    #[inline]
    fn send(&self) -> Result<Reply<'_>, CallError> {
        let mut request = self.service.request(INTERFACE);
        request.write_vec(&self.payload.sent);
        self.service.call(SEND_VEC, request).map_err(broken)
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let reply = self.send()?;
        returned(&self.payload.sent, black_box(reply.reader().read_bytes().map_err(broken)?))
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check_against(self.send()?.reader().read_bytes().map_err(broken)?)
    }
}

/// The measuring end where nothing is sent.
pub struct InProcess {
    service: Box<dyn Benchmark>,
    payload: Payload,
}

impl InProcess {
    /// For vectors of `len` bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
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

/// Answers otherwise than it was asked, for tests of this tool.
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

/// Registers the service, says so, and serves on this thread until it is ended.
///
/// # Errors
/// There is no manager, it refuses the name, or the driver broke.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    ready: impl FnOnce() -> io::Result<()>,
    sabotage: Sabotage,
) -> Result<(), CallError> {
    let (process, _service) = place.register(|process| {
        let service = match sabotage.is_planned() {
            true => process.publish_hidl(Broken(Mutex::new(sabotage))),
            false => process.publish_hidl(Offered(Echo::default())),
        };
        service.as_binder().clone()
    })?;
    ready().map_err(CallError::os("telling the client"))?;
    process.join_thread_pool().map_err(broken)
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
