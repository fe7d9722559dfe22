//! Damaged, cut and foreign files: an error or a stated partial result, never a panic.

use std::io::Cursor;

use super::{bundle, new, read, times, trace, waking};
use crate::report::ProblemKind;

const MARKER: [u8; 16] = *b"\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79";

#[test]
fn a_file_that_breaks_off_gives_what_is_there_and_says_so() {
    let whole = trace(&[bundle(0, &[waking(10, 1)]), bundle(0, &[waking(20, 1)])]);
    let (events, report) = read(&whole[..whole.len() - 3]);
    assert_eq!(times(&events), [(10, 0)]);
    assert_eq!(report.problems[0].kind, ProblemKind::Truncated);
}

#[test]
fn a_file_without_its_beginning_is_read_from_the_first_marker_on() {
    let marker = new().number(3, 0).bytes(36, MARKER);
    let whole = trace(&[bundle(0, &[waking(10, 1)]), marker, bundle(0, &[waking(20, 1)])]);
    let (events, report) = read(&whole[5..]);
    assert_eq!(times(&events), [(20, 0)]);
    assert_eq!(report.problems[0].kind, ProblemKind::Corrupt);
}

#[test]
fn a_packet_that_claims_four_gigabytes_is_not_believed() {
    let mut file = trace(&[bundle(0, &[waking(10, 1)])]);
    file.extend_from_slice(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3]);
    let (events, report) = read(&file);
    assert_eq!(times(&events), [(10, 0)]);
    assert!(report.to_string().contains("says 4294967295 bytes, 9 are left"), "{report}");
}

#[test]
fn foreign_protobuf_is_refused() {
    // A profile of pprof: field 1 is a message of two numbers.
    let profile = new().bytes(1, new().number(1, 1).number(2, 2)).bytes(2, new().number(1, 3)).bytes(6, "x");
    for foreign in [profile.as_ref(), b"\x0a\x05hello\x12\x00", &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        assert!(crate::open(Cursor::new(foreign)).is_err(), "{foreign:?}");
    }
}

#[test]
fn a_clock_that_jumps_is_said_and_thread_ids_are_many() {
    let (_, report) = read(&trace(&[bundle(0, &[waking(1 << 60, 1), waking(10, 1)])]));
    assert_eq!(report.problems[0].kind, ProblemKind::ClockBackwards);
    let processes = (1..=10_000).fold(new(), |tree, pid| tree.bytes(1, new().number(1, pid)));
    let tree = new().bytes(2, processes).number(10, 2);
    let (events, report) = read(&trace(&[tree, bundle(0, &[waking(10, 9_999)])]));
    assert_eq!((events[0].tgid, report.is_whole()), (Some(9_999), true));
}

/// Every damage of some bytes of a real file, and every cut, ends in a report.
#[test]
fn no_damage_makes_it_panic_or_hang() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/binder-c.txt");
    let text = std::fs::read(path).expect("a fixture");
    let mut reader = crate::open(Cursor::new(&text)).expect("a trace");
    let mut file = Vec::new();
    let mut exporter = crate::perfetto::Exporter::new(&mut file, None);
    while let Some(event) = reader.next() {
        exporter.event(&event, reader.names());
    }
    exporter.finish().expect("memory takes all");
    let mut random = fastrand::Rng::with_seed(21);
    for _ in 0..300 {
        let mut damaged = file.clone();
        for _ in 0..random.usize(1..20) {
            let at = random.usize(..damaged.len());
            damaged[at] = random.u8(..);
        }
        damaged.truncate(random.usize(damaged.len() / 2..=damaged.len()));
        let Ok(mut reader) = crate::open(Cursor::new(&damaged)) else { continue };
        let events = reader.by_ref().filter(|event| !matches!(event.kind, crate::event::Kind::Lost { .. }));
        let count = events.count() as u64;
        assert!(count <= damaged.len() as u64);
        assert_eq!(reader.report().events, count);
    }
}
