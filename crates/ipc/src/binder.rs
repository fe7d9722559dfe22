//! Room: the flavour `binder`: AIDL's parcels, headers, status words, objects and service manager.
//!
//! - [`parcel`], [`writer`], [`reader`]: the payload.
//! - [`header`]: what precedes the arguments, per Android release; [`stability`]: what follows
//!   each binder.
//! - [`status`]: what precedes the results.
//! - [`object`]: what a service implements; [`client`]: how one is called.
//! - [`manager`]: the service manager, both sides.

pub mod client;
pub mod header;
pub mod manager;
pub mod object;
pub mod parcel;
pub mod reader;
pub mod special;
pub mod stability;
pub mod status;
pub mod writer;

pub use client::{CallError, Reply};
pub use header::{Generation, Header};
pub use object::{Incoming, Object};
pub use parcel::{Parcel, Parcelable};
pub use reader::Reader;
pub use stability::Stability;
pub use status::{Exception, Status};
