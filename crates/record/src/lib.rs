//! Room: record.
#![forbid(unsafe_code)]
