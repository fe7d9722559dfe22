//! The interface between the runtime and a binder driver, and its implementation over the kernel driver.
//!
//! - [`connection`]: the traits [`Connection`] (one open context of one process) and [`Context`]
//!   (where to open one).
//! - [`kernel`]: the backend over a real driver.
//! - [`kernel_state`]: the kernel driver's own account of itself.
//! - [`kernel_config`]: the running kernel's configuration.
//! - [`absence`]: why there is no driver, and how to get one.
//! - [`root`]: a machine's files, live or copied, on which these depend.
//! - [`manager`]: why a process could not become the context manager.
//! - `fixture`: a connection for the tests of other crates.
//!
//! Not here: the driver in user space (`embedded`), choosing one (`backend`), threads, parcels, names of
//! services.
#![forbid(unsafe_code)]

pub mod absence;
pub mod connection;
pub mod error;
// Not behind a feature: with one, this crate and all above it would be compiled twice, with it for tests and without for
// the program.
#[doc(hidden)]
pub mod fixture;
pub mod kernel;
pub mod kernel_config;
pub mod kernel_state;
pub mod manager;
pub mod root;

pub use connection::{AnyConnection, Connection, Context, Exchange, OpenOptions};
pub use error::OpenError;
pub use kernel::{KernelConnection, KernelContext};
pub use root::Root;
pub use sys::descriptor::duplicate as duplicate_descriptor;
