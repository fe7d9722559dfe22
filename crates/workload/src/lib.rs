//! Descriptions of load: which processes there are, and what their threads do to each other over Binder.
//!
//! - [`description`]: a load as data, a [`Workload`]; [`text`] reads its text form, [`print`](print()) writes it.
//! - [`scenario`]: the loads that are measured, as tables of steps.
//! - [`Recorder`]: what a trace holds of a load, a [`Recording`]; [`from_trace`] makes a description of it.
//! - [`figures`] of a recording, and the [`distance`] of a replay from its original.
//!
//! Not here: carrying it out (`bench`), reading traces (`trace`).
#![forbid(unsafe_code)]

pub mod description;
pub mod distance;
pub mod figures;
#[cfg(test)]
mod fixtures;
pub mod from_trace;
mod print;
pub mod recording;
pub mod scenario;
pub mod text;

pub use description::Workload;
pub use print::print;
pub use recording::{Recorder, Recording};

/// Whether a text is a name of a process: letters, digits, `.`, `_` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}
