//! Fuzzes what a client may ask of the broker's rules: two honest ones go on talking.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| embedded::fuzz::protocol::rules(bytes));
