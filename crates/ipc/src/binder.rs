//! The flavour `binder`: AIDL's parcels, headers, status words, objects and service manager.
//!
//! - [`parcel`], [`writer`], [`reader`]: the payload.
//! - [`header`]: the words before the arguments, per Android release; [`stability`]: the word after
//!   each binder; [`status`]: the word before the results.
//! - [`object`]: the trait of a service; [`special`]: codes that every object answers; [`shell`]: commands that a
//!   person types; [`client`]: calling one.
//! - [`manager`]: the service manager, server and client.
//!
//! Imports go one way: `stability < parcel < reader, writer < header, status, shell < object < client < manager`.

pub mod client;
pub mod header;
pub mod manager;
pub mod object;
pub mod parcel;
pub mod reader;
pub mod shell;
pub mod special;
pub mod stability;
pub mod status;
pub mod writer;

pub use client::Reply;
pub use object::{Incoming, Object};
pub use parcel::Parcel;
pub use reader::Reader;
pub use shell::ShellCommand;
pub use stability::Stability;

pub use crate::release::Generation;
pub use crate::status::{CallError, Exception, ExceptionKind, Status};
