//! Room: the seam between the runtime and a binder driver.
//!
//! - [`connection`]: the traits [`Connection`] (one open context of one process) and [`Context`]
//!   (where to open one).
//! - [`kernel`]: the backend over a real driver. [`embedded`]: the driver in user space.
//! - [`locate`]: which context of this machine to use. [`any`]: either behind one type.
//! - [`kernel_state`]: the driver's own account of itself.
//! - [`kernel_config`]: the running kernel's configuration.
//! - [`absence`]: why there is none, and how to get one.
//!
//! Not here: threads, parcels, names of services.
#![forbid(unsafe_code)]

pub mod absence;
pub mod any;
pub mod connection;
pub mod embedded;
pub mod error;
pub mod kernel;
pub mod kernel_config;
pub mod kernel_state;
pub mod locate;
pub mod manager;

pub use any::{AnyConnection, AnyContext};
pub use connection::{Connection, Context, Exchange, OpenOptions};
pub use embedded::{EmbeddedConnection, EmbeddedContext};
pub use error::OpenError;
pub use kernel::{KernelConnection, KernelContext};
pub use sys::descriptor::duplicate as duplicate_descriptor;
