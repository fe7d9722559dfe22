//! This program on other machines: at once, and by the files of test harnesses that run it on many devices.
//!
//! - [`on`]: a command on machines one after another, and a table across them; [`guest`]: commands in guests.
//! - [`lava`]: a job for LAVA, and what it needs; [`tradefed`]: modules for Android's Trade Federation.
//! - [`error`]: why they could not be written.
//! - [`environment`]: the variables that go along.
//!
//! Not here: reaching a machine (crate `remote`), booting (crate `vm`); results of many devices (`store::across`).
#![forbid(unsafe_code)]

pub mod environment;
pub mod error;
pub mod guest;
pub mod lava;
pub mod on;
mod program_files;
pub mod tradefed;

pub use error::FleetError;
