//! Tests of made `trace.dat` files: instances, and files that claim more than they have.
//! Not here: files of trace-cmd itself (`tests/trace_cmd.rs`).

use super::*;
use std::io::{Cursor, Write};

const PAGE: u32 = 4096;

/// Bytes of a file of version 6 or 7 up to its page size.
fn head(version: &str) -> Vec<u8> {
    [&DAT_MAGIC[..], version.as_bytes(), b"\0\0\x08", &PAGE.to_le_bytes()].concat()
}

fn option(number: u16, data: &[u8]) -> Vec<u8> {
    [&number.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat()
}

fn section(flags: u16, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u64;
    [&[0; 2][..], &flags.to_le_bytes(), &[0; 4], &length.to_le_bytes(), content].concat()
}

/// Start of the sections of [`version_7`].
const SECTIONS: u64 = 33;

/// File of version 7: sections, then options.
fn version_7(sections: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
    let head = [head("7"), b"zlib\x001\0".to_vec()].concat();
    let at = (head.len() + 8 + sections.len()) as u64;
    assert_eq!(SECTIONS, at - sections.len() as u64);
    let options = section(0, &[options.concat(), option(0, &[0; 8])].concat());
    [head, at.to_le_bytes().to_vec(), sections.to_vec(), options].concat()
}

/// Option of a buffer in the section `at`, whose CPUs' pages are there.
fn buffer(at: u64, name: &str, cpus: &[(u64, u64)]) -> Vec<u8> {
    let mut data = [&at.to_le_bytes()[..], name.as_bytes(), b"\0mono\0", &PAGE.to_le_bytes()].concat();
    data.extend((cpus.len() as u32).to_le_bytes());
    for (cpu, (at, length)) in cpus.iter().enumerate() {
        data.extend((cpu as u32).to_le_bytes());
        data.extend([at.to_le_bytes(), length.to_le_bytes()].concat());
    }
    option(BUFFER, &data)
}

fn open(file: Vec<u8>) -> Result<Container<Cursor<Vec<u8>>>, OpenError> {
    Container::open_trace_dat(Cursor::new(file))
}

#[test]
fn buffers_of_instances_are_left_out_and_said() {
    let pages = section(0, &[0; PAGE as usize]);
    let there = [(SECTIONS + 16, u64::from(PAGE))];
    let (main, empty) = (buffer(SECTIONS, "", &there), buffer(SECTIONS, "", &[(SECTIONS + 16, 0)]));
    let instance = buffer(SECTIONS, "mine", &there);
    for (options, cpus) in [
        ([main.clone(), instance.clone()], 1),
        ([instance.clone(), main], 1),
        ([empty, instance.clone()], 0),
        ([instance.clone(), instance], 0),
    ] {
        let file = open(version_7(&pages, &options)).expect("opened");
        assert_eq!(file.cpus().count(), cpus);
        assert!(file.report().to_string().contains("the instance mine is left out"), "{}", file.report());
    }
    let texts =
        [&b"header_page\0"[..], &[0; 8], b"header_event\0", &[0; 8], &[0; 16], &[0; 8], &[1, 0, 0, 0]];
    let options = [&b"options  \0"[..], &option(BUFFER, b"\x10\0\0\0\0\0\0\0mine\0"), &[0; 2]];
    let file = [head("6"), texts.concat(), options.concat(), b"flyrecord\0".to_vec(), vec![0; 16]].concat();
    let file = open(file).expect("opened");
    assert!(file.report().to_string().contains("the instance mine is left out"), "{}", file.report());
}

#[test]
fn sections_that_unpack_to_very_much_are_refused() {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&[0; 1 << 20]).expect("memory");
    let packed = packer.finish().expect("memory");
    let commands = option(COMMANDS, &SECTIONS.to_le_bytes());
    for (full, times) in [(u32::MAX, 1), (1 << 20, 200)] {
        let content = [&(packed.len() as u32).to_le_bytes()[..], &full.to_le_bytes(), &packed].concat();
        let error = open(version_7(&section(1, &content), &vec![commands.clone(); times])).expect_err("much");
        assert!(error.to_string().contains("more than 128 MB"), "{error}");
    }
    // A group's long name, which each of its formats would have again.
    let formats = [&1_u32.to_le_bytes()[..], &[b'g'; 1000], b"\0", &9_u32.to_le_bytes(), &[0; 72]].concat();
    let events = option(EVENTS, &SECTIONS.to_le_bytes());
    assert!(open(version_7(&section(0, &formats), &[events])).is_err());
}

#[test]
fn cpus_that_claim_the_same_pages_or_very_large_ones_are_left_out() {
    let piece = |short: u32, full: u32| [short.to_le_bytes(), full.to_le_bytes()].concat();
    let pieces = [1000_u32.to_le_bytes().to_vec(), piece(0, PAGE).repeat(1000)].concat();
    let same = vec![(SECTIONS + 16, pieces.len() as u64); 1000];
    let file = open(version_7(&section(1, &pieces), &[buffer(SECTIONS, "", &same)])).expect("opened");
    assert!(file.cpus().count() < 10, "{}", file.cpus().count());
    assert!(file.report().to_string().contains("are those of others"), "{}", file.report());
    // Pages that are not compressed.
    let same = vec![(SECTIONS + 16, 10 * u64::from(PAGE)); 1000];
    let pages = section(0, &[0; 10 * PAGE as usize]);
    let file = open(version_7(&pages, &[buffer(SECTIONS, "", &same)])).expect("opened");
    assert_eq!(file.cpus().count(), 1);
    // A piece of 64 MB for each CPU.
    let pieces = [1_u32.to_le_bytes().to_vec(), piece(0, 64 << 20)].concat();
    let each: Vec<_> = (0..1000).map(|cpu| (SECTIONS + 16 + 12 * cpu, 12)).collect();
    let file = version_7(&section(1, &pieces.repeat(1000)), &[buffer(SECTIONS, "", &each)]);
    let file = open(file).expect("opened");
    assert_eq!(file.cpus().count(), 8);
    assert!(file.report().to_string().contains("too many or too large"), "{}", file.report());
}
