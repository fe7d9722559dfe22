//! Worker processes: copies of the running program that it starts, leads through steps and watches.
//! Not here: what workers do (each crate's own roles).
//!
//! - [`role`]: the hidden command, and the roles that a program registers for it.
//! - [`process`]: one worker process: start, readiness, exit status. It dies with the thread that started it.
//! - [`block`]: the memory that the workers of a group share: steps, progress, samples.
//! - [`group`]: workers that go through common steps; which one broke, and why.
//! - [`watchdog`]: a thread that kills workers when their conversation makes no progress.
#![forbid(unsafe_code)]

pub mod block;
mod cause;
pub mod group;
pub mod process;
pub mod role;
pub mod watchdog;

pub use block::{BlockLayout, SharedBlock, SlotAddress, SlotTotals, WorkerSlot};
pub use group::{Member, Onlooker, ProcessGroup, READY, SERVING, WorkerError};
pub use process::{OWN_PROGRAM, OnEnd, Streams, WorkerProcess, sacrifice_workers};
pub use role::{COMMAND, Role, RoleEntry};
pub use watchdog::{Watchdog, Watched};
