//! Files by which test harnesses run this program on many devices.
//!
//! - [`lava`]: a job for LAVA, and what it needs; [`tradefed`]: modules for Android's Trade Federation.
//! - [`error`]: why they could not be written.
//!
//! Not here: running on devices, which is the harness's work; results of many devices (`store::across`).
#![forbid(unsafe_code)]

pub mod error;
pub mod lava;
mod program_files;
pub mod tradefed;

pub use error::FleetError;
