//! Carrying out a load that is described (crate `workload`): by one process that measures, or for its own sake.
//! Not here: the description, the scenarios among them (crate `workload`).
//!
//! - [`program`]: the load with numbered calls; [`board`]: memory that all processes share.
//! - [`role`]: one process; [`place`]: it in its context; [`actor`]: the steps of its threads; [`service`]: calls that come to it.
//! - [`group`]: starting and ending processes; [`conductor`]: the one that measures; [`replay`]: a load for its own sake.

mod actor;
mod board;
pub(crate) mod conductor;
pub(crate) mod group;
mod place;
pub(crate) mod program;
mod replay;
pub(crate) mod role;
mod service;

pub use replay::{WorkloadOptions, execute};
