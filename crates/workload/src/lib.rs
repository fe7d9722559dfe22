//! Descriptions of load: which processes there are, and what their threads do to each other over Binder.
//!
//! - [`description`]: a load as data, a [`Workload`]; [`text`] reads its text form, [`print`](print()) writes it.
//! - [`scenario`]: the loads that are measured, as tables of steps.
//!
//! Not here: carrying it out (`bench`).
#![forbid(unsafe_code)]

pub mod description;
mod print;
pub mod scenario;
pub mod text;

pub use description::Workload;
pub use print::print;
