//! Fuzzes opening a trace of any form and reading it to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = match trace::open(Cursor::new(bytes)) {
        Ok(reader) => reader,
        Err(error) => return drop(error.to_string()),
    };
    let mut events = 0_u64;
    while let Some(event) = reader.next() {
        let _ = reader.names().text(event.comm);
        events += u64::from(!matches!(event.kind, trace::event::Kind::Lost { .. }));
    }
    assert_eq!(reader.report().events, events);
    let _ = reader.report().to_string();
});
