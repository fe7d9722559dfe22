//! Descriptions of load: which processes there are, and what their threads do to each other over Binder.
//!
//! - [`description`]: a load as data, a [`Workload`].
//!
//! Not here: carrying it out (`bench`).
#![forbid(unsafe_code)]

pub mod description;

pub use description::Workload;
