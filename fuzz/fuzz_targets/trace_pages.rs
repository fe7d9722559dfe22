//! Fuzzes raw pages, read by the formats of a real kernel.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::sync::LazyLock;
use trace::file::{Container, Head, Writer};
use trace::raw::RawReader;

const FIXTURE: &[u8] = include_bytes!("../../crates/trace/fixtures/binder-c.bptrace");
const PAGE: usize = 512;

/// The fixture's formats, and a file without them and without pages. Formats are read once: they take far longer than pages.
static START: LazyLock<(RawReader<Cursor<&[u8]>>, Vec<u8>)> = LazyLock::new(|| {
    let fixture = Container::open(Cursor::new(FIXTURE)).expect("a fixture of the crate");
    let head = Head { page_size: PAGE as u32, ..fixture.head().clone() };
    let writer = Writer::create(Vec::new(), &head).expect("memory");
    (RawReader::new(fixture), writer.finish().expect("memory"))
});

fuzz_target!(|bytes: &[u8]| {
    // Behind the end chunk nothing is read, so the pages go before it.
    let (formats, start) = &*START;
    let mut file = start[..start.len() - 16].to_vec();
    let mut pages = bytes.to_vec();
    pages.resize(bytes.len().next_multiple_of(PAGE), 0);
    for (index, page) in pages.chunks(PAGE).enumerate() {
        let cpu = (index % 2) as u32;
        file.extend_from_slice(&[3_u32.to_le_bytes(), cpu.to_le_bytes()].concat());
        file.extend_from_slice(&(PAGE as u64).to_le_bytes());
        file.extend_from_slice(page);
    }
    let file = Container::open(Cursor::new(file)).expect("the frame is sound");
    let mut reader = RawReader::with_formats_of(file, formats);
    let count = reader.by_ref().count();
    assert!(count <= bytes.len() + 8, "{count} events of {} bytes", bytes.len());
});
