//! The flavour `hwbinder`: HIDL's scatter-gather parcels, headers, status words, objects and
//! service manager.
//!
//! - [`parcel`], [`writer`], [`reader`]: the payload. Arguments are not copied into the parcel: it describes
//!   them (PTR objects) and the driver reads them in place.
//! - [`status`]: the word before the results.
//! - [`object`]: the trait of a service; [`base`]: the methods that every object has.
//! - [`client`]: calling an object.
//! - [`manager`]: the service manager, server and client.
//! - `fuzz`: the fuzz target's entry, on payloads made by `delivered`.
//!
//! Objects are [`HwBinder`]s, so that no other flavour's parcel can be sent to one. Imports go one way:
//! `hw_binder, parcel < reader, writer < status < base < object < client < manager`.

pub mod base;
pub mod client;
#[cfg(any(test, feature = "fuzz"))]
mod delivered;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod hw_binder;
pub mod manager;
pub mod object;
pub mod parcel;
pub mod reader;
pub mod status;
pub mod writer;

pub use base::DebugInfo;
pub use client::Reply;
pub use hw_binder::HwBinder;
pub use object::{Incoming, Object};
pub use parcel::{HwParcel, NativeHandle, Part};
pub use reader::{Image, Reader, Seen};

pub use crate::status::{CallError, Exception, ExceptionKind, Status};
