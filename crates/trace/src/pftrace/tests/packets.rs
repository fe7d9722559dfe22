//! Packets as recorders write them.

use std::io::Write;

use super::{Bytes, bundle, new, read, times, trace, waking};
use crate::event::{Binder, Flavour, Kind, Mark, State};
use crate::report::ProblemKind;

fn kinds(file: &[u8]) -> Vec<Kind> {
    read(file).0.into_iter().map(|event| event.kind).collect()
}

#[test]
fn bundles_of_cpus_are_merged_by_time_however_they_lie_in_the_file() {
    let file = trace(&[
        bundle(0, &[waking(10, 1), waking(30, 1)]),
        bundle(0, &[waking(50, 1)]),
        bundle(1, &[waking(20, 1), waking(40, 1)]),
    ]);
    let (events, report) = read(&file);
    assert_eq!(times(&events), [(10, 0), (20, 1), (30, 0), (40, 1), (50, 0)]);
    assert!(report.is_whole() && report.events == 5, "{report}");
}

#[test]
fn the_compact_form_has_switches_and_wake_ups_of_the_thread_that_runs() {
    let compact = new()
        .bytes(5, "a")
        .bytes(5, "b")
        .packed(1, &[100, 50])
        .packed(2, &[1, 0x100])
        .packed(3, &[7, 8])
        .packed(4, &[120, 98])
        .packed(6, &[0, 1])
        .packed(7, &[120, 5])
        .packed(8, &[8, 9])
        .packed(9, &[1, 0])
        .packed(10, &[98, 120])
        .packed(11, &[1, 0]);
    let of_before = waking(90, 5);
    let file =
        trace(&[new().bytes(1, new().number(1, 3).bytes(4, compact).bytes(2, of_before)).number(10, 1)]);
    let (events, report) = read(&file);
    let told: Vec<_> = events.iter().map(|event| (event.ts, event.tid)).collect();
    // The thread before the first switch is known from the event before it.
    assert_eq!(told, [(90, 5), (100, 5), (120, 7), (125, 7), (150, 7)]);
    let Kind::Switch { prev, state, next } = &events[4].kind else { panic!("{:?}", events[4]) };
    assert_eq!((prev.tid, prev.prio.0, *state, next.tid, next.prio.0), (7, 120, State::Preempted, 8, 98));
    assert!(report.is_whole(), "{report}");
}

#[test]
fn names_and_processes_come_from_the_process_tree_wherever_it_is() {
    let thread = new().number(1, 7).bytes(2, "worker").number(3, 4);
    let tree = new().bytes(2, new().bytes(2, thread)).number(8, 500).number(10, 2);
    let mut reader =
        crate::open(std::io::Cursor::new(trace(&[bundle(0, &[waking(10, 7)]), tree]))).expect("a trace");
    let event = reader.next().expect("an event");
    assert_eq!((event.tgid, reader.names().text(event.comm)), (Some(4), "worker"));
}

#[test]
fn generic_events_of_binder_are_binders_and_tell_the_driver() {
    let field = |name: &str, value: u64| new().bytes(1, name).number(5, value);
    let generic = |name: &str, fields: &[Bytes]| {
        let message = fields.iter().fold(new().bytes(1, name), |message, field| message.bytes(2, field));
        new().number(1, 10).number(2, 7).bytes(327, message)
    };
    let file = trace(&[bundle(
        0,
        &[
            generic("binder_transaction_received", &[field("debug_id", 5)]),
            generic("binder_ioctl_done", &[field("ret", 0)]),
            generic("reschedule_entry", &[field("vector", 253)]),
            generic("foreign", &[]),
        ],
    )]);
    let kinds = kinds(&file);
    assert_eq!(kinds[0], Kind::Binder(Flavour::Rust, Binder::Received { debug_id: 5 }));
    assert_eq!(kinds[1], Kind::Binder(Flavour::C, Binder::IoctlDone { ret: 0 }));
    assert!(matches!(kinds[2], Kind::IrqEntry { .. }) && matches!(kinds[3], Kind::Other { .. }));
}

#[test]
fn events_that_the_trace_describes_are_read_by_their_descriptor() {
    let descriptor =
        new().bytes(1, "binder_transaction_received").bytes(2, new().bytes(1, "debug_id").number(3, 4));
    let described = new().number(1, 70_000).bytes(3, "rust_binder").bytes(2, descriptor);
    let event = new().number(1, 10).number(2, 7).bytes(70_000, new().number(4, 6));
    let file =
        trace(&[new().bytes(1, new().number(1, 0).bytes(2, event).bytes(11, described)).number(10, 1)]);
    assert_eq!(kinds(&file), [Kind::Binder(Flavour::Rust, Binder::Received { debug_id: 6 })]);
}

#[test]
fn compressed_packets_are_unpacked() {
    let inner = trace(&[bundle(1, &[waking(20, 1)]), bundle(0, &[waking(10, 1)])]);
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&inner).expect("memory");
    let packed = packer.finish().expect("memory");
    let file = trace(&[new().number(3, 0).number(10, 9), new().bytes(50, &packed)]);
    let (events, report) = read(&file);
    assert_eq!(times(&events), [(10, 0), (20, 1)]);
    assert!(report.is_whole(), "{report}");
    let (events, report) = read(&trace(&[new().number(3, 0).number(10, 9), new().bytes(50, &packed[..9])]));
    assert!(events.is_empty() && report.to_string().contains("a compressed packet at byte"), "{report}");
}

#[test]
fn gaps_and_the_kernels_counters_are_losses() {
    let gap = new().bytes(1, new().number(1, 0).bytes(2, waking(30, 1)).number(3, 1)).number(10, 1);
    let stats = |phase, overrun| {
        let cpu = |number: u64, overrun: u64| new().number(1, number).number(3, overrun);
        new().bytes(34, new().number(1, phase).bytes(2, cpu(0, overrun)).bytes(2, cpu(1, overrun / 2)))
    };
    let file =
        trace(&[stats(1, 100), bundle(0, &[waking(10, 1)]), bundle(1, &[waking(20, 1)]), gap, stats(2, 108)]);
    let (events, report) = read(&file);
    let lost: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, Kind::Lost { .. }))
        .map(|event| event.cpu)
        .collect();
    assert_eq!(lost, [0, 1]);
    // 8 in the gap of CPU 0, 4 somewhere on CPU 1.
    assert_eq!((report.events, report.lost, report.gaps), (3, 12, 0));
    // A writer that lost packets.
    let lossy = trace(&[bundle(0, &[waking(10, 1)]), bundle(0, &[waking(20, 1)]).number(42, 1)]);
    assert_eq!(read(&lossy).1.gaps, 1);
}

#[test]
fn packets_of_other_machines_are_left_out_with_a_word() {
    let (events, report) =
        read(&trace(&[bundle(0, &[waking(10, 1)]), bundle(0, &[waking(20, 1)]).number(98, 77)]));
    assert_eq!(times(&events), [(10, 0)]);
    assert!(report.to_string().contains("1 packet of other machines"), "{report}");
}

#[test]
fn joined_traces_are_read_in_the_order_of_times() {
    let (early, late) =
        (bundle(0, &[waking(10, 1), waking(30, 1)]), bundle(0, &[waking(20, 1), waking(40, 1)]));
    let (events, report) = read(&[trace(&[late]), trace(&[early])].concat());
    assert_eq!(times(&events), [(10, 0), (20, 0), (30, 0), (40, 0)]);
    assert!(report.is_whole(), "{report}");
}

#[test]
fn ftraces_clock_is_turned_into_boot_time() {
    let of_clock = new().number(1, 0).bytes(2, waking(10, 1)).number(5, 2).number(6, 5).number(7, 1005);
    let (events, _) = read(&trace(&[new().bytes(1, of_clock).number(10, 1)]));
    assert_eq!(times(&events), [(1010, 0)]);
}

#[test]
fn a_clock_that_perfetto_does_not_know_is_said() {
    let of = |clock| {
        let bundle = new().number(1, 0).bytes(2, waking(10, 1)).bytes(2, waking(20, 1)).number(5, clock);
        read(&trace(&[new().bytes(1, bundle).number(10, 1)])).1
    };
    let report = of(1);
    let [problem] = report.problems.as_slice() else { panic!("{report}") };
    assert_eq!(problem.kind, ProblemKind::OtherClock, "{report}");
    assert!([0, 2, 3, 4].into_iter().all(|clock| of(clock).is_whole()));
}

#[test]
fn slices_of_programs_are_marks_of_their_threads() {
    let thread = new().number(1, 4).number(2, 7).bytes(5, "main");
    let track = new().bytes(60, new().number(1, 99).bytes(4, thread)).number(10, 3);
    let clock = |id, ts| new().number(1, id).number(2, ts);
    let snapshot = new().bytes(1, clock(6, 1000)).bytes(1, clock(64, 500).number(3, 1));
    let interned = new().bytes(2, new().number(1, 5).bytes(2, "AIDL::java::IFoo::bar::server"));
    let start = new().bytes(6, snapshot).number(13, 1).number(10, 3).bytes(59, new().number(58, 64));
    // The service appends to a writer's first packet that those before it may be lost.
    let start = start.number(42, 1);
    let event = |ts, kind| new().number(8, ts).number(10, 3).number(13, 2).bytes(11, kind);
    let begin = event(10, new().number(9, 1).number(10, 5).number(11, 99)).bytes(12, interned);
    let end = event(15, new().number(9, 2).number(11, 99));
    let instant = event(1, new().number(9, 3).number(11, 99));
    let (events, report) =
        read(&trace(&[track, start, begin, end, instant, bundle(0, &[waking(1012, 7), waking(1030, 7)])]));
    let told: Vec<_> = events.iter().map(|event| (event.ts, event.tid, event.tgid)).collect();
    assert_eq!(told, [(1010, 7, Some(4)), (1012, 7, Some(4)), (1025, 7, Some(4)), (1030, 7, Some(4))]);
    let Kind::Print(text) = &events[0].kind else { panic!("{events:?}") };
    assert_eq!(Mark::parse(text), Some(Mark::Begin { tgid: 4, name: "AIDL::java::IFoo::bar::server" }));
    assert_eq!(events[2].kind, Kind::Print("E|4".into()));
    assert!(report.is_whole(), "{report}");
}

/// Packets of a writer, number 3, as Perfetto's SDK begins: thread 7 of process 4 is track 99, times are differences.
fn sdk_writer() -> [Bytes; 2] {
    let clock = |id, ts| new().number(1, id).number(2, ts);
    let snapshot = new().bytes(1, clock(6, 1000)).bytes(1, clock(64, 500).number(3, 1));
    let start = new().bytes(6, snapshot).number(13, 1).number(10, 3).bytes(59, new().number(58, 64));
    let thread = new().number(1, 4).number(2, 7).bytes(5, "main");
    let track = new().number(8, 0).bytes(60, new().number(1, 99).bytes(4, thread)).number(10, 3);
    [start.number(42, 1), track]
}

/// Packet of that writer, `after` nanoseconds after its last one.
fn sdk_event(after: u64, event: Bytes) -> Bytes {
    new().number(8, after).number(10, 3).number(13, 2).bytes(11, event.number(11, 99))
}

#[test]
fn packets_without_an_event_move_the_times_behind_them() {
    let [start, track] = sdk_writer();
    let other = new().number(8, 7).number(10, 3).bytes(60, new().number(1, 100));
    let file = [
        start,
        track,
        sdk_event(10, new().number(9, 1).bytes(23, "outer")),
        other,
        sdk_event(5, new().number(9, 2)),
        bundle(0, &[waking(1012, 7)]),
    ];
    let (events, report) = read(&trace(&file));
    let told: Vec<_> = events.iter().map(|event| event.ts).collect();
    assert_eq!((told, report.is_whole()), (vec![1010, 1012, 1022], true), "{report}");
}

#[test]
fn a_slice_without_a_name_ends_itself_and_no_other() {
    let [start, track] = sdk_writer();
    let (begin, end) = (|| new().number(9, 1), || new().number(9, 2));
    let file = [
        start,
        track,
        sdk_event(1, begin().bytes(23, "outer")),
        sdk_event(1, begin().number(10, 77)),
        sdk_event(1, end()),
        sdk_event(1, end()),
        bundle(0, &[waking(2000, 7)]),
    ];
    let (events, report) = read(&trace(&file));
    let marks = events.iter().filter_map(|event| match &event.kind {
        Kind::Print(text) => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(marks.collect::<Vec<_>>(), ["B|4|outer", "B|4|", "E|4", "E|4"]);
    assert_eq!(Mark::parse("B|4|"), Some(Mark::Begin { tgid: 4, name: "" }));
    assert!(report.to_string().contains("1 slice without a name or a time"), "{report}");
}

#[test]
fn unknown_events_are_counted_and_named() {
    let unknown = |number| new().number(1, 10).number(2, 1).bytes(number, new().number(1, 1));
    let (events, report) = read(&trace(&[bundle(0, &[unknown(238), unknown(9999), unknown(9999)])]));
    assert_eq!(events.len(), 3);
    assert_eq!(report.problems.len(), 1);
    assert!(report.to_string().contains("event number 9999 of Perfetto (and 1 more)"), "{report}");
}
