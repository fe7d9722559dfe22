//! Either driver, the kernel's or the embedded one, behind one type.
//!
//! - [`any`]: the type. - [`locate`]: which driver and context this machine has.
//! - [`state`]: a driver's own account of itself, by device.
//! - [`broker`]: this program as the embedded driver's broker. [`shim`]: the context of unmodified programs.
//!
//! Not here: the drivers (`driver::kernel`, `embedded`).
#![forbid(unsafe_code)]

pub mod any;
pub mod broker;
pub mod locate;
pub mod shim;
pub mod state;

pub use any::AnyContext;
pub use driver::AnyConnection;
pub use embedded::BrokerWatch;
