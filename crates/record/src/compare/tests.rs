//! Comparisons of made-up runs with a known difference.

use super::gate::{GateOutcome as Kept, gate};
use super::*;
use crate::fixtures;
use crate::schema::{Driver, DriverKind, Finding, HostClass, Run, Severity};
use crate::{Measurement, Outcome};
use fastrand::Rng;

mod simulated;

/// A run of one case with these times.
fn run_of(times: &[u64]) -> Run {
    run_of_cases(&[("BM_sendVec_binder", 4, times)])
}

fn run_of_cases(cases: &[(&str, u64, &[u64])]) -> Run {
    let mut run = fixtures::run();
    let case = |(index, &(family, payload, times)): (u32, &(&str, u64, &[u64]))| {
        let numbers = fixtures::of_times(times.iter().copied());
        let numbers = Measurement { cpu_total: numbers.real_total / 2, ..numbers };
        fixtures::case(family, payload, index, vec![Outcome::Measured(numbers)])
    };
    run.cases = (0..).zip(cases).map(case).collect();
    run
}

fn group(name: &str, runs: Vec<Run>) -> Group {
    // Each run starts a minute after the one before.
    let named = |(at, run): (usize, Run)| {
        let started = format!("2026-01-31T{:02}:{:02}:00+01:00", at / 60, at % 60);
        Member { file: format!("{name}-{at}.json"), run: Run { started, ..run } }
    };
    Group { name: name.to_owned(), members: runs.into_iter().enumerate().map(named).collect() }
}

/// Runs around a level, with a spread of 1 % between runs.
fn around(name: &str, level: f64, runs: usize, seed: u64) -> Group {
    let mut rng = Rng::with_seed(seed);
    let run = |_| {
        let middle = level * (1.0 + 0.01 * crate::stats::normal(&mut rng));
        let times: Vec<u64> = (0..1000).map(|_| (middle * (1.0 + 0.1 * rng.f64())) as u64).collect();
        run_of(&times)
    };
    group(name, (0..runs).map(run).collect())
}

fn compared(a: &Group, b: &Group) -> Comparison {
    compare(a, b, &Options::default()).expect("comparable")
}

fn verdict(a: &Group, b: &Group) -> Verdict {
    compared(a, b).cases[0].verdict
}

#[test]
fn what_is_slower_is_called_slower_and_the_other_way_round_faster() {
    let (a, b) = (around("a", 50_000.0, 10, 1), around("b", 52_500.0, 10, 2));
    let found = compared(&a, &b);
    let case = &found.cases[0];
    assert_eq!((case.verdict, found.overall.word()), (Verdict::Slower, "slower"));
    let bounds = case.estimate.interval.expect("runs have one");
    assert!(bounds.low < 1.05 && 1.05 < bounds.high && bounds.high - bounds.low < 0.05, "{bounds:?}");
    assert!(case.p_adjusted.is_some_and(|p| p < 0.01) && case.estimate.basis == Basis::Runs(10, 10));
    assert_eq!(verdict(&b, &a), Verdict::Faster);
    assert_eq!(case.tail_verdict(), Some(Verdict::Slower), "all of it moved");
}

/// A folder of `run` holds the same cases as the scheduler placed them and as they were placed.
#[test]
fn cases_with_another_placement_are_other_cases() {
    let placed = |level: u64, placement: &str| {
        let mut run = run_of(&vec![level; 1000]);
        run.plan.placement = placement.to_owned();
        run
    };
    let side = |name, same| group(name, vec![placed(4_000, "default"), placed(same, "same")]);
    let names = |a: &Group, b: &Group| -> Vec<String> {
        compared(a, b).cases.into_iter().map(|case| case.name).collect()
    };
    let (a, b) = (side("a", 5_000), side("b", 9_000));
    assert_eq!(names(&a, &b), ["BM_sendVec_binder/4", "BM_sendVec_binder/4/same"]);
    let found = compared(&a, &b);
    let near = |found: f64, level: f64| (found / level - 1.0).abs() < 0.01;
    assert!(near(found.cases[0].a, 4_000.0) && near(found.cases[1].b, 9_000.0), "{:?}", found.cases);
    // Two records with different placements are still compared.
    let (one, other) = (group("a", vec![placed(4_000, "default")]), group("b", vec![placed(5_000, "same")]));
    assert_eq!(names(&one, &other), ["BM_sendVec_binder/4"]);
}

#[test]
fn equals_are_no_difference_and_wide_spreads_tell_nothing() {
    let (a, b) = (around("a", 50_000.0, 10, 1), around("b", 50_000.0, 10, 2));
    assert_eq!(verdict(&a, &b), Verdict::Same);
    let wide = |seed: u64| {
        let mut rng = Rng::with_seed(seed);
        group("wide", (0..10).map(|_| run_of(&vec![50_000 + rng.u64(..) % 50_000; 1000])).collect())
    };
    assert_eq!(verdict(&wide(1), &wide(2)), Verdict::CannotTell(Undecided::Wide));
}

#[test]
fn few_runs_tell_nothing_however_far_apart_they_are() {
    let (a, b) = (around("a", 50_000.0, 3, 1), around("b", 54_000.0, 3, 2));
    assert_eq!(verdict(&a, &b), Verdict::CannotTell(Undecided::FewRuns(5)));
    assert_eq!(verdict(&a, &around("b", 100_000.0, 3, 3)), Verdict::CannotTell(Undecided::FewRuns(5)));
    let one = |level, seed| around("one", level, 1, seed);
    assert_eq!(verdict(&one(50_000.0, 1), &one(53_000.0, 2)), Verdict::CannotTell(Undecided::OneRun));
    assert_eq!(verdict(&one(50_000.0, 1), &one(100_000.0, 2)), Verdict::CannotTell(Undecided::OneRun));
    let found = compared(&one(50_000.0, 1), &one(50_000.0, 2));
    assert!(found.cases[0].estimate.basis == Basis::Samples && found.cases[0].estimate.p.is_none());
}

#[test]
fn one_run_is_held_against_the_spread_of_many() {
    let many = around("many", 50_000.0, 12, 1);
    let found = compared(&many, &around("one", 50_200.0, 1, 2));
    assert_eq!(
        (found.cases[0].verdict, found.cases[0].estimate.basis),
        (Verdict::Same, Basis::OneAgainst(12))
    );
    assert_eq!(verdict(&many, &around("one", 54_000.0, 1, 2)), Verdict::Slower);
    assert_eq!(verdict(&around("one", 54_000.0, 1, 2), &many), Verdict::Faster);
}

#[test]
fn runs_in_turns_are_compared_pair_by_pair_so_that_drift_cancels() {
    // Each pair is 3 % slower than the one before, and b is 2 % slower than a.
    let side = |name: &str, factor: f64| {
        let mut side = around(name, 50_000.0, 0, 1);
        for at in 0..10 {
            let level = 50_000.0 * 1.03f64.powi(at) * factor;
            let mut run = run_of(&(0..1000).map(|call| level as u64 + call % 50).collect::<Vec<u64>>());
            run.context.push((PAIR_KEY.to_owned(), format!("x:{at}")));
            side.members.push(Member { file: format!("{name}-{at}"), run });
        }
        side
    };
    let (a, mut b) = (side("a", 1.0), side("b", 1.02));
    let found = compared(&a, &b);
    assert_eq!((found.cases[0].estimate.basis, found.cases[0].verdict), (Basis::Pairs(10), Verdict::Slower));
    assert!((found.cases[0].estimate.ratio - 1.02).abs() < 0.002, "{}", found.cases[0].estimate.ratio);
    b.members.iter_mut().for_each(|member| member.run.context.clear());
    assert_eq!(verdict(&a, &b), Verdict::CannotTell(Undecided::Wide), "without the pairs the drift is noise");
}

#[test]
fn what_means_something_else_is_refused() {
    let a = around("a", 50_000.0, 2, 1);
    let changed = |change: &dyn Fn(&mut Run)| {
        let mut b = a.clone();
        b.members.iter_mut().for_each(|member| change(&mut member.run));
        compare(&a, &b, &Options::default())
    };
    assert!(changed(&|_| ()).is_ok());
    let tcg = changed(&|run| run.host.class = HostClass::Tcg).expect_err("emulated");
    assert!(tcg.to_string().contains("emulated") && tcg.to_string().contains("--force"), "{tcg}");
    assert_eq!(changed(&|run| run.clock.unit = ClockUnit::Instructions), Err(CannotCompare::Clocks));
    assert!(changed(&|run| run.tool.debug_assertions = true).is_err());
    let payload = changed(&|run| run.cases[0].payload_bytes = 8).expect_err("another payload");
    assert!(payload.to_string().contains("payload 4 B and 8 B"), "{payload}");
    let other = changed(&|run| run.cases[0].name = "BM_other/4".to_owned()).expect_err("nothing in common");
    assert!(other.to_string().contains("BM_other/4: only in B"), "{other}");
    let empty = compare(&a, &group("b", Vec::new()), &Options::default()).expect_err("no run");
    assert_eq!(empty.to_string(), "b has no record");
}

#[test]
fn force_compares_all_but_counts_with_times() {
    let (a, mut b) = (around("a", 50_000.0, 2, 1), around("b", 50_000.0, 2, 1));
    b.members.iter_mut().for_each(|member| member.run.host.class = HostClass::Tcg);
    let options = Options { force: true, ..Options::default() };
    let found = compare(&a, &b, &options).expect("forced");
    assert!(found.environment.iter().any(|one| one.what == "machine" && one.severity == Severity::Warning));
    b.members[1].run.clock.unit = ClockUnit::Instructions;
    assert_eq!(compare(&a, &b, &options), Err(CannotCompare::Clocks));
}

#[test]
fn runs_of_one_group_must_be_of_one_test() {
    let mut a = around("a", 50_000.0, 2, 1);
    a.members[1].run.cases[0].payload_bytes = 8;
    let mixed = compare(&a, &around("b", 50_000.0, 2, 1), &Options::default()).expect_err("mixed");
    assert!(mixed.to_string().contains("runs of a are not of the same test"), "{mixed}");
}

#[test]
fn differences_around_the_runs_come_gravest_first_and_none_is_none() {
    let (a, mut b) = (around("a", 50_000.0, 2, 1), around("b", 50_000.0, 2, 2));
    assert_eq!(compared(&a, &b).environment, []);
    for member in &mut b.members {
        let run = &mut member.run;
        run.host.kernel.release = "7.2.13".to_owned();
        run.host.cpu.governor = Some("powersave".to_owned());
        run.host.load_avg = vec![4.0];
        run.driver = Some(Driver { kind: DriverKind::KernelRust, ..run.driver.clone().expect("one") });
        run.tool.version = "0.2.0".to_owned();
    }
    b.members[0].run.findings.push(Finding::new("debug-kernel", Severity::Error, "lockdep"));
    let found = compared(&a, &b).environment;
    let names: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(names, ["finding debug-kernel", "governor", "load by CPU", "driver", "kernel", "binderperf"]);
    assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("in 0 of 2 runs", "in 1 of 2 runs"));
    assert_eq!((found[4].a.as_str(), found[4].b.as_str()), ("6.12.9-amd64", "7.2.13"));
}

#[test]
fn that_several_tests_of_a_side_differ_from_each_other_is_no_difference_of_the_sides() {
    let side = |name: &str, seed: u64| {
        let mut side = around(name, 50_000.0, 3, seed);
        for (member, test) in
            side.members.iter_mut().zip(["throughput", "latency binder", "latency hwbinder"])
        {
            member.run.plan.test = test.to_owned();
            member.run.plan.placement = format!("that of {test}");
        }
        side
    };
    let (a, mut b) = (side("a", 1), side("b", 2));
    assert_eq!(compared(&a, &b).environment, []);
    b.members[2].run.plan.placement = "another".to_owned();
    let names = |b: &Group| compared(&a, b).environment.into_iter().map(|one| one.what).collect::<Vec<_>>();
    assert_eq!(names(&b), ["placement"]);
    b.members[2].run.plan.test = "latency vndbinder".to_owned();
    assert_eq!(names(&b), ["test"], "what only one side has is held against nothing");
}

#[test]
fn a_run_that_is_there_twice_is_refused() {
    let (mut a, b) = (around("a", 50_000.0, 3, 1), around("b", 50_000.0, 3, 2));
    a.members[2].run = a.members[0].run.clone();
    let copies = compare(&a, &b, &Options::default()).expect_err("two of three runs are one");
    assert!(copies.to_string().contains("a-0.json and a-2.json of a are the same run"), "{copies}");
    // Different numbers at the same start time are a different run.
    a.members[2].run.cases = around("a", 50_000.0, 1, 7).members[0].run.cases.clone();
    assert!(compare(&a, &b, &Options::default()).is_ok());
}

#[test]
fn cases_of_one_side_are_listed_and_failed_ones_say_why() {
    let times = [5000; 100];
    let a = group("a", vec![run_of_cases(&[("BM_x_binder", 4, &times), ("BM_x_binder", 8, &times)]); 2]);
    let mut b = group("b", vec![run_of_cases(&[("BM_x_binder", 4, &times), ("BM_x_binder", 16, &times)]); 2]);
    let found = compared(&a, &b);
    let listed = [("BM_x_binder/8", NoMatch::OnlyA), ("BM_x_binder/16", NoMatch::OnlyB)];
    let listed = listed.map(|(name, why)| Unmatched { name: name.to_owned(), kind: CaseKind::Test, why });
    assert_eq!(found.unmatched, listed);
    let gated = gate(&a, &b, 0.5, &Options::default()).expect("one case is left");
    assert_eq!(gated.outcome, Kept::Exceeded, "a case that is no longer there tells nothing of its cost");
    for member in &mut b.members {
        member.run.cases[0].repetitions[0].outcome = fixtures::failed("server died");
        let outcomes = member.run.cases[1].outcomes().cloned().collect();
        member.run.cases[1] = fixtures::case("BM_x_binder", 8, 1, outcomes);
    }
    let found = compared(&a, &b);
    assert!(
        found.unmatched[0].why == NoMatch::FailedB("b-0.json: server died".to_owned()),
        "{:?}",
        found.unmatched
    );
    let gated = gate(&a, &b, 0.5, &Options::default()).expect("one case is left");
    assert_eq!(gated.outcome, Kept::Exceeded, "a case that no longer runs is worse than slow");
}

#[test]
fn pairs_of_a_latency_test_are_one_case_for_each_class() {
    let run = fixtures::latency_run(&[fixtures::Pair::healthy(0), fixtures::Pair::healthy(1)]);
    let found = compared(&group("a", vec![run.clone(); 6]), &group("b", vec![run; 6]));
    let names: Vec<&str> = found.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["latency_hwbinder/fifo", "latency_hwbinder/other"]);
    assert_eq!(found.overall.word(), "no difference");
    let tails: Vec<Metric> = found.cases[0].tails.iter().map(|tail| tail.metric).collect();
    assert_eq!(tails, [Metric::P99, Metric::P999, Metric::Max]);
}

#[test]
fn counts_need_one_run_and_differ_from_half_a_percent_on_where_calls_are_alike() {
    let counted = |count: u64| {
        let mut run = run_of(&[count; 200]);
        run.clock.unit = ClockUnit::Instructions;
        run.host.class = HostClass::Icount;
        group("counted", vec![run])
    };
    assert_eq!(verdict(&counted(29_000), &counted(29_100)), Verdict::Same);
    assert_eq!(verdict(&counted(29_000), &counted(29_290)), Verdict::Slower);
    assert_eq!(verdict(&counted(29_290), &counted(29_000)), Verdict::Faster);
    // Half of the calls take another way than the rest, so which one is the median may change with the boot.
    let mixed = |count: u64| {
        let mut side = counted(count);
        let times: Vec<u64> =
            (0..200).map(|at| if at % 2 == 0 { count } else { count + count / 50 }).collect();
        side.members[0].run.cases = run_of(&times).cases;
        side
    };
    assert_eq!(verdict(&mixed(29_000), &mixed(29_250)), Verdict::Same);
    assert_eq!(verdict(&mixed(29_000), &counted(29_250)), Verdict::Same);
    assert_eq!(verdict(&mixed(29_000), &mixed(29_600)), Verdict::Slower);
    let strays = |count: u64| {
        let mut side = counted(count);
        side.members[0].run.findings.push(Finding::new("counting", Severity::Warning, "another way"));
        side
    };
    assert_eq!(verdict(&counted(29_000), &strays(29_500)), Verdict::Same, "1.5 % is nothing there");
    assert_eq!(verdict(&strays(29_000), &strays(29_600)), Verdict::Slower);
    let gated = |b| gate(&counted(29_000), &counted(b), 0.05, &Options::default()).expect("fine").outcome;
    assert_eq!([gated(29_600), gated(31_000), gated(30_500)], [Kept::Kept, Kept::Exceeded, Kept::CannotTell]);
}

#[test]
fn a_gate_fails_beyond_its_limit_passes_within_and_says_when_it_cannot_tell() {
    let a = around("a", 50_000.0, 10, 1);
    let outcome = |level: f64, runs: usize, limit: f64| {
        let gated = gate(&a, &around("b", level, runs, 2), limit, &Options::default());
        gated.expect("comparable").outcome
    };
    assert_eq!(outcome(50_000.0, 10, 0.05), Kept::Kept);
    assert_eq!(outcome(55_000.0, 10, 0.05), Kept::Exceeded);
    assert_eq!(outcome(45_000.0, 10, 0.05), Kept::Kept, "faster is no regression");
    assert_eq!(outcome(52_500.0, 10, 0.05), Kept::CannotTell, "right at the limit");
    assert_eq!(outcome(55_000.0, 10, 0.2), Kept::Kept);
    let three = around("three", 50_000.0, 3, 3);
    let few = |level: f64| gate(&three, &around("b", level, 3, 2), 0.05, &Options::default());
    assert_eq!(few(56_000.0).expect("comparable").outcome, Kept::CannotTell, "three runs");
    assert_eq!(few(50_000.0).expect("comparable").outcome, Kept::CannotTell, "three runs");
    assert_eq!(few(80_000.0).expect("comparable").outcome, Kept::CannotTell, "three runs, far beyond");
    assert_eq!(outcome(60_000.0, 1, 0.05), Kept::Exceeded, "one run beside the spread of ten");
    let one = |level, seed| around("one", level, 1, seed);
    let gated =
        |b: f64| gate(&one(50_000.0, 1), &one(b, 2), 0.05, &Options::default()).expect("fine").outcome;
    assert_eq!([gated(50_000.0), gated(70_000.0), gated(40_000.0)], [Kept::CannotTell; 3]);
}

#[test]
fn a_tail_that_grows_alone_is_seen() {
    let side = |name: &str, slow: u64, seed: u64| {
        let mut rng = Rng::with_seed(seed);
        let run = |_| {
            let mut times: Vec<u64> = (0..2000).map(|_| 50_000 + rng.u64(..) % 500).collect();
            times.iter_mut().take(40).for_each(|time| *time += slow + rng.u64(..) % 5000);
            run_of(&times)
        };
        group(name, (0..10).map(run).collect())
    };
    let case = &compared(&side("a", 100_000, 1), &side("b", 200_000, 2)).cases[0];
    assert_eq!((case.verdict, case.tail_verdict()), (Verdict::Same, Some(Verdict::Slower)));
    let p99 = case.tails[0];
    assert!(
        p99.estimate.ratio > 1.5
            && p99.within_a.is_some_and(|bounds| bounds.low <= p99.a && p99.a <= bounds.high)
    );
    let same = &compared(&side("a", 100_000, 1), &side("b", 100_000, 2)).cases[0];
    assert_eq!(same.tail_verdict(), Some(Verdict::Same));
}

#[test]
fn every_metric_can_be_compared() {
    let (a, b) = (around("a", 50_000.0, 8, 1), around("b", 60_000.0, 8, 2));
    for metric in Metric::ALL {
        assert_eq!(metric.name().parse(), Ok(metric));
        let found = compare(&a, &b, &Options { metric, ..Options::default() }).expect("comparable");
        assert_eq!(found.cases[0].verdict, Verdict::Slower, "{metric:?}");
    }
    assert!("p98".parse::<Metric>().expect_err("unknown").contains("p999"));
}
