//! Tests of the trace file: round trip, and recovery from a truncated or damaged file.

use super::*;
use crate::report::ProblemKind;
use std::io::Cursor;

fn head() -> Head {
    Head { clock: "mono".into(), page_size: 8, cpus: 2, kernel: "6.1-test".into(), ..Head::default() }
}

fn sample(end: bool) -> Vec<u8> {
    let mut writer = Writer::create(Vec::new(), &head()).expect("written");
    writer.format("sched", b"name: sched_switch\nID: 7\n").expect("written");
    writer.pages(1, b"11111111").expect("written");
    writer.pages(0, b"aaaaaaaabbbbbbbb").expect("written");
    writer.pages(1, b"22222222").expect("written");
    writer.text(TracefsText::SavedCmdlines, 0, b"1 init\n").expect("written");
    writer.text(TracefsText::Stats, 1, b"entries: 5\n").expect("written");
    if end { writer.finish().expect("written") } else { writer.out_for_test() }
}

fn pages(container: &mut Container<Cursor<Vec<u8>>>, cpu: u32) -> Vec<u8> {
    let (mut all, mut space) = (Vec::new(), Vec::new());
    loop {
        container.read_pages(cpu, &mut space, 8).expect("read");
        if space.is_empty() {
            return all;
        }
        all.extend_from_slice(&space);
    }
}

#[test]
fn what_was_written_comes_back() {
    let mut file = Container::open(Cursor::new(sample(true))).expect("opened");
    assert!(file.report().is_whole());
    assert_eq!(file.head(), &head());
    assert_eq!(file.formats().collect::<Vec<_>>(), [("sched", b"name: sched_switch\nID: 7\n".as_slice())]);
    assert_eq!(file.cpus().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(pages(&mut file, 0), b"aaaaaaaabbbbbbbb");
    assert_eq!(pages(&mut file, 1), b"1111111122222222");
    assert_eq!(pages(&mut file, 7), b"");
    assert_eq!(file.text(TracefsText::SavedCmdlines, 9), Some(b"1 init\n".as_slice()));
    assert_eq!(file.text(TracefsText::Stats, 1), Some(b"entries: 5\n".as_slice()));
    assert_eq!(file.text(TracefsText::Stats, 0), None);
    assert_eq!(file.cpus_with(TracefsText::Stats).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_recording_that_was_not_ended_is_read_and_said_to_be_partial() {
    let mut file = Container::open(Cursor::new(sample(false))).expect("opened");
    assert_eq!(file.report().problems[0].kind, ProblemKind::Truncated);
    assert_eq!(pages(&mut file, 1), b"1111111122222222");
}

#[test]
fn a_file_cut_anywhere_gives_what_is_there() {
    let whole = sample(true);
    let mut opened = 0;
    for length in 0..whole.len() {
        let Ok(mut file) = Container::open(Cursor::new(whole[..length].to_vec())) else { continue };
        opened += 1;
        assert!(!file.report().is_whole(), "{length} bytes of {}", whole.len());
        assert!(b"aaaaaaaabbbbbbbb".starts_with(&pages(&mut file, 0)));
        assert!(b"1111111122222222".starts_with(&pages(&mut file, 1)));
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let mut newer = sample(true);
    newer[8] = 9;
    let no_head = [MAGIC.as_slice(), &1_u32.to_le_bytes()].concat();
    let mut bad_size = Writer::create(Vec::new(), &Head { page_size: u32::MAX, ..head() }).expect("written");
    bad_size.text(TracefsText::Symbols, 0, b"").expect("written");
    for (bytes, want) in [
        (Vec::new(), "empty"),
        (b"PK".to_vec(), "too short"),
        (b"# tracer: nop, entries".to_vec(), "does not begin as one"),
        (newer, "version 9"),
        (no_head, "no head"),
        (bad_size.finish().expect("written"), "page_size=4294967295"),
    ] {
        let error = Container::open(Cursor::new(bytes)).expect_err(want).to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn a_chunk_of_a_later_version_is_skipped_and_said() {
    let mut bytes = sample(false);
    bytes.extend_from_slice(&99_u32.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    bytes.extend_from_slice(&KIND_END.to_le_bytes());
    bytes.extend_from_slice(&[0; 12]);
    let file = Container::open(Cursor::new(bytes)).expect("opened");
    assert_eq!(file.report().problems.len(), 1, "{}", file.report());
    assert!(file.report().to_string().contains("unknown kind 99"));
}

#[test]
fn a_chunk_of_any_length_is_a_trace_that_breaks_off() {
    for length in [4_u64, 1 << 40, i64::MAX as u64, u64::MAX - 15, u64::MAX] {
        for kind in [KIND_FORMAT, KIND_PAGES, KIND_END, 99] {
            let mut bytes = sample(false);
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(b"abc");
            let file = Container::open(Cursor::new(bytes)).expect("what is before it is sound");
            assert!(file.report().to_string().contains("breaks off"), "{kind} {length}: {}", file.report());
        }
    }
}

#[test]
fn half_pages_are_refused_when_written() {
    let mut writer = Writer::create(Vec::new(), &head()).expect("written");
    assert!(writer.pages(0, b"abc").is_err());
    assert!(Writer::create(Vec::new(), &Head { page_size: 0, ..head() }).is_err());
}
