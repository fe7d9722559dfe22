//! Fuzzes the decoders of records, and the ring that they come in.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| embedded::fuzz::records::run(bytes));
