//! Room: the echo over binder through the runtime: what the test measures.
//! Not here: the same without the runtime (`super::raw`).
//! As the Android tool: the client writes a byte vector into a parcel, calls, and reads the vector
//! that comes back into one of its own; the service runs on the one thread of its process, found
//! through a service manager that is a third process (contract CTX-05).

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use driver::manager::ManagerError;
use driver::{KernelConnection, KernelContext};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{CallError as Refused, Incoming, Object, Parcel, Status};
use ipc::{Binder, Process, ProcessOptions, Release};

use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};

const DESCRIPTOR: &str = "binderperf.ISendVec";
const SEND_VEC: u32 = 1;
/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// No pool: each process has the thread that joins, or calls, and no other.
fn options(release: Release) -> ProcessOptions {
    ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() }
}

fn open(context: &KernelContext, release: Release) -> Result<Process<KernelConnection>, CallError> {
    Process::open(context, options(release)).map_err(|error| CallError::Refused(error.to_string()))
}

fn refused(doing: impl std::fmt::Display) -> impl FnOnce(Refused) -> CallError {
    move |error| CallError::Refused(format!("{doing}: {error}"))
}

/// The measuring end.
#[derive(Debug)]
pub struct Client {
    service: Binder,
    payload: Payload,
}

impl Client {
    /// For vectors of `len` bytes, served by a service of this name in the context.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub fn find(
        context: &KernelContext,
        release: Release,
        name: &str,
        len: usize,
    ) -> Result<Self, CallError> {
        let process = open(context, release)?;
        let services = Services::of(&process).map_err(refused("calling the service manager"))?;
        let service = services.get(name).map_err(refused(format_args!("looking up {name}")))?;
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

/// Registers the service under a name, says so, and serves on this thread until it is ended.
///
/// # Errors
/// There is no manager, it refuses the name, or the driver broke.
pub(crate) fn serve(
    device: &Path,
    release: Release,
    name: &str,
    ready: impl FnOnce() -> io::Result<()>,
    sabotage: Sabotage,
) -> Result<(), CallError> {
    let process = open(&KernelContext::at(device), release)?;
    let services = Services::wait(&process, PATIENCE).map_err(refused("calling the service manager"))?;
    let sabotage = sabotage.is_planned().then(|| Mutex::new(sabotage));
    let service = process.publish(Echo { sabotage });
    services.add(name, &service).map_err(refused(format_args!(
        "the service manager did not register {name} (this system's manager, or its security policy, may forbid it, \
         or speak another release's dialect: --android; or use --device private)"
    )))?;
    ready().map_err(CallError::os("telling the client"))?;
    process.join_thread_pool().map_err(|error| CallError::Refused(error.to_string()))
}

/// Becomes the context's service manager, says so, and serves on this thread until it is ended.
///
/// # Errors
/// There is one already, and who.
pub(crate) fn manage(
    device: &Path,
    release: Release,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), CallError> {
    let process = open(&KernelContext::at(device), release)?;
    let _manager = process
        .become_context_manager(ServiceManager::new())
        .map_err(|error| CallError::Refused(ManagerError::new(device, error).to_string()))?;
    ready().map_err(CallError::os("telling the client"))?;
    process.join_thread_pool().map_err(|error| CallError::Refused(error.to_string()))
}

/// Whether somebody manages the context.
///
/// # Errors
/// The context cannot be opened, or its manager does not answer as one.
pub(crate) fn is_managed(context: &KernelContext, release: Release) -> Result<bool, CallError> {
    match Services::of(&open(context, release)?) {
        Ok(_) => Ok(true),
        Err(error) if error.is_dead() => Ok(false),
        Err(error) => Err(refused("calling the service manager")(error)),
    }
}
