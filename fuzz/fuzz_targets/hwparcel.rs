//! Fuzzes the reader of HIDL's parcels, whose objects and buffers arrive from processes that nobody
//! vouches for: each input says what to write, how to spoil it, and what to read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ipc::hwbinder::fuzz::run(bytes));
