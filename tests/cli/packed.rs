//! Packed traces: what gzip or zip packed is analysed as what is inside, and a cut file names its packing.
//! Not here: which packings and archives there are (`crates/trace/src/unpack.rs`).

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use crate::support::{Called, Folder, binderperf, fixture};

/// A recording of Perfetto's with calls, and the kernel's text of calls.
const TRACES: [&str; 2] = ["perfetto/c-embedded.pftrace", "binder-c.txt"];

fn content(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).expect("a fixture")
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(content).expect("memory");
    packer.finish().expect("memory")
}

/// An archive of one file.
/// Facts: APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16.
fn zipped(name: &str, content: &[u8]) -> Vec<u8> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
    packer.write_all(content).expect("memory");
    let packed = packer.finish().expect("memory");
    let mut sum = flate2::Crc::new();
    sum.update(content);
    let size = |length: usize| u32::try_from(length).expect("small").to_le_bytes();
    // Version, flags, deflate, no time; checksum, sizes; length of the name, nothing extra.
    let common = [
        b"\x14\0\0\0\x08\0\0\0\0\0".as_slice(),
        &sum.sum().to_le_bytes(),
        &size(packed.len()),
        &size(content.len()),
        &u16::try_from(name.len()).expect("short").to_le_bytes(),
        b"\0\0",
    ]
    .concat();
    let file = [b"PK\x03\x04".as_slice(), &common, name.as_bytes(), &packed].concat();
    let table = [b"PK\x01\x02\x14\0".as_slice(), &common, &[0; 14], name.as_bytes()].concat();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &size(table.len()), &size(file.len()), b"\0\0"];
    [file, table, end.concat()].concat()
}

fn analysed(folder: &Folder, name: &str, bytes: &[u8]) -> Called {
    let path = folder.path(name);
    std::fs::write(&path, bytes).expect("a folder of one's own");
    binderperf(&["trace", "analyze", &path])
}

#[test]
fn packed_traces_are_analysed_as_what_is_inside() {
    let folder = Folder::new("packed");
    for trace in TRACES {
        let plain = binderperf(&["trace", "analyze", &fixture(trace)]).ended(0);
        plain.printed(" calls");
        let bytes = content(trace);
        let (_, name) = trace.rsplit_once('/').unwrap_or(("", trace));
        for (packed_name, packed) in [
            (format!("{name}.gz"), gzipped(&bytes)),
            // The name does not count.
            (name.to_owned(), gzipped(&bytes)),
            (format!("{name}.zip"), zipped(name, &bytes)),
            (
                "bugreport.zip".to_owned(),
                zipped("FS/data/misc/perfetto-traces/bugreport/systrace.pftrace", &bytes),
            ),
            ("twice.zip".to_owned(), zipped(&format!("{name}.gz"), &gzipped(&bytes))),
        ] {
            let packed = analysed(&folder, &packed_name, &packed).ended(0);
            assert_eq!(packed.stdout, plain.stdout, "{packed_name} of {trace}");
        }
    }
}

#[test]
fn a_packed_trace_that_breaks_off_names_its_packing() {
    let folder = Folder::new("packed-cut");
    for trace in TRACES {
        let bytes = content(trace);
        let packed = gzipped(&bytes);
        for length in [2, 5, 12, 30] {
            let cut = analysed(&folder, "cut.gz", &packed[..length]).ended(2);
            cut.printed_nothing();
            cut.complained("cut.gz: the trace cannot be read: the file that gzip packed breaks off");
            assert!(!cut.stderr.contains("it is text"), "{cut}");
            binderperf(&["explain", &folder.path("cut.gz")])
                .ended(2)
                .complained("the file that gzip packed breaks off");
        }
        // What came before is analysed.
        let half = analysed(&folder, "half.gz", &packed[..packed.len() / 2]).ended(0);
        half.printed("WARNING: the trace ").printed("the file that gzip packed breaks off").printed(" calls");
        let mut damaged = packed.clone();
        damaged.truncate(packed.len() - 8);
        damaged.extend([0; 8]);
        analysed(&folder, "damaged.gz", &damaged).printed("the file that gzip packed is damaged");
        let archive = zipped(trace, &bytes);
        for length in [30, archive.len() / 2, archive.len() - 4] {
            let cut = analysed(&folder, "cut.zip", &archive[..length]).ended(2);
            cut.complained("it is a zip archive that breaks off");
        }
    }
}

#[test]
fn what_holds_no_trace_is_no_broken_packing() {
    let folder = Folder::new("packed-none");
    analysed(&folder, "empty.gz", &gzipped(b"")).ended(2).complained("the trace is empty");
    let text = analysed(&folder, "text.gz", &gzipped(b"hello\n")).ended(2);
    text.complained("it is text, but none of its first lines is an event");
    assert!(!text.stderr.contains("breaks off"), "{text}");
}
