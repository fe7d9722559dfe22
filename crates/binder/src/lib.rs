//! Binder and hwbinder services and clients on whichever driver this machine has, the kernel's or the embedded one.
//!
//! - [`find`], [`Process`]: a context, and one process of it.
//! - [`Object`], [`Incoming`], [`Parcel`], [`Status`]: a service in AIDL's format; [`Binder`]: calling one.
//! - [`ServiceManager`], [`Services`]: names for objects.
//! - [`hwbinder`]: the same for HIDL.
//!
//! Not here: the runtime itself (`ipc`), the drivers (`backend`).
//!
//! ```no_run
//! use binder::{Incoming, Object, Parcel, Process, ProcessOptions, Services, Status};
//!
//! struct Echo;
//!
//! impl Object for Echo {
//!     fn descriptor(&self) -> &str {
//!         "example.IEcho"
//!     }
//!
//!     fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
//!         match call.code() {
//!             1 => reply.write_byte_slice(call.read_byte_slice()?),
//!             _ => return Err(Status::UNKNOWN_TRANSACTION),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The service:
//! let context = binder::find("auto", "binder")?;
//! let process = Process::open(&context, ProcessOptions::default())?;
//! Services::of(&process)?.add("echo", &process.publish(Echo))?;
//! process.join_thread_pool()?;
//!
//! // The client, in another process:
//! let process = Process::open(&context, ProcessOptions::default())?;
//! let echo = Services::of(&process)?.get("echo")?;
//! let mut request = echo.request("example.IEcho");
//! request.write_byte_slice(b"hello");
//! let reply = echo.call(1, request)?;
//! assert_eq!(reply.reader().read_byte_slice()?, b"hello");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

use std::error::Error;

use backend::locate::{self, Device, Driver, Wanted};

pub use backend::{AnyConnection, AnyContext};
pub use ipc::binder::manager::{ServiceManager, Services};
pub use ipc::binder::{CallError, Incoming, Object, Parcel, Reader, Reply, Stability, Status};
pub use ipc::{
    Binder, DeathLink, Node, NodeOptions, ProcessOptions, Proxy, Refusal, Release, StatusCode, Taken,
    TransactError, hwbinder,
};

/// A process of a context of either driver.
pub type Process = ipc::Process<AnyConnection>;

/// Finds a context of the flavour `binder`, `hwbinder` or `vndbinder`. `place`: a driver (`auto`, `kernel`, `embedded`), a
/// device of the kernel driver by path or name, or the [`AnyContext::address`] of a context.
///
/// # Errors
/// The machine has no such driver or device; the error says what to do.
pub fn find(place: &str, flavour: &str) -> Result<AnyContext, Box<dyn Error>> {
    let wanted = match place.parse::<Driver>() {
        Ok(driver) => Wanted { driver, ..Wanted::default() },
        Err(_) if place.contains('/') => return Ok(AnyContext::parse(place)),
        Err(_) => Wanted { driver: Driver::Kernel, device: place.parse::<Device>()?, ..Wanted::default() },
    };
    Ok(locate::find(&wanted, flavour)?.context)
}
