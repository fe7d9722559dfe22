//! Fuzzes raw pages, read by the formats of a real kernel.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::sync::LazyLock;
use trace::file::{Container, Head, TracefsText, Writer};

const FIXTURE: &[u8] = include_bytes!("../../crates/trace/fixtures/binder-c.bptrace");
const PAGE: usize = 512;

/// Everything but pages.
static START: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let fixture = Container::open(Cursor::new(FIXTURE)).expect("a fixture of the crate");
    let head = Head { page_size: PAGE as u32, ..fixture.head().clone() };
    let mut writer = Writer::create(Vec::new(), &head).expect("memory");
    for (group, text) in fixture.formats() {
        writer.format(group, text).expect("memory");
    }
    let header = fixture.text(TracefsText::HeaderPage, 0).expect("in the fixture");
    writer.text(TracefsText::HeaderPage, 0, header).expect("memory");
    writer.finish().expect("memory")
});

fuzz_target!(|bytes: &[u8]| {
    // Behind the end chunk nothing is read, so the pages go before it.
    let mut file = START[..START.len() - 16].to_vec();
    let mut pages = bytes.to_vec();
    pages.resize(bytes.len().next_multiple_of(PAGE), 0);
    for (index, page) in pages.chunks(PAGE).enumerate() {
        let cpu = (index % 2) as u32;
        file.extend_from_slice(&[3_u32.to_le_bytes(), cpu.to_le_bytes()].concat());
        file.extend_from_slice(&(PAGE as u64).to_le_bytes());
        file.extend_from_slice(page);
    }
    let mut reader = trace::open(Cursor::new(file)).expect("the frame is sound");
    let count = reader.by_ref().count();
    assert!(count <= bytes.len() + 8, "{count} events of {} bytes", bytes.len());
});
