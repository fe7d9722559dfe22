//! Fuzzes what a process may write to its connection: the connection goes on, and calls of it arrive.
#![no_main]

use std::sync::{Mutex, OnceLock, PoisonError};

use embedded::fuzz::commands::Commands;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static STAGE: OnceLock<Mutex<Commands>> = OnceLock::new();
    let stage = STAGE.get_or_init(|| Mutex::new(Commands::default()));
    stage.lock().unwrap_or_else(PoisonError::into_inner).run(bytes);
});
