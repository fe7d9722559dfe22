//! Embedded driver: the Binder driver in user space, behind the same seam as the kernel driver.
//!
//! - [`context`], [`settings`]: a context by its name, also an open one, and options of the driver there.
//! - [`device_path`]: which paths an unmodified program opens a context by.
//! - `client`: one process's half of the driver. [`shm`]: layouts of shared memory: inboxes, doorbells, call slots.
//! - [`broker`]: the process that owns nodes, references and identities. `directory`, [`start`]: its directory, and how
//!   it is started.
//! - `watch`: whether a broker still runs.
//! - [`rpc`]: requests and answers between a process and the broker. `broker_connection`: the process's end of the socket.
//! - `payload`: payload rules that both sides keep: objects, scattered buffers, packing.
//! - [`program`]: a program whose calls another process makes for it.
//! - `priority`: priority inheritance from caller to callee. [`trace_events`]: Binder events written into a trace.
//! - `fuzz`: entry points of the fuzz targets; not compiled into a shipped binary.
//!
//! Not here: the seam (`driver::connection`), choosing a backend (`backend::locate`).
#![forbid(unsafe_code)]

pub mod broker;
mod broker_connection;
mod client;
pub mod context;
pub mod device_path;
mod directory;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod payload;
mod priority;
pub mod program;
pub mod rpc;
pub mod settings;
pub mod shm;
pub mod start;
pub mod trace_events;
mod watch;

pub use client::Area;
pub use context::{EmbeddedConnection, EmbeddedContext};
pub use program::{OwnNumbers, Program};
pub use settings::{Inherit, Settings, Waiting};
pub use watch::BrokerWatch;
