//! Room: each rule of a latency test, broken.

use crate::sample::{Pair, latency_run};
use crate::schema::{Cell, Class, Latency, LatencyTest, Percentiles, Point, Run, Sweep};
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

#[test]
fn numbers_of_a_case_that_contradict_each_other() {
    type Break = fn(&mut Latency);
    let table: [(Break, &str); 13] = [
        (|latency| latency.misses = 1001, "1001 misses of 1000 calls"),
        (|latency| latency.bubbles = 2, "2 bubbles of 1 misses"),
        (|latency| latency.migrated = 101, "1001 calls on the same CPU or migrated"),
        (|latency| latency.migrated = u64::MAX, "overflow"),
        (|latency| latency.not_inherited = 1001, "1001 calls not inherited"),
        (|latency| latency.raw = vec![1; 1001], "1001 single times"),
        (|latency| latency.pair = 2, "pair 2 of 2"),
        (|latency| latency.pairs = 3, "one of 3 pairs, the test has 2"),
        (|latency| latency.load = "x".repeat(201), "bytes to say the load"),
        (|latency| latency.rate_hz = Some(0.0), "a rate of 0"),
        (|latency| latency.rate_hz = Some(f64::NAN), "a rate of NaN"),
        (|latency| latency.percentiles.as_mut().expect("has calls").p90 = 1, "do not ascend"),
        (|latency| latency.percentiles.as_mut().expect("has calls").p99 = u64::MAX, "beyond"),
    ];
    for (broken, expected) in table {
        let mut run = healthy();
        broken(run.cases[0].latency.as_mut().expect("a case of a latency test"));
        let said = said(&run);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_test_that_contradicts_its_cases_or_itself() {
    type Break = fn(&mut LatencyTest);
    let table: [(Break, &str); 7] = [
        (|test| test.pairs = 0, "0 pairs"),
        (|test| test.pairs = u32::MAX, "pairs, not 1 to"),
        (|test| test.inheritance.not_inherited = u64::MAX, "calls not inherited of"),
        (|test| test.inheritance.hops = vec![test.inheritance.hops[0].clone(); 1001], "1001 hops"),
        (|test| test.injected = vec![String::new(); 1001], "1001 faults"),
        (|test| test.all.push(test.all[0]), "twice"),
        (|test| test.all[0].percentiles.p50 = u64::MAX, "do not ascend"),
    ];
    for (broken, expected) in table {
        let mut run = healthy();
        broken(run.latency.as_mut().expect("a latency test"));
        let said = said(&run);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let role =
        Role { role: "main".to_owned(), pid: 1, tid: 1, cpu: 0, sched: Sched::other(0), transitional: false };
    let mut run = healthy();
    run.latency.as_mut().expect("a latency test").roles = vec![role; 1001];
    assert!(said(&run).contains("1001 roles"));
}

#[test]
fn cases_that_do_not_belong_together() {
    let mut run = healthy();
    run.latency = None;
    assert!(said(&run).contains("which the run is not"));

    let mut run = healthy();
    run.cases[0].latency.as_mut().expect("a case of a latency test").class = Class::Other;
    assert!(said(&run).contains("pair 0 has two cases of class other"));

    let mut run = healthy();
    let repetition = run.cases[0].repetitions[0].clone();
    run.cases[0].repetitions.push(repetition);
    assert!(said(&run).contains("2 repetitions"));

    let mut run = healthy();
    run.cases[0].repetitions.clear();
    let latency = run.cases[0].latency.as_mut().expect("a case of a latency test");
    *latency = Latency { misses: 0, bubbles: 0, same_cpu: 0, ..latency.clone() };
    assert!(said(&run).contains("percentiles of no calls"));
}

#[test]
fn a_sweep_that_contradicts_itself() {
    type Break = fn(&mut Sweep);
    let table: [(Break, &str); 16] = [
        (|sweep| sweep.deadlines.clear(), "0 deadlines"),
        (|sweep| sweep.deadlines = vec![2, 2], "do not ascend"),
        (|sweep| sweep.deadlines = vec![3, 2], "do not ascend"),
        (|sweep| sweep.meet = 0.0, "a share of 0"),
        (|sweep| sweep.meet = 1.0, "a share of 1"),
        (|sweep| sweep.meet = f64::NAN, "a share of NaN"),
        (|sweep| sweep.confidence = 1.0, "confidence 1"),
        (|sweep| sweep.confidence = 0.4, "confidence 0.4"),
        (|sweep| sweep.cells[0].point.pairs = 0, "cell 0: 0 pairs"),
        (|sweep| sweep.cells[0].point.rate_hz = Some(f64::INFINITY), "a rate of inf"),
        (|sweep| sweep.cells[0].point.load = "x".repeat(201), "bytes to say the load"),
        (|sweep| sweep.cells[0].misses = vec![1], "misses of 1 deadlines, there are 2"),
        (|sweep| sweep.cells[0].misses = vec![1, 2], "more misses of a later deadline"),
        (|sweep| sweep.cells[0].misses = vec![101, 0], "101 misses of 100 calls"),
        (|sweep| sweep.cells[0].worst = 3, "4 units of the 99th percentile of 3"),
        (|sweep| sweep.cells = vec![sweep.cells[0].clone(); 100_001], "100001 cells"),
    ];
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
    let sound = Sweep { deadlines: vec![5, 8], meet: 0.99, confidence: 0.95, cells: vec![cell] };
    for (broken, expected) in table {
        let mut run = healthy();
        let mut sweep = sound.clone();
        run.latency.as_mut().expect("a latency test").sweep = Some(sweep.clone());
        run.check().expect("it is sound");
        broken(&mut sweep);
        run.latency.as_mut().expect("a latency test").sweep = Some(sweep);
        let said = said(&run);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
