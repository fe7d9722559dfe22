//! Made-up sweeps with known answers.

use super::*;
use crate::fixtures::{Pair, latency_run};
use crate::schema::Percentiles;
use crate::verdict;

fn point(rate_hz: Option<f64>) -> Point {
    Point { pairs: 2, payload_bytes: 64, load: String::new(), rate_hz }
}

fn with_raw(mut run: Run) -> Run {
    for case in &mut run.cases {
        let numbers = verdict::numbers(case).expect("it has numbers").clone();
        let latency = case.latency.as_mut().expect("a case of a latency test");
        // Times ascend by 1 ns; the width of the buckets does not matter here.
        let calls = numbers.iterations;
        latency.raw = (0..calls).map(|call| numbers.samples.min + call).collect();
        if latency.misses > 0 {
            latency.raw[999] = 3_000_000;
        }
    }
    run
}

/// A sweep over these rates, each with its number of misses of the only deadline, out of 1000 calls.
fn at_rates(rungs: &[(f64, u64)]) -> Sweep {
    let cell = |&(rate, misses): &(f64, u64)| Cell {
        point: point(Some(rate)),
        class: Class::Fifo,
        calls: 1000,
        misses: vec![misses],
        worst: 9_000_000,
        percentiles: None,
        failed: None,
    };
    Sweep {
        deadlines: vec![2_500_000],
        meet: 0.99,
        confidence: 0.95,
        cells: rungs.iter().map(cell).collect(),
    }
}

#[test]
fn misses_are_of_calls_longer_than_the_deadline() {
    assert_eq!(misses(&[10, 20, 30, 30], &[5, 10, 29, 30, 31]), [4, 3, 2, 0, 0]);
    assert_eq!(misses(&[], &[5]), [0]);
}

#[test]
fn a_point_s_cells_are_of_all_pairs_and_exact() {
    let run = with_raw(latency_run(&[Pair::healthy(0), Pair::healthy(1)]));
    let found = cells(&run, &point(None), &[50_009, 51_000, 60_000, 2_500_000, 3_000_000]);
    let [fifo, other] = &found[..] else { panic!("a cell for each class: {found:?}") };
    assert_eq!((fifo.class, fifo.calls, fifo.worst), (Class::Fifo, 2000, 3_000_000));
    // 10 calls of the first pair take up to 50,009 ns, none of the second.
    assert_eq!(fifo.misses, [1990, 1000, 2, 2, 0]);
    assert_eq!((other.class, other.misses[2]), (Class::Other, 2000));
    let percentiles: Percentiles = fifo.percentiles.expect("they were told");
    assert_eq!(percentiles.p50, 51_000);
    assert_eq!(fifo.failed, None);
}

#[test]
fn a_failed_pair_marks_its_point_and_a_class_without_calls_has_no_cell() {
    let run = with_raw(latency_run(&[Pair::healthy(0), Pair::failed(1, "killed")]));
    assert_eq!(cells(&run, &point(None), &[1])[0].failed.as_deref(), Some("killed"));
    let run = with_raw(latency_run(&[Pair::healthy(0).without(Class::Fifo)]));
    let classes: Vec<Class> = cells(&run, &point(None), &[1]).iter().map(|cell| cell.class).collect();
    assert_eq!(classes, [Class::Other]);
}

#[test]
fn a_rate_is_sustained_as_far_as_the_confidence_goes() {
    // A share of 0.99 with 95 % confidence allows 4 misses in 1000 calls.
    for (misses, holds) in [(0, true), (4, true), (5, false), (10, false), (1000, false)] {
        let sweep = at_rates(&[(100.0, misses)]);
        assert_eq!(super::holds(&sweep, &sweep.cells[0], 0), holds, "{misses} misses");
    }
    let mut few = at_rates(&[(100.0, 0)]);
    few.cells[0].calls = 267;
    assert!(!super::holds(&few, &few.cells[0], 0), "267 calls cannot tell, whatever they took");
    let mut failed = at_rates(&[(100.0, 0)]);
    failed.cells[0].failed = Some("killed".to_owned());
    assert!(!super::holds(&failed, &failed.cells[0], 0));
}

#[test]
fn what_is_sustained_is_the_highest_rate_that_holds() {
    let found = sustained(&at_rates(&[(1000.0, 0), (100.0, 0), (2000.0, 4), (5000.0, 800)]));
    let [found] = &found[..] else { panic!("one point, one class, one deadline: {found:?}") };
    assert_eq!(
        (found.rate_hz, found.fails_at_hz, found.total_hz()),
        (Some(2000.0), Some(5000.0), Some(4000.0))
    );
    let all = &sustained(&at_rates(&[(100.0, 0), (200.0, 1)]))[0];
    assert_eq!((all.rate_hz, all.fails_at_hz), (Some(200.0), None));
    let none = &sustained(&at_rates(&[(100.0, 50), (200.0, 90)]))[0];
    assert_eq!((none.rate_hz, none.fails_at_hz, none.total_hz()), (None, Some(100.0), None));
    let mut unpaced = at_rates(&[(100.0, 0)]);
    unpaced.cells[0].point.rate_hz = None;
    assert_eq!(sustained(&unpaced), []);
}

#[test]
fn each_deadline_and_class_is_a_question_of_its_own() {
    let mut sweep = at_rates(&[(100.0, 0), (1000.0, 0)]);
    sweep.deadlines = vec![1000, 2_500_000];
    sweep.cells[0].misses = vec![4, 0];
    sweep.cells[1].misses = vec![900, 0];
    let mut other = sweep.cells[0].clone();
    other.class = Class::Other;
    sweep.cells.push(other);
    let found: Vec<_> = sustained(&sweep).iter().map(|at| (at.class, at.deadline, at.rate_hz)).collect();
    assert_eq!(
        found,
        [
            (Class::Fifo, 1000, Some(100.0)),
            (Class::Fifo, 2_500_000, Some(1000.0)),
            (Class::Other, 1000, Some(100.0)),
            (Class::Other, 2_500_000, Some(100.0)),
        ]
    );
}

#[test]
fn climbing_finds_the_highest_rung_of_each_question_and_measures_none_twice() {
    for limits in [[0, 3], [7, 7], [4, 1], [0, 0], [1, 6]] {
        let mut measured = Vec::new();
        let found = climb(7, 2, |rung| {
            measured.push(rung);
            Ok::<_, ()>(limits.iter().map(|limit| Some(rung < *limit)).collect())
        });
        assert_eq!(found, Ok(limits.iter().map(|limit| limit.checked_sub(1)).collect()), "{limits:?}");
        let mut once = measured.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), measured.len(), "{measured:?}");
        for limit in limits {
            assert!(
                limit == 0 || measured.contains(&(limit - 1)),
                "{limit} of {measured:?}: what holds was seen"
            );
            assert!(limit == 7 || measured.contains(&limit), "{limit} of {measured:?}: what fails was seen");
        }
    }
    let mut single = Vec::new();
    let found = climb(100, 1, |rung| {
        single.push(rung);
        Ok::<_, ()>(vec![Some(rung <= 41)])
    });
    assert_eq!(found, Ok(vec![Some(41)]));
    assert!(single.len() <= 7, "it halves: {single:?}");
}

#[test]
fn a_question_without_an_answer_ends_and_an_error_ends_all() {
    let mut measured = 0;
    let found = climb(8, 2, |rung| {
        measured += 1;
        Ok::<_, ()>(vec![None, Some(rung < 4)])
    });
    assert_eq!(found, Ok(vec![None, Some(3)]));
    let mut measured = 0;
    let failed: Result<_, &str> = climb(8, 1, |_| {
        measured += 1;
        Err("the driver went away")
    });
    assert_eq!((failed, measured), (Err("the driver went away"), 1));
    assert_eq!(climb(0, 1, |_| Err("nothing is to be measured")), Ok(vec![None]));
}

#[test]
fn a_joined_run_is_sound_and_counts_all() {
    let sweep_at = |pairs: &[Pair], at: &Point| {
        let mut run = with_raw(latency_run(pairs));
        for case in &mut run.cases {
            case.name = case.name.replacen("latency_hwbinder", &format!("latency_hwbinder/{}", at.name()), 1);
        }
        let cells = cells(&run, at, &[100_000]);
        (run, cells)
    };
    let points = [(1, None), (2, Some(0.5))].map(|(pairs, rate_hz)| Point {
        pairs,
        payload_bytes: 0,
        load: "cpu:2,io:1".to_owned(),
        rate_hz,
    });
    let mut whole = None;
    let mut cells = Vec::new();
    let groups = [vec![Pair::healthy(0)], vec![Pair::healthy(0), Pair::failed(1, "killed")]];
    for (pairs, at) in groups.iter().zip(&points) {
        let (mut run, found) = sweep_at(pairs, at);
        run.overloaded = at.pairs == 2;
        let finding = |severity, text: String| Finding::new("x", severity, text);
        run.findings.push(finding(Severity::Warning, format!("load {}", at.pairs)));
        run.findings.push(finding(Severity::Error, format!("lost {}", at.pairs)));
        forget_raw(&mut run);
        cells.extend(found);
        join(&mut whole, run);
    }
    let mut run = whole.expect("two runs");
    let test = run.measured.latency_mut().expect("a latency test");
    test.sweep = Some(Sweep { deadlines: vec![100_000], meet: 0.99, confidence: 0.95, cells });
    assert_eq!((test.pairs, test.inheritance.calls, run.cases.len()), (2, 4020, 6));
    assert!(run.overloaded && run.latency().is_some_and(|test| test.all.is_empty()));
    let said: Vec<&str> = run.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(said, ["load 1", "lost 1", "lost 2"]);
    let name = "latency_hwbinder/pairs:2/payload:0/load:cpu:2_io:1/rate:0.5/pair:1/other";
    assert_eq!(run.cases[5].name, name);
    assert_eq!(run.cases[5].per_family_instance_index, 5);
    assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("a sound record"), run);
}

#[test]
fn a_backlog_is_given_the_time_to_show() {
    assert_eq!(calls_at(1000.0, 500, 2_500_000), 500, "50 calls in 20 deadlines are fewer than asked for");
    assert_eq!(calls_at(100_000.0, 500, 10_000_000), 20_000);
    assert_eq!(calls_at(0.5, 500, 10_000_000), 500);
}

#[test]
fn so_many_calls_show_it_and_one_less_does_not() {
    for (meet, confidence) in [(0.99, 0.95), (0.9, 0.99), (0.999, 0.95), (0.5, 0.5), (0.1, 0.95)] {
        let needed = calls_needed(meet, confidence).expect("it can be shown");
        let shows = |calls| wilson_lower(calls, calls, confidence).is_some_and(|bound| bound >= meet);
        assert!(shows(needed) && (needed == 1 || !shows(needed - 1)), "{meet} {confidence}: {needed}");
    }
    assert_eq!(calls_needed(0.99, 0.95), Some(268));
    assert_eq!((calls_needed(1.0, 0.95), calls_needed(0.9, 1.0)), (None, None));
}
