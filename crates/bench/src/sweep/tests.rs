//! Tests of the sweep: the points of a grid, their options, invalid grids.

use super::*;
use crate::plan::Flavour;

fn grid() -> Grid {
    Grid {
        base: LatencyOptions { iterations: 500, ..LatencyOptions::usual(Flavour::Hwbinder) },
        pairs: vec![1, 2],
        payloads: vec![0, 64],
        loads: vec![Vec::new(), vec!["cpu:2".parse().expect("a load")]],
        deadlines_us: vec![100, 10_000],
        rates: vec![1000.0, 100_000.0],
        meet: 0.99,
        confidence: 0.95,
    }
}

#[test]
fn points_are_every_combination_once() {
    let mut twice = grid();
    twice.pairs.push(1);
    let names: Vec<String> = twice.points().iter().map(|point| point.place.name()).collect();
    assert_eq!(
        names,
        [
            "pairs:1/payload:0",
            "pairs:2/payload:0",
            "pairs:1/payload:64",
            "pairs:2/payload:64",
            "pairs:1/payload:0/load:cpu:2",
            "pairs:2/payload:0/load:cpu:2",
            "pairs:1/payload:64/load:cpu:2",
            "pairs:2/payload:64/load:cpu:2",
        ]
    );
}

#[test]
fn a_point_asks_for_what_it_names_and_for_single_times() {
    let grid = grid();
    let point = &grid.points()[7];
    let options = grid.ask_at(point);
    assert_eq!((options.pairs, options.payload, options.loads.len(), options.iterations), (2, 64, 1, 500));
    assert_eq!((options.deadline_us, options.raw, options.rate_hz), (10_000, true, None));
    assert_eq!(
        options.case_name(0, Class::Fifo),
        "latency_hwbinder/pairs:2/payload:64/load:cpu:2/pair:0/fifo"
    );
    let fast = grid.ask_at(&point.paced(100_000.0));
    assert_eq!((fast.rate_hz, fast.iterations), (Some(100_000.0), 10_000), "as long as 20 deadlines");
    assert_eq!(grid.ask_at(&point.paced(1000.0)).iterations, 500);
}

#[test]
fn what_cannot_be_says_the_limit() {
    let why = |change: fn(&mut Grid)| {
        let mut grid = grid();
        change(&mut grid);
        grid.check().expect_err("cannot be")
    };
    assert_eq!(grid().check(), Ok(()));
    assert!(why(|grid| grid.pairs.clear()).contains("0 numbers of pairs"));
    assert!(why(|grid| grid.pairs = vec![0]).contains("0 pairs"));
    assert!(why(|grid| grid.deadlines_us = vec![5, 5]).contains("ascend"));
    assert!(why(|grid| grid.deadlines_us = vec![0, 5]).contains("above 0"));
    assert!(why(|grid| grid.rates = vec![2.0, 1.0]).contains("ascend"));
    assert!(why(|grid| grid.rates = vec![0.0]).contains("per second"));
    assert!(why(|grid| grid.rates = vec![f64::NAN]).contains("per second"));
    assert!(why(|grid| grid.meet = 1.0).contains("share of 1"));
    assert!(why(|grid| grid.confidence = 0.2).contains("confidence of 0.2"));
    assert!(why(|grid| grid.base.iterations = 267).contains("use -i 268"));
    assert!(why(|grid| (grid.pairs, grid.base.iterations) = (vec![3, 2], 133)).contains("use -i 134"));
    assert!(why(|grid| grid.payloads = vec![2 << 20]).contains("pairs:1/payload:2097152: "));
    assert!(why(|grid| grid.payloads = (0..1001).collect()).contains("1001 payloads"));
    assert!(
        why(|grid| grid.loads = vec![vec!["cpu:200".parse().expect("a load"); 2]]).contains("400 processes")
    );
}
