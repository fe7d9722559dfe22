//! Fuzzes the reader of ftrace's text, plain and within HTML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::text::TextReader;

fuzz_target!(|bytes: &[u8]| {
    for html in [false, true] {
        let mut reader = TextReader::new(bytes, html);
        while let Some(event) = reader.next() {
            if let trace::event::Kind::Print(text) = &event.kind {
                let _ = trace::event::Mark::parse(text);
            }
            let _ = reader.names().text(event.comm);
        }
        let _ = reader.report().to_string();
    }
});
