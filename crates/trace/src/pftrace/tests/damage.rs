//! Damaged, cut and foreign files: an error or a stated partial result, never a panic.

use std::io::{Cursor, Write};

use super::{bundle, new, read, times, trace, waking};
use crate::report::{ProblemKind, Report};

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

#[test]
fn a_thread_id_that_is_used_again_has_the_process_of_its_time() {
    let tree = |ts, process| {
        let thread = new().number(1, 7).bytes(2, "worker").number(3, process);
        new().bytes(2, new().bytes(2, thread)).number(8, ts).number(10, 2)
    };
    let (events, report) =
        read(&trace(&[tree(5, 4), bundle(0, &[waking(10, 7)]), tree(100, 9), bundle(0, &[waking(110, 7)])]));
    let told: Vec<_> = events.iter().map(|event| (event.ts, event.tgid)).collect();
    assert_eq!((told, report.is_whole()), (vec![(10, Some(4)), (110, Some(9))], true));
}

#[test]
fn a_clock_that_was_set_back_costs_no_event() {
    let snapshot = |boot, mono| {
        let clock = |id, ts| new().number(1, id).number(2, ts);
        new().bytes(6, new().bytes(1, clock(6, boot)).bytes(1, clock(3, mono)))
    };
    let of_mono = |ts| new().bytes(1, new().number(1, 0).bytes(2, waking(ts, 1)).number(5, 3)).number(10, 1);
    // The monotonic clock of the second snapshot is behind that of the first.
    let (events, _) = read(&trace(&[snapshot(1000, 500), of_mono(510), snapshot(2000, 100), of_mono(110)]));
    assert_eq!(times(&events).len(), 2);
    let (_, report) = read(&trace(&[snapshot(u64::MAX, 1), snapshot(1, u64::MAX), of_mono(5), of_mono(1)]));
    assert_eq!(report.events, 2, "a forged clock costs no event: {report}");
}

#[test]
fn encrypted_bytes_are_refused_as_a_file_and_stepped_over_as_a_packet() {
    let mut random = fastrand::Rng::with_seed(5);
    let secret: Vec<u8> = (0..5000).map(|_| random.u8(..)).collect();
    for begin in 0..64 {
        assert!(crate::open(Cursor::new(&secret[begin..])).is_err(), "{begin}");
    }
    let mut file = trace(&[bundle(0, &[waking(10, 1)])]);
    file.extend_from_slice(&new().bytes(1, &secret).0);
    file.extend_from_slice(&trace(&[bundle(0, &[waking(20, 1)])]));
    let (events, report) = read(&file);
    assert_eq!((times(&events), report.problems[0].kind), (vec![(10, 0), (20, 0)], ProblemKind::Corrupt));
}

#[test]
fn a_packet_that_unpacks_to_very_much_is_left_out() {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    (0..64).for_each(|_| packer.write_all(&[0; 1 << 20]).expect("memory"));
    let packed = packer.finish().expect("memory");
    assert!(packed.len() < 1 << 17);
    let file = trace(&[bundle(0, &[waking(10, 1)]), new().bytes(50, &packed), bundle(0, &[waking(20, 1)])]);
    let (events, report) = read(&file);
    assert_eq!(times(&events), [(10, 0), (20, 0)]);
    assert!(report.to_string().contains("more than 16 MB") && report.gaps == 1, "{report}");
}

/// A recording of Perfetto itself.
fn recorded(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/perfetto").join(name);
    std::fs::read(path).expect("a fixture")
}

#[test]
fn a_recording_cut_at_either_end_gives_what_is_left() {
    let whole = recorded("c-throughput-binder.pftrace");
    let all = times(&read(&whole).0).len();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..40 {
        let (begin, end) = (random.usize(..whole.len() / 2), random.usize(whole.len() / 2..whole.len()));
        for part in [&whole[..end], &whole[begin..], &whole[begin..end]] {
            let Ok(mut reader) = crate::open(Cursor::new(part)) else { continue };
            let events: Vec<_> = reader.by_ref().collect();
            let told = times(&events);
            assert!(told.len() <= all && told.is_sorted_by_key(|(ts, _)| *ts));
            // A cut between two packets cannot be seen.
            assert!(told.len() == all || reader.report() != &Report::default(), "{begin}..{end}");
        }
    }
}

#[test]
fn recordings_joined_into_one_file_have_the_events_of_both() {
    let (one, other) = (recorded("c-throughput-binder.pftrace"), recorded("c-latency-binder.pftrace"));
    let count = |file: &[u8]| read(file).1.events;
    let (events, report) = read(&[one.clone(), other.clone()].concat());
    assert_eq!(report.events, count(&one) + count(&other));
    assert!(times(&events).is_sorted_by_key(|(ts, _)| *ts), "in the order of times");
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

#[test]
fn bundles_too_large_to_be_open_together_are_left_out_and_said() {
    // Shrinks to a fortieth or so: what shrinks more is refused as a bomb.
    let mut random = fastrand::Rng::with_seed(5);
    let padding: Vec<u8> = (0..15 << 20).map(|at| if at % 48 == 0 { random.u8(..) } else { 0 }).collect();
    let packet = |cpu: u64| {
        let events = new().number(1, cpu).bytes(2, waking(10 + cpu, 1)).bytes(15, &padding);
        let packet = new().bytes(1, new().bytes(1, events).number(10, 1));
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(packet.as_ref()).expect("memory");
        new().bytes(50, packer.finish().expect("memory"))
    };
    let file = trace(&(0..20).map(packet).collect::<Vec<_>>());
    let (events, report) = read(&file);
    let kept = times(&events).len();
    assert!((10..20).contains(&kept), "{kept} of 20");
    assert_eq!(report.gaps, 20 - kept as u64);
    assert!(report.to_string().contains("too large to be of a recorder"), "{report}");
}

#[test]
fn an_event_without_a_time_has_that_of_the_one_before() {
    let (events, report) = read(&trace(&[bundle(0, &[waking(10, 1), waking(0, 1), waking(20, 1)])]));
    assert_eq!(times(&events), [(10, 0), (10, 0), (20, 0)]);
    assert!(report.problems.is_empty(), "{report}");
}
