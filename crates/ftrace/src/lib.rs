//! Control of the kernel's tracing (tracefs): start, record, stop at a deadline miss, restore.
//!
//! - [`tracefs`]: the mount point, trace buffers and their files.
//! - [`instances`]: private trace buffers, whose they are, and those that killed recorders left.
//! - [`switch`]: stops tracing at a miss.
//! - [`categories`]: named groups of events, and which of them this kernel has.
//! - [`changes`]: former values of changed tracefs files, so that they can be restored even after a crash.
//! - [`process`]: whether the process that changed them still runs.
//! - [`atrace`]: recording in the shared (global) buffer, compatible with Android's `atrace`.
//! - [`record`]: recording in a private trace instance, into a file.
//! - [`perfetto`]: the same events as a configuration of Perfetto's recorder.
//! - [`marker`]: binderperf's own events in the trace: the next call of a test, and misses.
//!
//! Not here: analysis of a trace (crate `trace`).
#![forbid(unsafe_code)]

pub mod atrace;
pub mod categories;
pub mod changes;
#[cfg(test)]
mod fixtures;
pub mod instances;
pub mod marker;
pub mod perfetto;
pub mod process;
pub mod record;
pub mod restore;
pub mod switch;
pub mod tracefs;

pub use sys::stop_signal::{catch as catch_stops, received as stop_asked};
