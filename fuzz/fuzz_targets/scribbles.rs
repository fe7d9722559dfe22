//! Fuzzes what a peer may write into call slots and doorbells, and when: it costs that channel and nothing else.
#![no_main]

use std::sync::{Mutex, OnceLock, PoisonError};

use embedded::fuzz::channel::Scribbles;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static STAGE: OnceLock<Mutex<Scribbles>> = OnceLock::new();
    let stage = STAGE.get_or_init(|| Mutex::new(Scribbles::default()));
    stage.lock().unwrap_or_else(PoisonError::into_inner).run(bytes);
});
