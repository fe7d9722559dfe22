//! Echo over binder through the runtime: the subject of the throughput test.
//! Not here: the same without the runtime (`super::raw`), finding the peer (`crate::endpoint`). As in the
//! Android tool: the client writes a byte vector into a parcel, calls, and reads the returned vector into one
//! of its own; the service runs on the only thread of its process.

use std::io;
use std::sync::{Mutex, PoisonError};

use driver::Context;
use ipc::Binder;
use ipc::binder::{Incoming, Object, Parcel, Status};
use steps::DESCRIPTOR;

use super::{Payload, Sabotage};
use crate::call_error::{CallError, refused};
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;

const SEND_VEC: u32 = 1;

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client {
    service: Binder,
    payload: Payload,
}

impl Client {
    /// Creates a client for vectors of `len` bytes, with the service at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub(crate) fn find<X: Context>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError> {
        let (_endpoint, proxy) = place.find(DESCRIPTOR)?;
        Ok(Self { service: Binder::Remote(proxy), payload: Payload::new(len) })
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let mut request = self.service.request(DESCRIPTOR);
        request.write_byte_slice(&self.payload.sent);
        let reply = self.service.call(SEND_VEC, request).map_err(refused)?;
        let bytes = reply.reader().read_byte_slice().map_err(refused)?;
        self.payload.received.clear();
        self.payload.received.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

struct Echo {
    /// `None` except in tests of this tool.
    sabotage: Option<Mutex<Sabotage>>,
}

impl Object for Echo {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if call.code() != SEND_VEC {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let bytes = call.read_byte_slice()?;
        match &self.sabotage {
            None => reply.write_byte_slice(bytes),
            Some(sabotage) => {
                let mut broken = bytes.to_vec();
                sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut broken);
                reply.write_byte_slice(&broken);
            }
        }
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
    let sabotage = sabotage.is_planned().then(|| Mutex::new(sabotage));
    let (endpoint, _service) = place.register(|process| process.publish(Echo { sabotage }))?;
    ready().map_err(CallError::os("telling the client"))?;
    endpoint.serve()
}
