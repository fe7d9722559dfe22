//! Room: kernel traces as one stream of neutral events, whatever wrote them.
//! Not here: recording (the laboratory's), what the events mean for a transaction, anything of an OS.
//! A trace can be read on any machine.

#![forbid(unsafe_code)]

pub mod event;
mod fields;
pub mod file;
mod number;
mod open;
pub mod raw;
pub mod report;
pub mod text;

pub use open::{Reader, open};
