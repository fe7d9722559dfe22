//! Fuzzes the reader of programs of `binderperf fuzz`: what is read must be written so that it is read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(programs) = fuzzer::runner::parse_programs(text) {
        let written = fuzzer::runner::programs_text(&programs);
        assert_eq!(fuzzer::runner::parse_programs(&written), Ok(programs));
    }
});
