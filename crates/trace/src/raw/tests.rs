//! Tests of the raw reader: synthetic pages, each kind of record, damage; and equality of raw pages and text of one
//! recording.

mod damage;
mod live;
mod pages;
mod sources;

use crate::event::{Event, Kind};
use crate::file::{Container, Head, TracefsText, Writer};
use crate::raw::RawReader;
use crate::report::{ProblemKind, Report};
use pages::{Page, discarded, event, extend, stamp};
use std::io::Cursor;

/// File with these pages per CPU, of a kernel with one event: similar to `sched_process_exit`, number 7.
fn file(pages: &[(u32, Vec<Vec<u8>>)]) -> Vec<u8> {
    let head = Head {
        clock: "mono".into(),
        page_size: pages::SIZE,
        cpus: 2,
        kernel: "test".into(),
        ..Head::default()
    };
    let mut writer = Writer::create(Vec::new(), &head).expect("written");
    writer.format("test", pages::FORMAT).expect("written");
    writer.text(TracefsText::SavedCmdlines, 0, b"42 answer\n").expect("written");
    for (cpu, pages) in pages {
        for page in pages {
            writer.pages(*cpu, page).expect("written");
        }
    }
    writer.finish().expect("written")
}

fn read(bytes: Vec<u8>) -> (Vec<Event>, Report) {
    let mut reader = RawReader::new(Container::open(Cursor::new(bytes)).expect("opened"));
    let events: Vec<Event> = reader.by_ref().collect();
    (events, reader.report().clone())
}

/// Times and CPUs of the events.
fn times(events: &[Event]) -> Vec<(u64, u32)> {
    events.iter().map(|event| (event.ts, event.cpu)).collect()
}

#[test]
fn deltas_add_up_from_the_pages_time() {
    let page = Page::at(1000).with(&event(5, 42)).with(&event(7, 42)).done();
    let (events, report) = read(file(&[(0, vec![page])]));
    assert_eq!(times(&events), [(1005, 0), (1012, 0)]);
    assert_eq!(events[0].tid, 42);
    assert!(report.is_whole() && report.events == 2, "{report}");
}

#[test]
fn time_is_extended_and_set() {
    let long = (3_u64 << 27) + 9;
    let page = Page::at(1000)
        .with(&extend(long))
        .with(&event(1, 42))
        .with(&stamp(5_000_000_000))
        .with(&event(2, 42));
    let (events, report) = read(file(&[(0, vec![page.done()])]));
    assert_eq!(times(&events), [(1000 + long + 1, 0), (5_000_000_002, 0)]);
    assert!(report.is_whole(), "{report}");
}

#[test]
fn absolute_times_keep_the_bits_that_they_have_no_room_for() {
    let high = 3_u64 << 59;
    let page = |at: u64, to: u64| Page::at(at).with(&stamp(to)).with(&event(1, 42)).done();
    let (events, _) = read(file(&[(0, vec![page(high | 100, 200)])]));
    assert_eq!(events[0].ts, (high | 200) + 1);
    // The 59 bits overflowed between the page's time and the event's.
    let (events, _) = read(file(&[(0, vec![page(high | ((1 << 59) - 5), 3)])]));
    assert_eq!(events[0].ts, (high | 3) + (1 << 59) + 1);
}

#[test]
fn discarded_events_are_skipped_and_their_time_counts() {
    let page =
        Page::at(1000).with(&discarded(10)).with(&event(5, 42)).with(&discarded(1)).with(&event(1, 42));
    let (events, report) = read(file(&[(0, vec![page.done()])]));
    assert_eq!(times(&events), [(1015, 0), (1016, 0)]);
    assert!(report.is_whole(), "{report}");
}

#[test]
fn a_null_event_ends_the_page() {
    let page = Page::at(1000).with(&event(1, 42)).with(&[29, 0, 0, 0]).with(&event(1, 42)).done();
    let (events, report) = read(file(&[(0, vec![page, Page::at(2000).with(&event(1, 42)).done()])]));
    assert_eq!(times(&events), [(1001, 0), (2001, 0)]);
    assert!(report.is_whole(), "{report}");
}

#[test]
fn long_events_have_their_length_in_a_word() {
    let page = Page::at(1000).with(&pages::long_event(3, 42, 130)).with(&event(1, 42)).done();
    let (events, report) = read(file(&[(0, vec![page])]));
    assert_eq!(times(&events), [(1003, 0), (1004, 0)]);
    assert!(report.is_whole(), "{report}");
}

#[test]
fn cpus_are_merged_by_time() {
    let page = |at| Page::at(at).with(&event(1, 42)).with(&event(10, 42)).done();
    let (events, _) = read(file(&[(3, vec![page(100), page(200)]), (1, vec![page(105), page(190)])]));
    let want = [(101, 3), (106, 1), (111, 3), (116, 1), (191, 1), (201, 1), (201, 3), (211, 3)];
    assert_eq!(times(&events), want);
}

#[test]
fn marks_of_processes_are_merged_with_the_cpus_events() {
    let page = |at| Page::at(at).with(&event(1, 42)).done();
    let mut bytes = file(&[(0, vec![page(100), page(200)])]);
    // Before the chunk that ends the file, which is a head without content.
    let end = bytes.split_off(bytes.len() - 16);
    let marks = b"150 1 42 40 binder_transaction_received: transaction=5\n150 1 lost 3\n";
    bytes.extend((TracefsText::ProcessMarks as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend((marks.len() as u64).to_le_bytes());
    bytes.extend(marks);
    bytes.extend(end);
    let (events, report) = read(bytes);
    assert_eq!(times(&events), [(101, 0), (150, 1), (150, 1), (201, 0)]);
    assert_eq!((events[1].tgid, report.lost, report.events), (Some(40), 3, 3), "{report}");
    assert_eq!(events[2].kind, Kind::Lost { count: Some(3) });
}

#[test]
fn lost_events_are_events_and_are_counted() {
    for (page, count) in [
        (Page::at(500).with(&event(1, 42)).missed(Some(1234)), Some(1234)),
        (Page::at(500).with(&event(1, 42)).missed(None), None),
    ] {
        let (events, report) =
            read(file(&[(0, vec![Page::at(400).with(&event(1, 42)).done(), page.done()])]));
        assert_eq!(times(&events), [(401, 0), (500, 0), (501, 0)]);
        assert_eq!((&events[1].kind, events[1].tid), (&Kind::Lost { count }, -1));
        assert_eq!(
            (report.events, report.lost, report.gaps),
            (2, count.unwrap_or(0), u64::from(count.is_none()))
        );
    }
}

#[test]
fn what_the_statistics_say_was_dropped_is_lost_at_the_end() {
    let head = Head {
        clock: "mono".into(),
        page_size: pages::SIZE,
        cpus: 2,
        kernel: "test".into(),
        ..Head::default()
    };
    let mut writer = Writer::create(Vec::new(), &head).expect("written");
    writer.format("test", pages::FORMAT).expect("written");
    writer.pages(0, &Page::at(400).with(&event(1, 42)).done()).expect("written");
    writer
        .text(TracefsText::Stats, 0, b"entries: 1\ncommit overrun: 2\ndropped events: 5\n")
        .expect("written");
    writer.text(TracefsText::Stats, 1, b"entries: 0\noverrun: 9\ndropped events: 0\n").expect("written");
    let (events, report) = read(writer.finish().expect("written"));
    assert_eq!(times(&events), [(401, 0), (401, 0)]);
    assert_eq!((&events[1].kind, report.lost), (&Kind::Lost { count: Some(7) }, 7));
}

#[test]
fn a_clock_that_goes_backwards_is_said() {
    let (events, report) = read(file(&[(
        1,
        vec![Page::at(1000).with(&event(1, 42)).done(), Page::at(600).with(&event(1, 42)).done()],
    )]));
    assert_eq!(times(&events), [(1001, 1), (601, 1)]);
    assert_eq!(report.problems[0].kind, ProblemKind::ClockBackwards);
    assert_eq!(report.problems[0].detail, "by 400 ns to 601 ns on cpu 1");
}

#[test]
fn a_damaged_page_is_a_gap_and_the_next_one_is_read() {
    let good = Page::at(2000).with(&event(1, 42)).done();
    let mut long_commit = Page::at(1000).with(&event(1, 42)).done();
    long_commit[8..12].copy_from_slice(&60_000_u32.to_le_bytes());
    let mut long_event = Page::at(1000).with(&event(1, 42)).done();
    long_event[16] = 28;
    let half = Page::at(1000).with(&event(1, 42)).with(&[30, 0, 0, 0]).done();
    let mut huge = pages::long_event(3, 42, 130);
    huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let huge = Page::at(1000).with(&huge).done();
    for (page, before) in [(long_commit, 0), (long_event, 0), (half, 1), (huge, 0)] {
        let (events, report) = read(file(&[(0, vec![page, good.clone()])]));
        assert_eq!(events.len(), before + 2, "{report}");
        assert_eq!(events[before].kind, Kind::Lost { count: None });
        assert_eq!(events[before + 1].ts, 2001);
        assert_eq!((report.problems[0].kind, report.gaps), (ProblemKind::Corrupt, 1));
    }
}

#[test]
fn an_event_without_a_format_is_still_an_event() {
    let mut unknown = event(1, 42);
    unknown[4] = 99;
    let page = Page::at(1000).with(&unknown).with(&unknown).with(&event(1, 42)).done();
    let (events, report) = read(file(&[(0, vec![page])]));
    assert_eq!(times(&events), [(1001, 0), (1002, 0), (1003, 0)]);
    assert_eq!(report.problems.len(), 1);
    assert_eq!((report.problems[0].kind, report.problems[0].times), (ProblemKind::UnknownEvent, 2));
}

#[test]
fn names_come_with_the_events() {
    let page = Page::at(1000).with(&event(1, 42)).with(&event(1, 43)).with(&event(1, 0)).done();
    let mut reader = RawReader::new(Container::open(Cursor::new(file(&[(0, vec![page])]))).expect("opened"));
    let mut seen = Vec::new();
    while let Some(event) = reader.next() {
        seen.push(reader.names().text(event.comm).to_owned());
    }
    assert_eq!(seen, ["answer", "", "<idle>"]);
}
