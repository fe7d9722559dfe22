//! Tests of descriptions of synthetic traces.

use proptest::prelude::*;
use trace::event::{Binder, Kind, Transaction as Sent};

use super::*;
use crate::fixtures::{Pause, SECRET, Stage, Tree, recording};
use crate::recording::Half;
use crate::{print, text};

const APP: i32 = 1_000;
const SERVER: i32 = 2_000;
const OTHER: i32 = 3_000;

/// A workload of these events, of all calls.
fn described(recording: &Recording) -> Workload {
    let workload = describe(recording, &Options::default()).expect("calls");
    let written = print(&workload);
    assert_eq!(text::parse(&written).expect("valid"), workload, "{written}");
    assert!(!written.contains(SECRET), "{written}");
    workload
}

fn calls(steps: &[Step]) -> Vec<&Made> {
    let call = |step: &'_ Step| matches!(step, Step::Call(_));
    let calls = steps.iter().filter(|step| call(step));
    calls.filter_map(|step| if let Step::Call(call) = step { Some(call) } else { None }).collect()
}

fn count(steps: &[Step]) -> usize {
    calls(steps).into_iter().map(|call| call.times as usize * (1 + count(&call.served))).sum()
}

fn pause() -> impl Strategy<Value = Pause> {
    (1_u64..500, 0_u64..3).prop_map(|(work, sleep)| Pause { work: work * 1000, sleep: sleep * 70_000 })
}

/// Calls among processes that are each other's clients and servers.
fn tree() -> impl Strategy<Value = Tree> {
    let leaf = (2..6, 0_u64..5000, 0_u64..5000, pause()).prop_map(|(to, request, reply, after)| Tree {
        to: to * 1000,
        oneway: false,
        request,
        reply,
        inner: Vec::new(),
        after,
    });
    leaf.prop_recursive(4, 12, 3, |inner| {
        let inner = proptest::collection::vec((pause(), inner), 0..3);
        (2..6, 0_u64..5000, 0_u64..5000, pause(), inner).prop_map(|(to, request, reply, after, inner)| Tree {
            to: to * 1000,
            oneway: false,
            request,
            reply,
            inner,
            after,
        })
    })
}

/// Steps as a description has them, alike calls joined.
fn expected(tree: &Tree, place: &impl Fn(i32) -> usize) -> Step {
    let mut served = Vec::new();
    let pause = |steps: &mut Vec<Step>, pause: Pause| {
        add(steps, Step::Work(pause.work));
        if pause.sleep > 0 {
            add(steps, Step::Sleep(pause.sleep));
        }
    };
    for (before, inner) in &tree.inner {
        pause(&mut served, *before);
        add(&mut served, expected(inner, place));
    }
    pause(&mut served, tree.after);
    let (request, reply) = (tree.request as u32, tree.reply as u32);
    let (to, oneway, carries, expected) = (place(tree.to), false, Carries::default(), Expected::Taken);
    Step::Call(Made { to, oneway, request, reply, carries, times: 1, expected, served })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A description has the calls of the trace, their sizes, their nesting, and what was done before, between and behind them.
    #[test]
    fn calls_come_out_as_they_went_in(trees in proptest::collection::vec(tree(), 1..4)) {
        let mut stage = Stage::default();
        let mut ts = 1_000_000;
        for tree in &trees {
            ts = stage.call(ts, APP, tree, 0) + 5_000;
        }
        let recording = stage.recording();
        let workload = described(&recording);
        let selected = recording.select(&Selection::default()).expect("calls");
        let place = |process: i32| {
            selected.processes.iter().position(|one| *one == process).expect("a known process")
        };
        prop_assert_eq!(workload.threads.len(), 1);
        prop_assert_eq!(workload.threads[0].process, place(APP));
        let mut want = Vec::new();
        for (at, tree) in trees.iter().enumerate() {
            if at > 0 {
                add(&mut want, Step::Work(5_000));
            }
            add(&mut want, expected(tree, &place));
        }
        prop_assert_eq!(&workload.threads[0].steps, &want);
    }

    /// Whatever is missing of a trace, what is left is described, and no call comes from nowhere.
    #[test]
    fn a_cut_trace_is_described_in_part(
        trees in proptest::collection::vec(tree(), 1..4),
        (from, to) in (0_usize..400, 0_usize..400),
    ) {
        let mut stage = Stage::default();
        let mut ts = 1_000_000;
        for tree in &trees {
            ts = stage.call(ts, APP, tree, 0) + 5_000;
        }
        let all: usize = trees.iter().map(Tree::count).sum();
        let (events, names) = stage.sorted();
        let end = to.min(events.len());
        let recording = recording(&events[from.min(end)..end], &names);
        match describe(&recording, &Options::default()) {
            Ok(workload) => {
                let written = print(&workload);
                prop_assert_eq!(text::parse(&written).expect("valid"), workload.clone());
                let made: usize = workload.threads.iter().map(|thread| count(&thread.steps)).sum();
                prop_assert!(made <= all && made > 0, "{made} of {all}");
                let left_out = recording.select(&Selection::default()).expect("calls").left_out;
                prop_assert_eq!(made, recording.calls().len() - left_out.orphans as usize);
            }
            Err(error) => prop_assert!(recording.calls().iter().all(|call| call.orphan || call.parent.is_some()), "{error}"),
        }
    }
}

/// Events of a few threads in any order, at any time.
fn anything() -> impl Strategy<Value = Vec<(u64, i32, u8, i32)>> {
    let time = prop_oneof![0_u64..100_000, any::<u64>()];
    proptest::collection::vec((time, 1_i32..6, 0_u8..9, 1_i32..8), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// No order of events and no time breaks a description or figures.
    #[test]
    fn any_events_are_described_or_refused(drawn in anything(), sorted in any::<bool>()) {
        let (mut stage, mut drawn) = (Stage::default(), drawn);
        if sorted {
            drawn.sort_unstable();
        }
        for (ts, tid, kind, id) in drawn {
            let sent = |reply, flags| {
                let to_thread = if reply { id } else { 0 };
                let sent = Sent { debug_id: id, to_proc: id, to_thread, reply, flags, ..Sent::default() };
                Kind::Binder(Default::default(), Binder::Transaction(sent))
            };
            match kind {
                0 => stage.sleeps(ts, tid),
                1 | 2 => {
                    stage.wakes(ts.min(u64::MAX - 10_000), tid, kind == 1);
                }
                3 => stage.event(ts, tid, sent(false, 0)),
                4 => stage.event(ts, tid, sent(false, 1)),
                5 => stage.event(ts, tid, sent(true, 0)),
                6 => stage.event(ts, tid, Kind::Binder(Default::default(), Binder::WriteDone { ret: 0 })),
                7 => stage.event(ts, tid, Kind::Lost { count: None }),
                _ => stage.event(ts, tid, Kind::Binder(Default::default(), Binder::Received { debug_id: id })),
            }
        }
        let recording = recording(&stage.events, &stage.names);
        if let Ok(workload) = describe(&recording, &Options::default()) {
            prop_assert_eq!(text::parse(&print(&workload)).expect("valid"), workload);
            let figures = recording.select(&Selection::default()).expect("calls").figures();
            prop_assert!(figures.all.calls + figures.all.oneway > 0);
            for half in [Half::First, Half::Second] {
                let _ = recording.select(&Selection { half: Some(half), ..Selection::default() });
            }
        }
    }
}

/// A thread that calls once in a period, and what it did between two calls.
fn caller(waits: impl Fn(usize, u64) -> u64, by_interrupt: bool) -> Workload {
    let mut stage = Stage { by_interrupt, ..Stage::default() };
    let mut ts = 1_000_000;
    for turn in 0..20 {
        // The duration of calls varies by a third of the period.
        let work = [20_000, 320_000, 150_000, 80_000][turn % 4];
        let end = stage.call(ts, APP, &Tree::leaf(SERVER, 64, 16, work), 0);
        ts = stage.pause(end, APP, Pause { work: 3_000, sleep: waits(turn, end - 1_000_000) });
    }
    described(&stage.recording())
}

fn ats(workload: &Workload) -> usize {
    workload.threads[0].steps.iter().filter(|step| matches!(step, Step::At(_))).count()
}

#[test]
fn a_timers_rhythm_is_open_loop_and_a_fixed_sleep_is_closed_loop() {
    for by_interrupt in [false, true] {
        // The next call is sent 1 ms after the one before, whenever that ended.
        let timer = |turn: usize, end: u64| (turn as u64 + 1) * 1_000_000 - end - 4_000;
        let workload = caller(timer, by_interrupt);
        assert_eq!(ats(&workload), 19, "{}", print(&workload));
        assert!(workload.notes[1].contains("in a timer's rhythm: 1."), "{:?}", workload.notes);
        let at = workload.threads[0].steps.iter().find(|step| matches!(step, Step::At(_)));
        assert_eq!(at, Some(&Step::At(999_000)));
        let workload = caller(|_, _| 700_000, by_interrupt);
        assert_eq!(ats(&workload), 0, "{}", print(&workload));
        assert!(workload.threads[0].steps.contains(&Step::Sleep(700_000)));
    }
}

#[test]
fn without_a_rhythm_who_ended_the_sleep_decides() {
    let irregular = |turn: usize, _| [200_000, 900_000, 400_000, 1_700_000, 90_000][turn % 5];
    assert_eq!(ats(&caller(irregular, true)), 19);
    assert_eq!(ats(&caller(irregular, false)), 0);
    // Some of them last as long as what waits for a user.
    let long = |turn: usize, _| [200_000, 900_000, 30_000_000, 1_700_000, 90_000][turn % 5];
    assert_eq!(ats(&caller(long, false)), 4);
}

#[test]
fn a_wait_too_short_for_a_timer_is_work_and_a_wait_for_a_cpu_is_nothing() {
    let mut stage = Stage::default();
    let tree = Tree { after: Pause { work: 7_000, sleep: 20_000 }, ..Tree::leaf(SERVER, 0, 0, 0) };
    stage.call(1_000, APP, &tree, 0);
    let workload = described(&stage.recording());
    assert_eq!(calls(&workload.threads[0].steps)[0].served, [Step::Work(27_000)]);
}

#[test]
fn without_events_of_the_scheduler_the_length_decides() {
    let mut stage = Stage::default();
    let inner = (Pause { work: 30_000, sleep: 0 }, Tree::leaf(OTHER, 8, 4, 10_000));
    let tree = Tree { inner: vec![inner], ..Tree::leaf(SERVER, 64, 16, 200_000) };
    let end = stage.call(1_000_000, APP, &tree, 0);
    stage.call(end + 60_000, APP, &tree, 0);
    let (mut events, names) = stage.sorted();
    events.retain(|event| !matches!(event.kind, Kind::Switch { .. } | Kind::Waking(_)));
    let workload = described(&recording(&events, &names));
    let steps = &workload.threads[0].steps;
    let [Step::Call(first), Step::Sleep(60_000), Step::Call(second)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(first, second);
    let [Step::Work(30_000), Step::Call(inner), Step::Sleep(200_000)] = &first.served[..] else {
        panic!("{first:?}")
    };
    assert_eq!(inner.served, [Step::Work(10_000)]);
    assert!(workload.notes.iter().any(|note| note.contains("no sched_switch")), "{:?}", workload.notes);
}

#[test]
fn sizes_that_a_trace_lacks_are_drawn_and_a_seed_repeats_them() {
    let play = |known: usize| {
        let mut stage = Stage::default();
        let mut ts = 1_000_000;
        for turn in 0..200 {
            ts = stage.call(ts, APP, &Tree::leaf(SERVER, 1000 + turn, 3, 5_000), 0) + 2_000;
        }
        let (mut events, names) = stage.sorted();
        let mut left = 2 * known;
        events.retain(|event| match event.kind {
            Kind::Binder(_, Binder::AllocBuf(_)) => {
                left = left.saturating_sub(1);
                left > 0
            }
            _ => true,
        });
        recording(&events, &names)
    };
    let sizes = |workload: &Workload| -> Vec<(u32, u32)> {
        calls(&workload.threads[0].steps).iter().map(|call| (call.request, call.reply)).collect()
    };
    let without = play(0);
    let workload = described(&without);
    assert!(workload.notes.iter().any(|note| note.contains("assumed: 400, log-uniform")));
    let mut requests: Vec<u32> = sizes(&workload).into_iter().map(|(request, _)| request).collect();
    requests.sort_unstable();
    assert!(
        requests[0] >= 16 && requests[199] <= 1024 && (64..=256).contains(&requests[100]),
        "{requests:?}"
    );
    let seeded = |seed| describe(&without, &Options { seed, ..Options::default() }).expect("calls");
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(sizes(&seeded(7)), sizes(&seeded(8)));
    // With enough known sizes, others are like them.
    let some = described(&play(100));
    assert!(
        some.notes.iter().any(|note| note.contains("drawn from those of other calls")),
        "{:?}",
        some.notes
    );
    assert!(sizes(&some).iter().all(|(request, reply)| (1000..1200).contains(request) && *reply == 3));
}

#[test]
fn a_oneway_call_has_the_time_until_its_buffer_is_given_back_and_what_was_called_in_it() {
    let mut stage = Stage::default();
    let inner = (Pause { work: 30_000, sleep: 0 }, Tree::leaf(OTHER, 8, 4, 10_000));
    let after = Pause { work: 20_000, sleep: 0 };
    let tree = Tree { oneway: true, inner: vec![inner], after, ..Tree::leaf(SERVER, 64, 0, 0) };
    stage.call(1_000_000, APP, &tree, 0);
    let workload = described(&stage.recording());
    assert_eq!(workload.threads.len(), 1, "{}", print(&workload));
    let oneway = calls(&workload.threads[0].steps)[0];
    assert!(oneway.oneway && oneway.request == 64 && oneway.reply == 0);
    assert!(
        matches!(oneway.served[..], [Step::Work(30_000), Step::Call(_), Step::Work(20_000)]),
        "{oneway:?}"
    );
}

/// A thread serves four oneway calls; returns what it does for each. The trace does not show when buffers are given back.
fn four_oneway_calls(sleeps: bool) -> Vec<Vec<Step>> {
    let (mut stage, begin, thread) = (Stage::default(), 1_000_000, SERVER + 100);
    let mut driver =
        |ts: u64, tid: i32, binder| stage.event(begin + ts, tid, Kind::Binder(Default::default(), binder));
    for call in 0..4 {
        let sent = Sent { debug_id: 70 + call, to_proc: SERVER, code: 1, flags: 1, ..Sent::default() };
        driver(call as u64 * 1_000, APP, Binder::Transaction(sent));
        driver(10_000 + call as u64 * 40_000, thread, Binder::Received { debug_id: 70 + call });
    }
    // A call for this very thread is part of the one that it serves.
    let back = Sent { debug_id: 90, to_proc: SERVER, to_thread: thread, code: 1, ..Sent::default() };
    driver(20_000, OTHER + 100, Binder::Transaction(back));
    driver(21_000, thread, Binder::Received { debug_id: 90 });
    stage.wakes(begin + 5_000, thread, false);
    if sleeps {
        stage.sleeps(begin + 120_000, thread);
        stage.wakes(begin + 125_000, thread, false);
        stage.sleeps(begin + 150_000, thread);
    }
    let workload = described(&stage.recording());
    calls(&workload.threads[0].steps)
        .into_iter()
        .flat_map(|call| std::iter::repeat_n(call.served.clone(), call.times as usize))
        .collect()
}

#[test]
fn a_oneway_call_ends_where_its_thread_takes_the_next_one_or_sleeps() {
    let work = |ns| vec![Step::Work(ns)];
    assert_eq!(four_oneway_calls(true), [work(40_000), work(40_000), work(30_000), work(20_000)]);
    // The end of the last one is not shown.
    assert_eq!(four_oneway_calls(false), [work(40_000), work(40_000), work(40_000), vec![]]);
}

#[test]
fn a_oneway_call_does_not_end_where_its_thread_waits_for_an_answer() {
    let mut stage = Stage::default();
    let inner = (Pause { work: 30_000, sleep: 0 }, Tree::leaf(OTHER, 8, 4, 10_000));
    let after = Pause { work: 20_000, sleep: 0 };
    let tree = Tree { oneway: true, inner: vec![inner], after, ..Tree::leaf(SERVER, 64, 0, 0) };
    stage.call(1_000_000, APP, &tree, 0);
    stage.events.retain(|event| !matches!(event.kind, Kind::Binder(_, Binder::BufferRelease(_))));
    let workload = described(&stage.recording());
    let oneway = calls(&workload.threads[0].steps)[0];
    assert!(
        matches!(oneway.served[..], [Step::Work(30_000), Step::Call(_), Step::Work(20_800)]),
        "{oneway:?}"
    );
}

#[test]
fn a_process_has_as_many_threads_as_served_at_once() {
    let mut stage = Stage::default();
    // Three clients call one server at one time, each served by a thread of its own, and once more one alone.
    for client in 0..3 {
        let tree = Tree::leaf(SERVER, 4, 4, 500_000);
        stage.call(1_000_000 + client * 10_000, APP + 1000 * (client as i32 * 3 + 5), &tree, client as i32);
    }
    stage.call(9_000_000, APP, &Tree::leaf(SERVER, 4, 4, 500_000), 0);
    let workload = described(&stage.recording());
    let server = &workload.processes[0];
    assert_eq!((server.name.as_str(), server.pool, server.copies), ("p1", 2, 1));
    assert!(workload.processes[1..].iter().all(|process| process.pool == 0));
}

#[test]
fn failed_calls_and_those_beyond_a_limit_are_counted_and_left_out() {
    let mut stage = Stage::default();
    let mut ts = 1_000_000;
    for _ in 0..10 {
        let inner = (Pause::default(), Tree::leaf(OTHER, 8, 4, 10_000));
        ts = stage.call(ts, APP, &Tree { inner: vec![inner], ..Tree::leaf(SERVER, 4, 4, 9_000) }, 0) + 5_000;
    }
    // A call that the driver refuses: BR_FAILED_REPLY.
    let refused = trace::event::Transaction { debug_id: 900, to_proc: SERVER, ..Default::default() };
    stage.event(ts, APP, Kind::Binder(Default::default(), Binder::Transaction(refused)));
    stage.event(ts + 10, APP, Kind::Binder(Default::default(), Binder::Return { cmd: 0x7211 }));
    let recording = stage.recording();
    let workload = described(&recording);
    assert!(
        workload.notes.iter().any(|note| note == "Left out: 1 call that failed."),
        "{:?}",
        workload.notes
    );
    let of = |selection| {
        let workload = describe(&recording, &Options { selection, seed: 0 }).expect("calls");
        (count(&workload.threads[0].steps), workload)
    };
    // A call and what was called in it stay together.
    let (made, workload) = of(Selection { calls: 7, ..Selection::default() });
    assert_eq!(made, 6);
    assert!(workload.notes.iter().any(|note| note.contains("14 calls that were more than asked for")));
    let (made, workload) = of(Selection { processes: 2, ..Selection::default() });
    assert_eq!((made, workload.processes.len()), (10, 2), "{}", print(&workload));
    let halves = [Half::First, Half::Second];
    let made = halves.map(|half| of(Selection { half: Some(half), ..Selection::default() }).0);
    assert_eq!(made, [10, 10]);
    let nothing = Selection { from_ns: Some(1 << 60), ..Selection::default() };
    assert_eq!(recording.select(&nothing).err(), Some(CannotSelect::NoneSelected));
    assert_eq!(Recording::default().select(&nothing).err(), Some(CannotSelect::NoCalls));
}

#[test]
fn priorities_are_those_of_the_callers() {
    for (prio, want) in [
        (None, Scheduling::Inherited),
        (Some(Prio(120)), Scheduling::Nice(0)),
        (Some(Prio(110)), Scheduling::Nice(-10)),
        (Some(Prio(98)), Scheduling::Fifo(1)),
        (Some(Prio(0)), Scheduling::Fifo(99)),
        (Some(Prio(-1)), Scheduling::Inherited),
    ] {
        assert_eq!(scheduling(prio), want, "{prio:?}");
    }
}
