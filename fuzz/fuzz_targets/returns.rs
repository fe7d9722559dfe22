//! Fuzzes the decoder of the driver's return stream: it must end, never panic, and an error must be
//! the last thing it says.
#![no_main]

use abi::Returns;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut failed = false;
    let mut returns = Returns::new(bytes);
    let mut before = 0;
    while let Some(item) = returns.next() {
        assert!(!failed, "something follows an error");
        failed = item.is_err();
        assert!(returns.position() > before && returns.position() <= bytes.len(), "the decoder must advance");
        before = returns.position();
    }
});
