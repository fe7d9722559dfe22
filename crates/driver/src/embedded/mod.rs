//! Room: the driver in user space, behind the same seam as the kernel's.
//!
//! - [`context`], [`settings`]: which one, and how it behaves; [`connection`]: being in it.
//! - [`channel`]: what lies in memory that processes share: inboxes, doorbells, lanes.
//! - [`broker`]: the process that owns who is who. [`directory`], [`start`]: where it is, and how it
//!   comes to be there. [`line`], [`wire`]: talking to it.
//! - [`protocol`]: what broker and processes say to each other. [`objects`]: the rules of payloads that
//!   both of them keep.
//! - [`marks`]: what it writes into a trace where that is asked for.
//! - `fuzz`: what fuzz targets call; no part of a shipped binary.
//!
//! Not here: the seam (`crate::connection`), choosing a backend (`crate::locate`).

pub mod broker;
pub mod channel;
pub mod connection;
pub mod context;
mod directory;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod line;
pub mod marks;
mod objects;
mod priority;
mod process;
pub mod protocol;
pub mod settings;
pub mod start;
mod wire;

pub use connection::EmbeddedConnection;
pub use context::EmbeddedContext;
pub use settings::{Inherit, Settings, Waiting};
