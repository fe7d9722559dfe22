//! Files by which test harnesses run this program on many devices.
//!
//! - [`error`]: why they could not be written.
//!
//! Not here: running on devices, which is the harness's work; results of many devices (`store::across`).
#![forbid(unsafe_code)]

pub mod error;

pub use error::FleetError;
