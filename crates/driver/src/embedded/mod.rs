//! Room: the driver in user space, behind the same seam as the kernel's.
//!
//! - [`context`], [`settings`]: which one, and how it behaves; [`connection`]: being in it.
//! - [`channel`]: what lies in memory that processes share: inboxes, doorbells, lanes.
//! - [`protocol`]: what broker and processes say to each other.
//!
//! Not here: the seam (`crate::connection`), choosing a backend (`crate::locate`).

pub mod channel;
pub mod connection;
pub mod context;
pub mod protocol;
pub mod settings;

pub use connection::EmbeddedConnection;
pub use context::EmbeddedContext;
pub use settings::{Inherit, Settings, Waiting};
