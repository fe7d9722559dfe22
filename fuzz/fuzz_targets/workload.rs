//! Fuzzes the reader of descriptions of load: what it takes, it writes and takes again; what it refuses has a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match workload::text::parse(&text) {
        Ok(load) => {
            let written = workload::print(&load);
            assert_eq!(workload::text::parse(&written), Ok(load), "{written}");
        }
        Err(error) => assert!((1..=text.lines().count() + 1).contains(&error.line) && !error.why.is_empty()),
    }
});
