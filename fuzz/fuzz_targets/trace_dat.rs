//! Fuzzes the reader of trace-cmd's `trace.dat`: everything behind the magic number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use trace::event::Kind;

fuzz_target!(|bytes: &[u8]| {
    let file = [b"\x17\x08\x44tracing".as_slice(), bytes].concat();
    let mut reader = match trace::open(Cursor::new(file)) {
        Ok(reader) => reader,
        Err(error) => return drop(error.to_string()),
    };
    let mut events = 0_u64;
    while let Some(event) = reader.next() {
        let _ = reader.names().text(event.comm);
        events += u64::from(!matches!(event.kind, Kind::Lost { .. }));
    }
    assert_eq!(reader.report().events, events);
    let _ = reader.report().to_string();
});
