//! Parts of a context that other programs need.
//!
//! - [`manager`]: a service manager in the foreground; [`services`]: questions to one.
//! - [`shim`]: an unmodified program on the embedded driver.
//!
//! Not here: the managers' own work (`ipc`), what becomes of a program's calls (crates `preload` and `supervise`).
#![forbid(unsafe_code)]

pub mod manager;
pub mod services;
pub mod shim;
