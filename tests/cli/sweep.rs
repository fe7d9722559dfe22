//! `latency sweep` as a user calls it, on the embedded driver: its grid, its search, its record.
//! Not here: what is sustained of made-up numbers (`record::experiments::sweep`), one point (`latency`).

use crate::support::{Called, Folder, binderperf, read, recorded, refused, throughput, words};
use record::experiments::sweep::sustained::{holds, sustained};
use record::render::latency::{Options, json};
use record::{Class, Run};

fn sweep(words: &[&str]) -> Called {
    binderperf(&[&["latency", "sweep", "--driver=embedded"], words].concat())
}

fn swept(run: &Run) -> &record::Sweep {
    run.latency().and_then(|test| test.sweep.as_ref()).expect("a sweep")
}

#[test]
fn every_point_of_the_grid_is_measured_and_shown() {
    let folder = Folder::new("sweep-grid");
    let file = folder.path("sweep.json");
    let grid = "-w 1,2 --payload=0,64 --load=none --load=irq:1 --rates=none -i 20 --deadline-us=100000,1";
    let called = sweep(&[&words(grid)[..], &["--record", &file]].concat()).ended(0);
    let run = read(&file);
    let sweep = swept(&run);
    assert_eq!(sweep.deadlines, [1_000, 100_000_000]);
    let other: Vec<_> = sweep.cells.iter().filter(|cell| cell.class == Class::Other).collect();
    assert_eq!(other.len(), 8, "2 x 2 x 2 points");
    for cell in other {
        assert_eq!(cell.calls, 20 * u64::from(cell.point.pairs));
        assert_eq!(cell.misses[0], cell.calls, "no round trip takes but a microsecond");
        let family = format!("latency_hwbinder/{}/pair:0/other", cell.point.name());
        assert!(
            run.case(&family).is_some_and(|case| case.payload_bytes == cell.point.payload_bytes),
            "{family}"
        );
        called.printed(format!("{} other", cell.point.name()));
    }
    assert!(run.cases.iter().filter_map(|case| case.latency.as_ref()).all(|latency| latency.raw.is_empty()));
    assert!(sustained(sweep).is_empty() && !called.stdout.contains("Sustained"), "no search was asked for");

    binderperf(&["show", &file]).ended(0).printed("pairs:2/payload:64/load:irq:1 other");
    let shown = binderperf(&["show", "--format=latency-json", &file]);
    assert_eq!(shown.stdout, json(&run, &Options { verbose: true, raw: true, android: false }));
    assert_eq!(shown.json()["cells"].as_array().map(Vec::len), Some(sweep.cells.len()));
}

#[test]
fn the_search_ends_at_both_ends_of_the_rates() {
    // A tenth of the calls within 50 ms is what a machine full of other work manages, too.
    let grid = "-w 1 --payload=0 --rates=400,200 -i 20 --deadline-us=1,50000 --meet=0.1 --format=json";
    let (called, run) = recorded(0, sweep, &words(grid));
    let sweep = swept(&run);
    for at in sustained(sweep).iter().filter(|at| at.class == Class::Other) {
        let wanted = if at.deadline == 1_000 { (None, Some(200.0)) } else { (Some(400.0), None) };
        assert_eq!((at.rate_hz, at.fails_at_hz), wanted, "{at:?}");
    }
    let paced: Vec<_> = sweep.cells.iter().filter(|cell| cell.point.rate_hz == Some(400.0)).collect();
    assert!(!paced.is_empty());
    for cell in paced {
        assert!(!holds(sweep, cell, 0) && holds(sweep, cell, 1), "{cell:?}");
        assert!(cell.calls >= 200, "so many that a backlog would show: {cell:?}");
    }
    assert_eq!(called.json()["cfg"]["rate_hz"], serde_json::json!([200, 400]));
}

#[test]
fn what_cannot_be_measured_fails_and_what_makes_no_sense_is_refused() {
    sweep(&words("-w 2 --payload=0 --rates=100 -i 20 --deadline-us=10000 --meet=0.5 --inject=kill-server"))
        .ended(1)
        .printed("FAILED: the server died")
        .printed("none")
        .complained("pairs:2/payload:0/pair:0: the server died");
    let bad = "--rates=0 --meet=1 --pairs=0 --load=x --deadline-us=0 --payload=9999999 --iterations=9";
    for bad in words(bad) {
        sweep(&[bad]).ended(2);
    }
}

#[test]
fn only_latency_tests_are_shown_as_such() {
    let folder = Folder::new("sweep-show");
    let file = folder.path("other.json");
    let other = "--driver=embedded --controls=none --benchmark_filter=/4$ --benchmark_min_time=10x --record";
    throughput(&[&words(other)[..], &[&file]].concat()).ended(0);
    for format in ["latency-json", "latency-table"] {
        refused(binderperf, &[(&["show", "--format", format, &file], "not of a latency test")]);
    }
}
