//! Room: kernel traces as one stream of neutral events, whatever wrote them, and what they say about
//! transactions.
//! Not here: recording (the laboratory's), anything of an OS. A trace can be read on any machine.

#![forbid(unsafe_code)]

pub mod cause;
pub mod event;
mod fields;
pub mod file;
pub mod model;
mod number;
mod open;
pub mod perfetto;
pub mod picture;
pub mod raw;
pub mod report;
pub mod text;
pub mod verdict;

pub use file::OpenError;
pub use open::{Reader, open};
