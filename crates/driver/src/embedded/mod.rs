//! Room: the driver in user space, behind the same seam as the kernel's.
//!
//! - [`context`], [`settings`]: which one, and how it behaves; [`connection`]: being in it.
//! - [`protocol`]: what broker and processes say to each other.
//!
//! Not here: the seam (`crate::connection`), choosing a backend (`crate::locate`).

pub mod connection;
pub mod context;
pub mod protocol;
pub mod settings;

pub use connection::EmbeddedConnection;
pub use context::EmbeddedContext;
pub use settings::{Inherit, Settings, Waiting};
