//! Room: ipc.
#![forbid(unsafe_code)]
