//! Carrying out a load that is described (crate `workload`).
//! Not here: the description, the scenarios among them (crate `workload`).
//!
//! - [`program`]: the load with numbered calls; [`board`]: memory that all processes share.

mod board;
pub(crate) mod program;
