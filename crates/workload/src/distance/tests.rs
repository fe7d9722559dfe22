//! Tests of figures and distances, on synthetic loads.

use super::*;
use crate::fixtures::{Pause, SECRET, Stage, Tree};
use crate::recording::{Half, Recording, SUBJECT, Selection};
use trace::event::Kind;

const APP: i32 = 1_000;
const SERVER: i32 = 2_000;

/// A client that calls a server as often as asked, with a service time that varies and grows by `drift` per call.
fn load(calls: u64, work: u64, drift: u64) -> Recording {
    let mut stage = Stage::default();
    let mut ts = 1_000_000;
    let mut rng = fastrand::Rng::with_seed(work ^ calls);
    for turn in 0..calls {
        let tree = Tree::leaf(SERVER, 64, 16, work + rng.u64(0..work) + turn * drift);
        let end = stage.call(ts, APP, &tree, 0);
        ts = stage.pause(end, APP, Pause { work: 3_000, sleep: 60_000 + rng.u64(0..50_000) });
    }
    stage.recording()
}

fn figures(recording: &Recording, half: Option<Half>) -> LoadFigures {
    recording.select(&Selection { half, ..Selection::default() }).expect("calls").figures()
}

fn row<'d>(distance: &'d Distance, figure: &str) -> &'d Row {
    distance.scopes[0].rows.iter().find(|row| row.figure == figure).expect("a known figure")
}

fn mark(words: &str) -> String {
    trace::event::own_mark(SUBJECT, format_args!("{words}")).to_string()
}

#[test]
fn figures_are_those_that_were_played() {
    let mut stage = Stage::default();
    let mut ts = 1_000_000;
    for _ in 0..10 {
        let end = stage.call(ts, APP, &Tree::leaf(SERVER, 64, 16, 50_000), 0);
        ts = stage.pause(end, APP, Pause { work: 10_000, sleep: 80_000 });
    }
    let found = figures(&stage.recording(), None);
    // 500 until the wake-up, 1000 in the queue, 700 until the receipt; 300, 1000 and 400 on the way back.
    let latency = 50_000 + 2_200 + 1_700;
    let period = latency + 10_000 + 80_000 + 1_000;
    assert_eq!(found.all.latency_ns, [latency; 10]);
    assert_eq!(found.all.service_ns, [50_000; 10]);
    assert_eq!(found.span_ns, 9 * period + latency);
    assert_eq!((found.all.calls, found.all.oneway, found.all.most_at_once), (10, 0, 1));
    assert!((found.all.concurrency - (10 * latency) as f64 / found.span_ns as f64).abs() < 1e-9);
    assert_eq!((found.pairs.len(), found.pairs[0].0.as_str()), (1, "p1 -> p2"));
    // In its call, a client sleeps once; the server goes on until after the reply.
    let pair = &found.pairs[0].1;
    assert_eq!((pair.switches, pair.wakeups), (Some(2.0), Some(2.0)));
    // The client sleeps twice for each call, but not behind the last one.
    assert_eq!((found.all.switches, found.all.wakeups), (Some(2.9), Some(2.9)));
}

#[test]
fn a_trace_without_events_of_the_scheduler_has_no_switches() {
    let mut stage = Stage::default();
    stage.call(1_000_000, APP, &Tree::leaf(SERVER, 64, 16, 50_000), 0);
    let (mut events, names) = stage.sorted();
    events.retain(|event| matches!(event.kind, Kind::Binder(..)));
    let found = figures(&crate::fixtures::recording(&events, &names), None);
    assert_eq!((found.all.switches, found.all.wakeups), (None, None));
    let distance = Distance::of(&found, &found, None);
    assert_eq!(distance.notes.len(), 2);
    assert_eq!(row(&distance, "switches per call").factor, None);
}

#[test]
fn a_load_is_at_no_distance_from_itself_and_far_from_a_slower_one() {
    let one = figures(&load(200, 40_000, 0), None);
    let itself = Distance::of(&one, &one, None);
    assert!(itself.beyond(1.000_001).is_empty(), "{:?}", itself.beyond(1.0));
    assert_eq!(row(&itself, "latency, distribution").ks, Some(0.0));
    let slower = figures(&load(200, 80_000, 0), None);
    let distance = Distance::of(&one, &slower, None);
    let median = row(&distance, "latency p50");
    assert!(median.ratio.is_some_and(|ratio| (1.8..2.2).contains(&ratio)), "{median:?}");
    assert!(row(&distance, "latency, distribution").ks.is_some_and(|ks| ks > 0.8));
    assert!(distance.beyond(1.5).iter().any(|far| far.starts_with("latency p50")));
    assert!(distance.beyond(3.0).is_empty(), "{:?}", distance.beyond(3.0));
    // The distance is the same from the other side.
    let back = Distance::of(&slower, &one, None);
    assert_eq!(row(&back, "latency p50").factor, median.factor);
    assert!(distance.to_json().expect("JSON").contains("\"figure\": \"latency p50\""));
}

#[test]
fn the_halves_of_a_steady_load_are_near_and_those_of_a_drifting_one_are_not() {
    for (drift, near) in [(0, true), (300, false)] {
        let recording = load(400, 40_000, drift);
        let (first, second) =
            (figures(&recording, Some(Half::First)), figures(&recording, Some(Half::Second)));
        assert!(first.all.calls.abs_diff(second.all.calls) < 60);
        let distance = Distance::of(&first, &second, None);
        let far = distance.beyond(1.3);
        assert_eq!(far.is_empty(), near, "{far:?}");
        let whole = figures(&recording, None);
        let with = Distance::of(&whole, &whole, Some((&first, &second)));
        assert_eq!(row(&with, "latency p90").halves, row(&distance, "latency p90").factor);
    }
}

#[test]
fn the_kolmogorov_smirnov_distance_is_the_textbooks() {
    assert_eq!(kolmogorov_smirnov(&[1, 2, 3, 4], &[1, 2, 3, 4]), 0.0);
    assert_eq!(kolmogorov_smirnov(&[1, 2, 3, 4], &[5, 6, 7, 8]), 1.0);
    assert_eq!(kolmogorov_smirnov(&[1, 2, 3, 4], &[3, 4, 5, 6]), 0.5);
}

#[test]
fn a_zero_is_beyond_any_factor_and_two_are_alike() {
    assert!(value("x", "", Some(0.0), Some(3.0)).beyond);
    assert_eq!(value("x", "", Some(0.0), Some(0.0)).factor, Some(1.0));
    assert_eq!(value("x", "", None, Some(3.0)).factor, None);
}

#[test]
fn a_replay_says_which_process_is_which_and_where_its_load_begins() {
    let mut stage = Stage::default();
    let print = |text: String| Kind::Print(text.into());
    // Before the load, the client looks up the server at a manager.
    let looked_up = stage.call(1_000_000, APP, &Tree::leaf(9_000, 64, 16, 5_000), 0);
    stage.event(looked_up + 10, APP, print(mark("process=p2.0")));
    stage.event(looked_up + 20, SERVER, print(mark("process=p1")));
    stage.event(looked_up + 30, 5_000, print(mark("process=a/bad name")));
    let warm = stage.call(looked_up + 1_000, APP, &Tree::leaf(SERVER, 64, 16, 5_000), 0);
    stage.event(warm + 10, APP, print(mark("load=begin")));
    let mut ts = warm + 1_000;
    for _ in 0..3 {
        ts = stage.call(ts, APP, &Tree::leaf(SERVER, 64, 16, 5_000), 0) + 1_000;
    }
    stage.event(ts, APP, print(mark("load=end")));
    stage.call(ts + 1_000, APP, &Tree::leaf(SERVER, 64, 16, 5_000), 0);
    let recording = stage.recording();
    let found = figures(&recording, None);
    assert_eq!((found.all.calls, found.processes), (3, 2));
    assert_eq!(found.pairs[0].0, "p2 -> p1");
    let pairs: Vec<&str> = found.pairs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(pairs, ["p2 -> p1"]);
}

#[test]
fn a_pair_that_the_replay_lacks_is_named() {
    let mut stage = Stage::default();
    let end = stage.call(1_000_000, APP, &Tree::leaf(SERVER, 64, 16, 5_000), 0);
    stage.call(end + 1_000, APP, &Tree::leaf(3_000, 64, 16, 5_000), 0);
    let (both, one) = (figures(&stage.recording(), None), figures(&load(3, 5_000, 0), None));
    let distance = Distance::of(&both, &one, None);
    assert_eq!(distance.only_original, [("p1 -> p3".to_owned(), 1)]);
    assert!(distance.beyond(100.0).iter().any(|far| far == "p1 -> p3: no call in the replay"));
    assert!(Distance::of(&one, &both, None).only_replay.iter().any(|(name, _)| name == "p1 -> p3"));
}

#[test]
fn the_texts_have_no_name_of_the_trace() {
    let recording = load(30, 40_000, 0);
    let found = figures(&recording, None);
    let text = found.to_string() + &Distance::of(&found, &found, None).to_string();
    assert!(!text.contains(SECRET));
    for word in ["p1 -> p2", "latency p99", "wake-ups per call", "all calls"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
