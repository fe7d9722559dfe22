//! Fuzzes what a client may send to a broker: it may be let go, and the others go on talking.
#![no_main]

use std::sync::{Mutex, OnceLock, PoisonError};

use embedded::fuzz::protocol::Datagrams;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static STAGE: OnceLock<Mutex<Datagrams>> = OnceLock::new();
    let stage = STAGE.get_or_init(|| Mutex::new(Datagrams::default()));
    stage.lock().unwrap_or_else(PoisonError::into_inner).run(bytes);
});
