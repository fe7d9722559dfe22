//! A made-up sweep with known answers, as tables and JSON.

use super::*;
use crate::fixtures::{Pair, latency_run};
use crate::render::latency::{Options, json, table};
use crate::render::summary::summary;
use crate::schema::{ClockUnit, Percentiles};
use serde_json::{Value, json as expected};

/// Two points, one of them with three rates; two deadlines; 1000 calls each.
fn swept() -> Run {
    let mut run = latency_run(&[Pair::healthy(0), Pair::healthy(1)]);
    let cell = |pairs, load: &str, rate_hz, class, misses: [u64; 2]| Cell {
        point: Point { pairs, payload_bytes: 64, load: load.to_owned(), rate_hz },
        class,
        calls: 1000,
        misses: misses.to_vec(),
        worst: 3_000_000,
        percentiles: Some(Percentiles { p50: 50_000, p90: 60_000, p95: 70_000, p99: 2_600_000 }),
        failed: None,
    };
    // In the order in which the bisection measures them.
    let mut cells = vec![
        cell(2, "", None, Class::Fifo, [500, 0]),
        cell(2, "", Some(2000.0), Class::Fifo, [1000, 5]),
        cell(2, "", Some(1000.0), Class::Fifo, [4, 0]),
        cell(2, "", Some(5000.5), Class::Fifo, [1000, 900]),
        cell(1, "cpu:2", None, Class::Other, [3, 3]),
    ];
    cells[4].failed = Some("the server was killed".to_owned());
    let sweep = Sweep { deadlines: vec![100_000, 2_500_000], meet: 0.99, confidence: 0.95, cells };
    run.measured.latency_mut().expect("a latency test").sweep = Some(sweep);
    run.check().expect("it is sound");
    run
}

#[test]
fn the_table_shows_a_curve_in_each_row_and_what_is_sustained() {
    let text = table(&swept());
    let expected = include_str!("golden.txt");
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("pairs:1/payload:64/load:cpu:2 other FAILED: the server was killed\n"), "{text}");
    assert!(text.contains("inheritance PASS") && !text.contains("P0"), "{text}");
    assert!(summary(&swept(), "").contains(expected), "the summary has it, too");
}

#[test]
fn the_json_of_a_sweep() {
    let text = json(&swept(), &Options { verbose: true, raw: true, android: false });
    let shown: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        shown["cfg"],
        expected!({"pairs": [2, 1], "payload_bytes": [64], "load": ["", "cpu:2"], "rate_hz": [1000, 2000, 5000.5],
            "deadline_us": [100, 2500], "iterations": 1000, "meet": 0.99, "confidence": 0.95})
    );
    let cell = &shown["cells"][2];
    assert_eq!(
        (&cell["rate_hz"], &cell["class"], &cell["load"]),
        (&2000.into(), &"fifo".into(), &Value::Null)
    );
    assert_eq!(cell["dis_ms"]["p99"], 2.6);
    let on_curve = &cell["curve"][1];
    assert_eq!((&on_curve["miss"], &on_curve["meetR"]), (&5.into(), &0.995.into()));
    let low = on_curve["meetR_low"].as_f64().expect("a number");
    assert!((0.9896..0.99).contains(&low), "{low}: 5 misses of 1000 leave room for more than 1 %");
    assert_eq!(shown["cells"][4]["failed"], "the server was killed");
    assert_eq!(
        shown["sustained"][1],
        expected!({"pairs": 2, "payload_bytes": 64, "load": null, "rate_hz": null, "class": "fifo",
            "deadline_us": 2500, "sustained_hz": 1000, "all_pairs_hz": 2000, "fails_at_hz": 2000})
    );
    assert_eq!(
        (&shown["inheritance"], &shown["P0"], &shown["load"]),
        (&"PASS".into(), &Value::Null, &Value::Null)
    );
}

#[test]
fn limits_that_no_rate_reached_are_said() {
    let mut run = swept();
    let sweep = run.measured.latency_mut().and_then(|test| test.sweep.as_mut()).expect("a sweep");
    sweep.cells.retain(|cell| cell.point.rate_hz == Some(1000.0));
    sweep.cells[0].misses = vec![5, 0];
    let row = "\npairs:2/payload:64 fifo    none  >=2000\n";
    assert!(table(&run).contains(row), "{}", table(&run));
}

#[test]
fn a_share_is_never_rounded_up_to_all() {
    assert_eq!(share(1, 1_000_000), "0.9999");
    assert_eq!((share(0, 7), share(7, 7), share(0, 0)), ("1".to_owned(), "0.0000".to_owned(), String::new()));
    assert_eq!(share(913, 1000), "0.0870", "which floats make 0.0869");
    assert_eq!((percent(0.99), percent(0.999), percent(0.95)), (99.0, 99.9, 95.0));
}

#[test]
fn a_sweep_of_instructions_has_no_times() {
    let mut run = swept();
    run.clock.unit = ClockUnit::Instructions;
    let text = table(&run);
    assert!(text.contains("100000 insns") && !text.contains(" us") && !text.contains(" ms"), "{text}");
}
