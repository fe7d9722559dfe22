//! Room: lab.
#![forbid(unsafe_code)]
