//! Carrying out a load that is described (crate `workload`): its processes, and the one that measures.
//! Not here: the description, the scenarios among them (crate `workload`); a load for its own sake (`crate::replay`).
//!
//! - [`program`]: the load with numbered calls; [`board`]: memory that all processes share.
//! - [`role`]: one process; [`place`]: it in its context; [`actor`]: the steps of its threads; [`service`]: calls that come to it.
//! - [`group`]: starting and ending processes; [`conductor`]: the one that measures.

mod actor;
mod board;
pub(crate) mod conductor;
pub(crate) mod group;
pub(crate) mod place;
pub(crate) mod program;
pub(crate) mod role;
mod service;
