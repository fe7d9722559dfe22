//! Fuzzes the reader of Perfetto's traces: a packet of a ring of events, and bytes behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use trace::event::Kind;

fuzz_target!(|bytes: &[u8]| {
    // A first packet by which the file is known: `trusted_uid` of 0.
    let file = [b"\x0a\x02\x18\x00", bytes].concat();
    let mut reader = trace::open(Cursor::new(file)).expect("a trace of Perfetto");
    let mut events = 0_u64;
    while let Some(event) = reader.next() {
        let _ = reader.names().text(event.comm);
        events += u64::from(!matches!(event.kind, Kind::Lost { .. }));
    }
    assert_eq!(reader.report().events, events);
    assert!(events <= bytes.len() as u64 * 1100, "{events} events of {} bytes", bytes.len());
    let _ = reader.report().to_string();
});
