//! Room: driver.
#![forbid(unsafe_code)]
