//! Each rule of a latency test, broken once.

use crate::fixtures::{Pair, latency_run};
use crate::schema::{Cell, Class, Latency, LatencyTest, Measured, Percentiles, Point, Run, Sweep};
use crate::{ReadError, Role, Sched};

fn healthy() -> Run {
    latency_run(&[Pair::healthy(0), Pair::healthy(1)])
}

fn said(run: &Run) -> String {
    let error = run.check().expect_err("a rule is broken");
    assert!(matches!(error, ReadError::Inconsistent { .. }));
    error.to_string()
}

#[test]
fn a_sound_run_is_read_back_unchanged() {
    let mut runs = vec![healthy(), latency_run(&[Pair::failed(0, "killed"), Pair::healthy(1)])];
    let latency = runs[0].cases[0].latency.as_mut().expect("a case of a latency test");
    (latency.raw, latency.load, latency.rate_hz) = (vec![50_000; 1000], "cpu:4".to_owned(), Some(1000.0));
    for run in runs {
        assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("a sound record"), run);
    }
}

fn latency(run: &mut Run) -> &mut Latency {
    run.cases[0].latency.as_mut().expect("a case of a latency test")
}

fn test(run: &mut Run) -> &mut LatencyTest {
    run.measured.latency_mut().expect("a latency test")
}

/// A rule of the run that is broken, and a part of the message.
type Broken = (fn(&mut Run), &'static str);

fn assert_refused(sound: &Run, table: &[Broken]) {
    sound.check().expect("it is sound");
    for (broken, expected) in table {
        let mut run = sound.clone();
        broken(&mut run);
        let said = said(&run);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn numbers_of_a_case_that_contradict_each_other() {
    let table: [Broken; 13] = [
        (|run| latency(run).misses = 1001, "1001 misses of 1000 calls"),
        (|run| latency(run).bubbles = 2, "2 bubbles of 1 misses"),
        (|run| latency(run).migrated = 101, "1001 calls on the same CPU or migrated"),
        (|run| latency(run).migrated = u64::MAX, "18446744073709551615 migrated of 1000 calls"),
        (|run| latency(run).not_inherited = 1001, "1001 not_inherited of 1000 calls"),
        (|run| latency(run).raw = vec![1; 1001], "1001 single times"),
        (|run| latency(run).pair = 2, "pair 2 of 2"),
        (|run| latency(run).pairs = 3, "one of 3 pairs, the test has 2"),
        (|run| latency(run).load = "x".repeat(201), "bytes to say the load"),
        (|run| latency(run).rate_hz = Some(0.0), "a rate of 0"),
        (|run| latency(run).rate_hz = Some(f64::NAN), "a rate of NaN"),
        (|run| latency(run).percentiles.as_mut().expect("has calls").p90 = 1, "do not ascend"),
        (|run| latency(run).percentiles.as_mut().expect("has calls").p99 = u64::MAX, "beyond"),
    ];
    assert_refused(&healthy(), &table);
}

#[test]
fn a_test_that_contradicts_its_cases_or_itself() {
    const ROLE: Role = Role {
        role: String::new(),
        pid: 1,
        tid: 1,
        cpu: 0,
        sched: Sched { policy: 0, priority: 0, nice: 0 },
        transitional: false,
    };
    let table: [Broken; 11] = [
        (|run| test(run).pairs = 0, "0 pairs"),
        (|run| test(run).pairs = u32::MAX, "pairs, not 1 to"),
        (|run| test(run).inheritance.not_inherited = u64::MAX, "calls not inherited of"),
        (|run| test(run).inheritance.hops = vec![test(run).inheritance.hops[0].clone(); 1001], "1001 hops"),
        (|run| test(run).injected = vec![String::new(); 1001], "1001 faults"),
        (|run| test(run).roles = vec![ROLE; 1001], "1001 roles"),
        (|run| test(run).all.extend_from_within(..1), "twice"),
        (|run| test(run).all[0].percentiles.p50 = u64::MAX, "do not ascend"),
        (|run| run.measured = Measured::Cases, "which the run is not"),
        (|run| latency(run).class = Class::Other, "pair 0 has two cases of class other"),
        (|run| run.cases[0].repetitions.extend_from_within(..), "2 repetitions"),
    ];
    assert_refused(&healthy(), &table);
    let mut run = healthy();
    run.cases[0].repetitions.clear();
    *latency(&mut run) = Latency { misses: 0, bubbles: 0, same_cpu: 0, ..latency(&mut run).clone() };
    assert!(said(&run).contains("percentiles of no calls"));
}

#[test]
fn a_sweep_that_contradicts_itself() {
    fn sweep(run: &mut Run) -> &mut Sweep {
        test(run).sweep.as_mut().expect("a sweep")
    }
    let point = Point { pairs: 1, payload_bytes: 0, load: String::new(), rate_hz: Some(100.0) };
    let cell = Cell {
        point,
        class: Class::Fifo,
        calls: 100,
        misses: vec![7, 3],
        worst: 9,
        percentiles: Percentiles::of(&mut [4]),
        failed: None,
    };
    let mut sound = healthy();
    test(&mut sound).sweep =
        Some(Sweep { deadlines: vec![5, 8], meet: 0.99, confidence: 0.95, cells: vec![cell] });
    let table: [Broken; 16] = [
        (|run| sweep(run).deadlines.clear(), "0 deadlines"),
        (|run| sweep(run).deadlines = vec![2, 2], "do not ascend"),
        (|run| sweep(run).deadlines = vec![3, 2], "do not ascend"),
        (|run| sweep(run).meet = 0.0, "a share of 0"),
        (|run| sweep(run).meet = 1.0, "a share of 1"),
        (|run| sweep(run).meet = f64::NAN, "a share of NaN"),
        (|run| sweep(run).confidence = 1.0, "confidence 1"),
        (|run| sweep(run).confidence = 0.4, "confidence 0.4"),
        (|run| sweep(run).cells[0].point.pairs = 0, "cell 0: 0 pairs"),
        (|run| sweep(run).cells[0].point.rate_hz = Some(f64::INFINITY), "a rate of inf"),
        (|run| sweep(run).cells[0].point.load = "x".repeat(201), "bytes to say the load"),
        (|run| sweep(run).cells[0].misses = vec![1], "misses of 1 deadlines, there are 2"),
        (|run| sweep(run).cells[0].misses = vec![1, 2], "more misses of a later deadline"),
        (|run| sweep(run).cells[0].misses = vec![101, 0], "101 misses of 100 calls"),
        (|run| sweep(run).cells[0].worst = 3, "4 units of the 99th percentile of 3"),
        (|run| sweep(run).cells = vec![sweep(run).cells[0].clone(); 100_001], "100001 cells"),
    ];
    assert_refused(&sound, &table);
}
