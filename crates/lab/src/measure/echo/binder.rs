//! Room: the echo over binder through the runtime: what the test measures.
//! Not here: the same without the runtime (`super::raw`), finding each other (`super::rendezvous`).
//! As the Android tool: the client writes a byte vector into a parcel, calls, and reads the vector
//! that comes back into one of its own; the service runs on the one thread of its process.

use std::io;
use std::sync::{Mutex, PoisonError};

use driver::Context;
use ipc::Binder;
use ipc::binder::{Incoming, Object, Parcel, Status};

use super::rendezvous::Rendezvous;
use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};

/// The interface's name.
pub(crate) const DESCRIPTOR: &str = "binderperf.ISendVec";
const SEND_VEC: u32 = 1;
/// The measuring end.
#[derive(Debug)]
pub struct Client {
    service: Binder,
    payload: Payload,
}

impl Client {
    /// For vectors of `len` bytes, served by [`serve`] at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub fn find<X: Context>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError> {
        let (_process, service) = place.find(DESCRIPTOR)?;
        Ok(Self { service, payload: Payload::new(len) })
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let mut request = self.service.request(DESCRIPTOR);
        request.write_byte_slice(&self.payload.sent);
        let broken = |error: &dyn std::fmt::Display| CallError::Refused(error.to_string());
        let reply = self.service.call(SEND_VEC, request).map_err(|error| broken(&error))?;
        let bytes = reply.reader().read_byte_slice().map_err(|error| broken(&error))?;
        self.payload.received.clear();
        self.payload.received.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

struct Echo {
    /// `None` in every run but a test of this tool.
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

/// Registers the service, says so, and serves on this thread until it is ended.
///
/// # Errors
/// There is no manager, it refuses the name, or the driver broke.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    ready: impl FnOnce() -> io::Result<()>,
    sabotage: Sabotage,
) -> Result<(), CallError> {
    let sabotage = sabotage.is_planned().then(|| Mutex::new(sabotage));
    let (process, _service) = place.register(|process| process.publish(Echo { sabotage }))?;
    ready().map_err(CallError::os("telling the client"))?;
    process.join_thread_pool().map_err(|error| CallError::Refused(error.to_string()))
}
