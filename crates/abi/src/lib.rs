//! Room: abi.
#![forbid(unsafe_code)]
