//! Fuzzes the reader of `.aidl` files and what is made of them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match aidl::generate_from_text("fuzz.aidl", &text) {
        Ok(rust) => assert!(rust.starts_with("// Made by binderperf-aidl")),
        // Every fault has a place in the text and says what to do.
        Err(error) => {
            let lines = text.lines().count() + 1;
            for fault in error.to_string().lines() {
                let line = fault.strip_prefix("fuzz.aidl:").and_then(|rest| rest.split(':').next());
                let line: usize = line.and_then(|line| line.parse().ok()).expect("a line");
                assert!((1..=lines).contains(&line) && fault.contains("; "), "{fault}");
            }
        }
    }
});
