//! Android's HIDL interface `IBenchmark`: its service, the same in-process as behind hwbinder.
//! Not here: calling it (`crate::workers`), the runtime's part of a call (`ipc::hwbinder`).
//! Facts: `android.hardware.tests.libhwbinder@1.0`: `sendVec(vec<uint8_t> data) generates (vec<uint8_t>
//! data)` is its first method. Without IPC Android's clients call the implementation itself.

use std::sync::{Mutex, PoisonError};

use ipc::hwbinder::{HwParcel, Incoming, Object, Status};

use super::Sabotage;
use crate::call_error::CallError;

/// Name of the interface.
pub(crate) const INTERFACE: &str = "android.hardware.tests.libhwbinder@1.0::IBenchmark";
/// Number of its method that returns a vector.
pub(crate) const SEND_VEC: u32 = 1;

/// The interface within a process.
pub(crate) trait Benchmark: Send + Sync + 'static {
    /// Returns `data`.
    fn send_vec<'d>(&self, data: &'d [u8]) -> &'d [u8];
}

/// Implementation as in the Android tools: returns the very bytes, in place.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// `None` except in tests of this tool.
    sabotage: Option<Mutex<Sabotage>>,
}

impl Echo {
    /// Creates an implementation with this fault.
    pub(crate) fn with(sabotage: Option<Sabotage>) -> Self {
        Self { sabotage: sabotage.map(Mutex::new) }
    }
}

impl Benchmark for Echo {
    fn send_vec<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        if let Some(sabotage) = &self.sabotage {
            sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut []);
        }
        data
    }
}

/// Checks that the reply is as long as the request: all that the Android tools' empty callbacks could see.
pub(crate) fn returned(sent: &[u8], came: &[u8]) -> Result<(), CallError> {
    if sent.len() == came.len() {
        return Ok(());
    }
    Err(CallError::Corrupt { sent: sent.len(), received: came.len(), at: sent.len().min(came.len()) })
}

/// An implementation published to other processes.
#[derive(Debug)]
pub(crate) struct Offered<B>(pub(crate) B);

impl<B: Benchmark> Object for Offered<B> {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        if call.code() != SEND_VEC {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        reply.write_vec(self.0.send_vec(call.read_bytes()?));
        Ok(())
    }
}
