//! Room: the flavour `hwbinder`: HIDL's scatter-gather parcels, headers, status words, objects and
//! service manager.
//!
//! - [`parcel`], [`writer`], [`reader`]: the payload. Arguments stay where they are; the parcel holds
//!   descriptions of them (PTR objects), which the driver follows.
//! - [`status`]: what precedes the results.
//! - [`object`]: what a service implements; [`base`]: what every object answers by itself.
//! - [`client`]: how an object is called. [`process`]: libhwbinder's habits at a process's start.
//! - [`manager`]: the service manager, both sides.
//! - `fuzz`: what the fuzz target calls, on payloads of `delivered`.
//!
//! Its objects are [`HwBinder`]s, so that nobody calls one with the other flavour's parcels.

pub mod base;
pub mod client;
#[cfg(any(test, feature = "fuzz"))]
mod delivered;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod manager;
pub mod object;
pub mod parcel;
pub mod process;
pub mod reader;
pub mod status;
pub mod writer;

pub use base::DebugInfo;
pub use client::{HwBinder, Reply};
pub use object::{Incoming, Object};
pub use parcel::{HwParcel, NativeHandle, Part};
pub use reader::{Image, Reader, Seen};
pub use status::{CallError, Exception, ExceptionKind, Status};
