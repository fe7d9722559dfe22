//! The Binder runtime on any [`driver::Connection`].
//!
//! - [`Process`]: one process of a context, with its thread pool; [`ProcessOptions`].
//! - [`Binder`]: an object to call, an own [`Node`] or another process's [`Proxy`]; [`DeathLink`].
//! - [`NodeOptions`]: scheduling attributes of a node, and whether calls to it may carry descriptors.
//! - [`Serve`], [`Transaction`], [`Received`], [`Outcome`]: transactions without a flavour.
//! - [`binder`]: AIDL's parcels, headers and service manager; [`hwbinder`]: HIDL's; [`Registration`]: a service that
//!   outlives its manager.
//! - [`error`], [`StatusCode`], [`Taken`]: outcomes; [`Caller`]: who called.
//!
//! Imports go one way, lowest first (`tests/tidy` checks that no modules import each other in a circle):
//! `error, status_code, release, scheduling, caller < background, call < outstanding < runtime < exchange < process <
//! status < incoming, manager < binder, hwbinder < registration`. Each module's children follow an order of their own.
//!
//! Not here: which driver is in use (`backend`), the library over both (crate `binder`), statistics (`bench`).
#![forbid(unsafe_code)]

mod background;
pub mod binder;
mod call;
mod caller;
pub mod error;
mod exchange;
pub mod hwbinder;
mod incoming;
mod manager;
mod outstanding;
mod process;
mod registration;
mod release;
mod runtime;
mod scheduling;
mod status;
mod status_code;

pub use background::{BackgroundGroup, BackgroundScheduling, GroupError};
pub use call::Taken;
pub use caller::Caller;
pub use error::{Refusal, TransactError};
pub use process::{Process, ProcessError, ProcessOptions};
pub use registration::Registration;
pub use release::Release;
pub use runtime::Outcome;
pub use runtime::node::Node;
pub use runtime::proxy::Proxy;
pub use runtime::proxy::death::DeathLink;
pub use runtime::received::Received;
pub use runtime::serve::{Serve, Transaction};
pub use runtime::target::Binder;
pub use scheduling::{Minimum, Nice, NodeOptions, OutOfRange, RtPriority};
pub use status_code::StatusCode;
