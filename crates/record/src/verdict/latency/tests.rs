//! Each verdict on a latency test, holding and failing.

use super::*;
use crate::fixtures::{Pair, latency_run};
use crate::schema::{EmbeddedSettings, Hop, Level, Limit, Sched};

/// A change of a run.
type Change = fn(&mut Run);

fn test_of(run: &mut Run) -> &mut LatencyTest {
    run.measured.latency_mut().expect("a latency test")
}

/// The verdicts on a healthy run after a change.
fn after(change: Change) -> Vec<Verdict> {
    let mut run = latency_run(&[Pair::healthy(0)]);
    change(&mut run);
    let test = run.latency().cloned().expect("a latency test");
    of_latency(&run, &test)
}

fn about<'v>(verdicts: &'v [Verdict], about: &str) -> &'v Verdict {
    verdicts.iter().find(|verdict| verdict.about == about).unwrap_or_else(|| panic!("{about}: {verdicts:?}"))
}

fn embedded(run: &mut Run, inherit: &str) {
    let driver = run.driver.as_mut().expect("a driver");
    driver.kind = DriverKind::Embedded;
    driver.embedded = Some(EmbeddedSettings {
        inherit: inherit.to_owned(),
        waiting: "sleep".to_owned(),
        spin_budget_ns: 0,
        direct: true,
    });
}

/// Real-time callers, and only they, were served as ordinary ones, as a driver that passes on nice values promises.
fn nice(run: &mut Run, limit: Limit) {
    let real_time = run.cases.iter_mut().filter_map(|case| case.latency.as_mut());
    real_time.filter(|latency| latency.class == Class::Fifo).for_each(|latency| latency.not_inherited = 1000);
    let found = &mut test_of(run).inheritance;
    (found.measured, found.expected, found.not_inherited) = (Some(Level::Nice), Some(Level::Nice), 1000);
    found.below_android = Some(limit);
    found.hops.clear();
}

#[test]
fn less_than_android_requires_is_no_fault_where_no_more_is_promised() {
    let table: [(Change, &str, &str); 5] = [
        (|run| nice(run, Limit::Node), "this node does not ask", "--inherit-rt on"),
        (
            |run| {
                embedded(run, "nice");
                nice(run, Limit::Setting);
            },
            "--inherit nice",
            "--inherit rt",
        ),
        (|run| nice(run, Limit::Mainline), "mainline's C driver", "--driver embedded"),
        (|run| nice(run, Limit::Rust), "Rust driver", "--driver embedded"),
        (|run| nice(run, Limit::Rights), "no right", "as root"),
    ];
    for (change, why, next) in table {
        let verdicts = after(change);
        let verdict = about(&verdicts, "inheritance");
        assert_eq!((verdict.grade, verdict.words.as_str()), (Grade::Good, "inheritance nice, as expected"));
        assert_eq!(verdict.expected, "nice");
        assert!(verdict.measured.starts_with("nice: 1000 of 2000 calls"), "{verdict:?}");
        assert!(verdict.why.as_deref().is_some_and(|it| it.contains(why)), "{verdict:?}");
        assert!(verdict.next.as_deref().is_some_and(|it| it.contains(next)), "{verdict:?}");
    }
}

#[test]
fn a_broken_promise_fails_and_says_which() {
    let table: [(Change, &str); 6] = [
        (|run| test_of(run).inheritance.not_inherited = 7, "7 of 2000 calls were served"),
        (
            |run| test_of(run).inheritance.measured = Some(Level::Nice),
            "nice was inherited, and rt is promised",
        ),
        (
            |run| {
                nice(run, Limit::Setting);
                test_of(run).inheritance.measured = Some(Level::None);
            },
            "none was inherited, and nice is promised",
        ),
        (
            |run| {
                nice(run, Limit::Mainline);
                test_of(run).inheritance.measured = Some(Level::Rt);
            },
            "rt was inherited, and nice is promised",
        ),
        // Ordinary callers have nothing but their nice value, which was promised to them.
        (
            |run| {
                nice(run, Limit::Node);
                let mut all = run.cases.iter_mut().filter_map(|case| case.latency.as_mut());
                all.find(|latency| latency.class == Class::Other).expect("a case").not_inherited = 3;
            },
            "3 of 2000 calls of ordinary callers",
        ),
        (
            |run| {
                let hops = &mut test_of(run).inheritance.hops;
                let served = Some(Sched::other(0));
                hops.push(Hop { scene: "nested-1".to_owned(), served, ..hops[0].clone() });
            },
            "nested-1 was not as expected",
        ),
    ];
    for (change, why) in table {
        let verdicts = after(change);
        let verdict = &verdicts[0];
        assert_eq!((verdict.grade, verdict.words.as_str()), (Grade::Bad, "inheritance FAIL"), "{why}");
        assert!(verdict.why.as_deref().is_some_and(|it| it.contains(why)), "{verdict:?}");
        assert!(verdict.next.as_deref().is_some_and(|it| it.starts_with("binderperf inheritance")));
        assert!(verdicts.len() > 2, "it hides no other verdict: {verdicts:?}");
    }
}

#[test]
fn without_a_promise_or_a_real_time_caller_nobody_is_accused() {
    let unknown = |change: Change, why: &str| {
        let verdicts = after(change);
        let verdict = about(&verdicts, "inheritance");
        assert_eq!((verdict.grade, verdict.words.as_str()), (Grade::Note, "inheritance cannot be told"));
        assert!(verdict.why.as_deref().is_some_and(|it| it.contains(why)), "{verdict:?}");
    };
    unknown(
        |run| {
            let test = test_of(run);
            (test.realtime, test.realtime_problem) = (None, Some("RLIMIT_RTPRIO is 0".to_owned()));
        },
        "RLIMIT_RTPRIO is 0",
    );
    unknown(
        |run| {
            let found = &mut test_of(run).inheritance;
            (found.expected, found.not_inherited) = (None, 1000);
            found.hops.clear();
        },
        "not known",
    );
    let held = after(|run| test_of(run).inheritance.expected = None);
    let held = about(&held, "inheritance");
    assert_eq!((held.grade, held.words.as_str(), &held.why), (Grade::Good, "inheritance PASS", &None));
}

#[test]
fn a_miss_is_a_note_with_its_cause_as_far_as_it_is_known() {
    let healthy = after(|_| ());
    let deadline = &healthy[0];
    assert_eq!((deadline.grade, deadline.words.as_str()), (Grade::Note, "2 deadlines missed"));
    assert_eq!(deadline.expected, "no call over 2.5 ms");
    assert!(
        deadline.measured.contains("worst 3.00 ms") && deadline.measured.ends_with("2 of 2000 over 2.5 ms")
    );
    assert!(deadline.why.as_deref().is_some_and(|why| why.starts_with("neither side ran")), "{deadline:?}");
    assert!(deadline.next.as_deref().is_some_and(|next| next.contains("trace record")), "{deadline:?}");
    fn latencies(run: &mut Run) -> impl Iterator<Item = &mut crate::Latency> {
        run.cases.iter_mut().filter_map(|case| case.latency.as_mut())
    }
    let none = after(|run| latencies(run).for_each(|it| (it.misses, it.bubbles) = (0, 0)));
    let none = about(&none, "deadline");
    assert_eq!((none.grade, none.words.as_str(), &none.why), (Grade::Good, "deadline met", &None));
    let work = after(|run| latencies(run).for_each(|it| it.bubbles = 0));
    assert!(about(&work, "deadline").why.as_deref().is_some_and(|why| why.starts_with("a side computed")));
    let one = after(|run| latencies(run).take(1).for_each(|it| (it.misses, it.bubbles) = (0, 0)));
    assert_eq!(about(&one, "deadline").words, "1 deadline missed");
    let emulated = after(|run| run.host.class = HostClass::Tcg);
    assert!(about(&emulated, "deadline").why.as_deref().is_some_and(|why| why.contains("emulated")));
}

#[test]
fn poor_placement_is_explained_and_no_fault_without_a_sync_hint() {
    fn elsewhere(run: &mut Run) {
        let all = run.cases.iter_mut().filter_map(|case| case.latency.as_mut());
        all.for_each(|latency| latency.same_cpu = 10);
    }
    let good = after(|_| ());
    let good = about(&good, "sync");
    assert_eq!((good.grade, good.words.as_str(), &good.why), (Grade::Good, "SYNC GOOD", &None));
    let poor = after(elsewhere);
    let poor = about(&poor, "sync");
    assert_eq!((poor.grade, poor.words.as_str()), (Grade::Note, "SYNC POOR"));
    assert!(poor.why.as_deref().is_some_and(|why| why.contains("did not follow")), "{poor:?}");
    let here = after(|run| {
        elsewhere(run);
        embedded(run, "rt");
    });
    let here = about(&here, "sync");
    assert_eq!((here.grade, here.words.as_str()), (Grade::Good, "SYNC POOR"));
    assert!(here.why.as_deref().is_some_and(|why| why.contains("no fault here")) && here.next.is_some());
}

#[test]
fn a_broken_pair_is_the_first_of_several_verdicts() {
    let mut run = latency_run(&[Pair::healthy(0), Pair::failed(1, "the server was killed")]);
    test_of(&mut run).inheritance.not_inherited = 1;
    let test = run.latency().cloned().expect("a latency test");
    let verdicts = of_latency(&run, &test);
    let words: Vec<(Grade, &str)> = verdicts.iter().map(|it| (it.grade, it.words.as_str())).collect();
    let want = [
        (Grade::Bad, "FAILED"),
        (Grade::Bad, "inheritance FAIL"),
        (Grade::Note, "2 deadlines missed"),
        (Grade::Good, "SYNC GOOD"),
    ];
    assert_eq!(words, want);
    assert_eq!(verdicts[0].why.as_deref(), Some("the server was killed"));
}
