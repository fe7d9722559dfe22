//! Tests by construction: calls whose differences are known, and equals that must have none.

use fastrand::Rng;
use record::stats::normal;
use trace::cause::Label;
use trace::verdict::{By, Sampled, SampledGroup, UnfinishedCount};

use super::*;

const OPTIONS: Options = Options { by: By::Method, resolution: 0.05 };
const CAUSES: [Label; 3] = [Label::ServerRunning, Label::Mutex, Label::Runnable];

/// A method, its number of calls, and nanoseconds of each by cause.
type Calls<'m> = (&'m str, usize, &'m mut dyn FnMut(usize) -> [u64; 3]);

/// A trace of one method per entry.
fn side(name: &str, methods: &mut [Calls<'_>]) -> Side {
    let groups = methods.iter_mut().map(|(name, calls, times)| {
        let mut group = SampledGroup::new(name);
        for call in 0..*calls {
            group.add(CAUSES.into_iter().zip(times(call)).filter(|(_, ns)| *ns > 0));
        }
        group
    });
    let sampled = Sampled { groups: groups.collect(), ..Sampled::default() };
    Side { name: name.to_owned(), sampled }
}

/// About a millisecond of work, with a long tail, and a short wait for a CPU.
fn usual(rng: &mut Rng) -> [u64; 3] {
    let work = 1e6 * (0.2 * normal(rng)).exp();
    let wait = if rng.f64() < 0.05 { 2e6 * rng.f64() } else { 2e4 * rng.f64() };
    [work as u64, 0, wait as u64]
}

fn of(name: &str, calls: usize, seed: u64) -> Side {
    let mut rng = Rng::with_seed(seed);
    side(name, &mut [("IFoo.bar", calls, &mut |_| usual(&mut rng))])
}

fn compared(a: &Side, b: &Side) -> Comparison {
    compare(a, b, OPTIONS).expect("calls in common")
}

fn row<'c>(found: &'c Comparison, name: &str) -> &'c Row {
    found.rows.iter().find(|row| row.name == name).expect("the row")
}

#[test]
fn a_lock_in_one_method_is_named_with_its_interval() {
    let make = |seed, lock: u64| {
        let mut rng = Rng::with_seed(seed);
        let (mut other, mut third) = (Rng::with_seed(seed + 100), Rng::with_seed(seed + 200));
        side(
            if lock > 0 { "b" } else { "a" },
            &mut [
                ("IFoo.other", 600, &mut |_| usual(&mut other)),
                ("IFoo.bar", 600, &mut |_| {
                    let held = if rng.f64() < 0.4 { lock } else { 0 };
                    let [work, _, wait] = usual(&mut rng);
                    [work, held, wait]
                }),
                ("IBaz.third", 40, &mut |_| usual(&mut third)),
            ],
        )
    };
    let found = compared(&make(1, 0), &make(2, 500_000));
    assert_eq!(found.slower_and_faster(), (1, 0), "{found}");
    let slow = &found.rows[0];
    assert_eq!((slow.name.as_str(), slow.verdict), ("IFoo.bar", Verdict::Slower));
    let certain: Vec<&CauseChange> =
        slow.causes.iter().filter(|cause| cause.change.direction.is_some()).collect();
    let [lock] = &certain[..] else { panic!("{found}") };
    assert_eq!((lock.cause, lock.a_ns), (Label::Mutex, 0.0));
    let (low, high) = (lock.change.low_ns.expect("a limit"), lock.change.high_ns.expect("a limit"));
    assert!(low < 200_000.0 && 200_000.0 < high && low > 150_000.0 && high < 250_000.0, "{low}..{high}");
    // The causes share the row's difference.
    let sum: f64 = slow.causes.iter().map(|cause| cause.change.difference_ns).sum();
    assert!((sum - slow.mean.difference_ns).abs() < 1.0, "{sum} {:?}", slow.mean);
    assert!((slow.cost_ns - 600.0 * slow.mean.difference_ns).abs() < 1.0);
    // The other way round it is faster.
    let back = compared(&make(2, 500_000), &make(1, 0));
    assert_eq!((back.rows[0].verdict, back.slower_and_faster()), (Verdict::Faster, (0, 1)), "{back}");
    let text = found.to_string();
    assert!(text.contains("slower in B") && text.contains("mutex_contention: 0 ns -> "), "{text}");
}

#[test]
fn rows_that_cost_most_come_first() {
    let make = |name: &str, add: u64| {
        let times = move |ns: u64| move |call: usize| [ns + (call % 7) as u64 * 1000, 0, 0];
        let (mut few, mut many, mut less) =
            (times(1_000_000 + 3 * add), times(1_000_000 + add), times(2_000_000 - add));
        side(name, &mut [("few", 100, &mut few), ("many", 1000, &mut many), ("less", 100, &mut less)])
    };
    let found = compared(&make("a", 0), &make("b", 100_000));
    let order: Vec<(&str, Verdict)> = found.rows.iter().map(|row| (row.name.as_str(), row.verdict)).collect();
    assert_eq!(order, [("many", Verdict::Slower), ("few", Verdict::Slower), ("less", Verdict::Faster)]);
}

#[test]
fn a_trace_against_itself_has_no_difference() {
    let one = of("a", 500, 3);
    let found = compared(&one, &one);
    assert_eq!(found.slower_and_faster(), (0, 0), "{found}");
    assert!(found.notes.iter().any(|note| note.contains("same calls")), "{:?}", found.notes);
    let row = row(&found, "IFoo.bar");
    assert_eq!((row.mean.difference_ns, row.median.difference_ns), (0.0, 0.0));
    assert!(row.causes.iter().all(|cause| cause.change.direction.is_none()));
}

/// Number of seeds whose comparison finds a difference.
fn alarms(make: impl Fn(u64) -> (Side, Side)) -> usize {
    let found = (0..40).map(make).map(|(a, b)| compared(&a, &b));
    found.filter(|found| found.slower_and_faster() != (0, 0)).count()
}

#[test]
fn equals_rarely_differ_whatever_the_number_of_calls() {
    // With 40 comparisons and a chance of 0.02 each, more than 4 alarms have a probability of 0.1 %.
    for (a, b) in [(300, 300), (300, 900), (60, 3000), (2000, 600)] {
        let alarms = alarms(|seed| (of("a", a, 2 * seed), of("b", b, 2 * seed + 1)));
        assert!(alarms <= 4, "{a} and {b} calls: {alarms} alarms");
    }
}

#[test]
fn a_certain_difference_below_the_resolution_is_none() {
    let make = |name: &str, ns: u64| {
        side(name, &mut [("IFoo.bar", 200, &mut |call| [ns + (call % 9) as u64 * 100, 0, 0])])
    };
    let found = compared(&make("a", 1_000_000), &make("b", 1_020_000));
    assert_eq!(found.rows[0].verdict, Verdict::Same, "{found}");
    let finer = Options { resolution: 0.01, ..OPTIONS };
    let found = compare(&make("a", 1_000_000), &make("b", 1_020_000), finer).expect("calls in common");
    assert_eq!(found.rows[0].verdict, Verdict::Slower, "{found}");
}

#[test]
fn phases_of_load_are_no_difference() {
    // The load of a moment makes the calls of that moment slow: each is like the one before.
    let make = |name, seed| {
        let mut rng = Rng::with_seed(seed);
        let mut load = 0.0;
        let mut times = |_| {
            load = 0.9 * load + 0.3 * normal(&mut rng);
            [(1e6 * f64::exp(load)) as u64, 0, 0]
        };
        side(name, &mut [("IFoo.bar", 2000, &mut times)])
    };
    let alarms = alarms(|seed| (make("a", 2 * seed), make("b", 2 * seed + 1)));
    assert!(alarms <= 4, "{alarms} alarms");
}

#[test]
fn intervals_hold_the_true_difference() {
    let held = (0..60).filter(|seed| {
        let mut rng = Rng::with_seed(1000 + seed);
        let mut slower = |_| {
            let [work, _, wait] = usual(&mut rng);
            [work, 50_000, wait]
        };
        let b = side("b", &mut [("IFoo.bar", 400, &mut slower)]);
        let found = compared(&of("a", 400, *seed), &b);
        let mean = found.rows[0].mean;
        mean.low_ns.is_some_and(|low| low <= 50_000.0) && mean.high_ns.is_some_and(|high| high >= 50_000.0)
    });
    // At 95 %, fewer than 52 of 60 have a probability of 0.4 %.
    let held = held.count();
    assert!(held >= 52, "{held} of 60");
}

#[test]
fn one_call_in_fifty_shows_in_the_99th_percentile() {
    let mut rng = Rng::with_seed(9);
    let mut rare = |call| {
        let [work, _, wait] = usual(&mut rng);
        [work, if call % 50 == 7 { 20_000_000 } else { 0 }, wait]
    };
    let b = side("b", &mut [("IFoo.bar", 2000, &mut rare)]);
    let found = compared(&of("a", 2000, 4), &b);
    let row = &found.rows[0];
    assert_eq!((row.p99.direction, row.median.direction), (Some(Direction::Slower), None), "{found}");
    let (low, high) = (row.p99.low_ns.expect("a limit"), row.p99.high_ns.expect("a limit"));
    assert!(low > 0.0 && row.p99.difference_ns <= high && high < 25e6, "{found}");
    assert_eq!(row.causes[0].cause, Label::Mutex);
}

#[test]
fn few_calls_cannot_be_told_however_different() {
    let make = |name: &str, ns: u64| side(name, &mut [("IFoo.bar", 29, &mut |_| [ns, 0, 0])]);
    let found = compared(&make("a", 1_000_000), &make("b", 9_000_000));
    assert_eq!(found.rows[0].verdict, Verdict::CannotTell(Undecided::FewCalls));
    assert!(found.notes.iter().any(|note| note.contains("1 row cannot be told")), "{:?}", found.notes);
    assert!(found.to_string().contains("too few calls"), "{found}");
    // So many rows that chance alone makes one differ.
    let names: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
    let many = |name: &str, ns: u64| {
        let groups = names.iter().map(|name| {
            let mut group = SampledGroup::new(name);
            (0..30).for_each(|call| group.add([(Label::ServerRunning, ns + call * 1000)]));
            group
        });
        let sampled = Sampled { groups: groups.collect(), ..Sampled::default() };
        Side { name: name.to_owned(), sampled }
    };
    let found = compared(&many("a", 1_000_000), &many("b", 1_000_100));
    assert!(
        found.rows.iter().all(|row| row.verdict == Verdict::CannotTell(Undecided::ManyRows)),
        "{}",
        found.rows[0].name
    );
}

#[test]
fn polls_are_judged_only_if_they_were_none_before() {
    let asleep = |name: &str, ns: u64, by_design: bool| {
        let mut side = side(name, &mut [("IPoll.wait", 100, &mut |call| [ns + call as u64, 0, 0])]);
        side.sampled.groups[0].waits_by_design = by_design;
        side
    };
    let found = compared(&asleep("a", 1_000_000, true), &asleep("b", 9_000_000, true));
    assert_eq!(found.rows[0].verdict, Verdict::CannotTell(Undecided::ByDesign));
    assert!(found.to_string().contains("waiting by design, not judged"));
    let found = compared(&asleep("a", 1_000_000, false), &asleep("b", 9_000_000, true));
    assert_eq!(found.rows[0].verdict, Verdict::Slower, "a server that now sleeps became slower");
}

#[test]
fn rows_of_one_trace_and_losses_are_told() {
    let one = |call: usize| [1000 + call as u64, 0, 0];
    let a = side("a", &mut [("both", 40, &mut one.clone()), ("old", 7, &mut one.clone())]);
    let mut b = side("b", &mut [("both", 40, &mut one.clone()), ("new", 8, &mut one.clone())]);
    b.sampled.analysis.lost = 12;
    b.sampled.analysis.counts.doubtful = 3;
    let found = compared(&a, &b);
    assert_eq!((found.only_a[0].name.as_str(), found.only_b[0].name.as_str()), ("old", "new"));
    assert!(found.notes.iter().any(|note| note.starts_with("B lost 12 events") && note.contains("3 calls")));
    let text = found.to_string();
    assert!(
        text.contains("only in A\n  old: 7 calls") && text.contains("only in B\n  new: 8 calls"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&found.to_json().expect("JSON")).expect("JSON");
    assert_eq!((&json["schema"], &json["rows"][0]["name"]), (&SCHEMA.into(), &"both".into()));
    assert_eq!(json["only_b"][0]["calls"], 8);
}

#[test]
fn traces_without_common_calls_are_refused() {
    let named = |name: &'static str| side("x", &mut [(name, 40, &mut |_| [1000, 0, 0])]);
    let empty = Side { name: "empty.pftrace".to_owned(), sampled: Sampled::default() };
    let why = compare(&named("one"), &named("two"), OPTIONS).expect_err("nothing in common").to_string();
    assert!(why.contains("\"one\"") && why.contains("\"two\""), "{why}");
    let why = compare(&named("one"), &empty, OPTIONS).expect_err("no calls").to_string();
    assert!(why.starts_with("empty.pftrace: no call"), "{why}");
}

#[test]
fn names_from_a_trace_cannot_control_the_terminal() {
    let evil = side("x", &mut [("I\u{1b}[2J.bar", 40, &mut |_| [1000, 0, 0])]);
    assert!(!compared(&evil, &evil).to_string().contains('\u{1b}'));
}

#[test]
fn calls_without_a_reply_come_first() {
    let (mut a, mut b) = (of("a", 100, 1), of("b", 100, 2));
    let count = |failed, unanswered| UnfinishedCount { failed, unanswered };
    a.sampled.unfinished.insert("IFoo.bar".into(), count(2, 0));
    a.sampled.unfinished.insert("IOld.gone".into(), count(4, 0));
    b.sampled.unfinished.insert("IFoo.bar".into(), count(3, 1));
    b.sampled.analysis.counts.failed = 3;
    let found = compared(&a, &b);
    let names: Vec<_> = found.unfinished.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["IFoo.bar", "IOld.gone"], "what B has more of first");
    let text = found.to_string();
    assert!(text.contains(", 3 failed\n"), "{text}");
    let first = text.find("  IFoo.bar: 2 and 3 failed, 0 and 1 without an answer").expect("the row");
    assert!(first < text.find("no difference").expect("the other rows"), "{text}");
    assert!(compared(&of("a", 100, 1), &of("b", 100, 2)).unfinished.is_empty());
}

#[test]
fn a_trace_in_which_no_call_came_back_is_compared_with_a_good_one() {
    let mut hangs = Side { name: "hangs".to_owned(), sampled: Sampled::default() };
    let unanswered = UnfinishedCount { failed: 0, unanswered: 7 };
    hangs.sampled.unfinished.insert("IFoo.bar".into(), unanswered);
    for (a, b, row) in
        [(of("a", 100, 1), hangs.clone(), "0 and 7"), (hangs.clone(), of("b", 100, 2), "7 and 0")]
    {
        let found = compared(&a, &b);
        assert!(found.rows.is_empty(), "no times of both");
        let text = found.to_string();
        assert!(text.contains(&format!("  IFoo.bar: {row} without an answer")), "{text}");
        assert!(text.contains("Note: no calls of one name have a reply in both traces"), "{text}");
    }
    assert!(compared(&hangs, &hangs).rows.is_empty());
}
