//! Fuzzes the parser of `format` files, and what it takes from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use trace::file::{Head, TracefsText, Writer};
use trace::raw::Format;

fuzz_target!(|bytes: &[u8]| {
    let Some(format) = Format::parse("sched", bytes) else { return };
    assert!(!format.name.is_empty());
    // An event of that number, whose bytes are the format's own.
    let head =
        Head { clock: "mono".into(), page_size: 4096, cpus: 1, kernel: "fuzz".into(), ..Head::default() };
    let mut writer = Writer::create(Vec::new(), &head).expect("memory");
    writer.format("sched", bytes).expect("memory");
    writer.text(TracefsText::HeaderPage, 0, bytes).expect("memory");
    let mut page = vec![0; 16];
    page.extend_from_slice(&28_u32.to_le_bytes());
    page.extend_from_slice(&format.id.to_le_bytes());
    page.extend_from_slice(&bytes[..bytes.len().min(110)]);
    page.resize(132, 0);
    page[8..12].copy_from_slice(&116_u32.to_le_bytes());
    page.resize(4096, 0);
    writer.pages(0, &page).expect("memory");
    let file = writer.finish().expect("memory");
    let _ = trace::open(Cursor::new(file)).expect("the frame is sound").count();
});
