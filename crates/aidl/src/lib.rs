//! Rust from `.aidl` files, in build scripts: calls of the macros of the crate `binder`.
//!
//! `build.rs`, with `binderperf-aidl` among the `[build-dependencies]`:
//!
//! ```no_run
//! fn main() -> Result<(), binderperf_aidl::Error> {
//!     binderperf_aidl::Build::new().include("aidl").file("aidl/example/IEcho.aidl").write("echo.rs")
//! }
//! ```
//!
//! The program, where `binder` is the name of the dependency `binderperf-binder`:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/echo.rs"));
//! use example::IEcho;
//! ```
//!
//! Packages are modules. An interface is a module of the same name with `Service`, `Served` and `Client`; methods and fields are in
//! snake case; types inside a type `Name` are in the module `name` next to it. Every type has AIDL's layout: services and clients of
//! other languages understand it. An enum's default is 0, which need not be a member. What AIDL has and Rust cannot have is refused
//! with its place and what to do; a value has at most 16 KiB outside of vectors and boxes.
//!
//! Not here: what the macros make of it (`binder`).
#![forbid(unsafe_code)]

mod build;
mod constants;
mod emit;
mod error;
mod layout;
mod names;
mod notes;
mod parse;
mod program;
mod scan;
mod tree;
mod types;
mod values;

pub use build::{Build, generate_from_text};
pub use error::Error;
