//! Room: the kernel's tracing, switched on, read out and put back.
//!
//! - [`tracefs`]: where it is, its buffers and their knobs; [`size`]: how large those may be; [`switch`]: off at
//!   the moment of a miss.
//! - [`categories`]: which events belong together, and which of them this kernel has.
//! - [`changes`]: what was changed, so that it can be put back, also by another process after a crash; [`process`]:
//!   whether that crashed.
//! - [`atrace`]: a recording in the buffer that everybody shares, as Android's `atrace` makes it.
//! - [`record`]: a recording in a buffer of its own, into a file.
//! - [`accuracy`]: whether known causes are named by the analysis; [`overhead`]: what recording costs a call.
//! - `stamp`: marks of our own among the events: which call of a test comes next, and which missed.
//!
//! Not here: what a trace means.

pub mod accuracy;
pub mod atrace;
pub mod categories;
pub mod changes;
pub mod overhead;
pub mod process;
pub mod record;
pub mod size;
pub(crate) mod stamp;
pub mod switch;
pub mod tracefs;

pub use sys::stop_signal::{catch as catch_stops, received as stop_asked};
