//! Room: lab.
#![forbid(unsafe_code)]

pub mod vm;
