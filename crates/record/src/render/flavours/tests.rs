//! Tables of made-up runs with known components.

use super::*;
use crate::fixtures;
use crate::schema::Outcome;
use crate::{Driver, EmbeddedSettings};

/// Repetitions of some mechanisms at some payloads, on the embedded driver.
fn run(cases: &[(&str, u64, &[u64])]) -> Run {
    let mut run = fixtures::run();
    run.plan.test = TEST.to_owned();
    run.plan.placement = "same".to_owned();
    run.driver = run.driver.map(|driver| Driver { kind: DriverKind::Embedded, ..driver });
    let case = |&(word, payload, rounds): &(&str, u64, &[u64])| {
        let outcomes = rounds.iter().map(|median| Outcome::Measured(fixtures::of_times([*median; 3])));
        fixtures::case(&format!("BM_sendVec_{word}"), payload, 0, outcomes.collect())
    };
    run.cases = cases.iter().map(case).collect();
    run
}

fn line<'t>(text: &'t str, words: &[&str]) -> Vec<&'t str> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.into_iter().find(|line| line.starts_with(words)).unwrap_or_else(|| panic!("{words:?} in {text}"))
}

#[test]
fn the_parts_add_up_and_a_negative_one_stays_negative() {
    let text = tables(&run(&[
        ("memcpy", 4, &[1]),
        ("futex", 4, &[100]),
        ("raw", 4, &[150]),
        ("binder", 4, &[200]),
        ("binderize", 4, &[210]),
        ("parcel", 4, &[30]),
        ("hwparcel", 4, &[70]),
        ("memcpy", 64, &[10]),
        ("futex", 64, &[180]),
        ("raw", 64, &[160]),
        ("binder", 64, &[240]),
        ("binderize", 64, &[140]),
    ]));
    assert_eq!(line(&text, &["4", "binder"]), ["4", "binder", "200", "100", "50", "50", "30", "1"]);
    assert_eq!(line(&text, &["4", "hwbinder"]), ["4", "hwbinder", "210", "100", "50", "60", "70", "1"]);
    let plain = ["64", "binder", "240", "180", "-20", "80", "40", "10", "4.00"];
    assert_eq!(line(&text, &["64", "binder"]), plain);
    let scattered = ["64", "hwbinder", "140", "180", "-20", "-20", "-70", "10", "-7.00"];
    assert_eq!(line(&text, &["64", "hwbinder"]), scattered);
    assert!(text.contains("* is a difference of two medians"), "{text}");
    assert!(text.contains("Waking each other costs 100 ns: the futex control's 4 B"), "{text}");
    assert!(!text.contains("eventfd"), "what was not measured has no column: {text}");
}

#[test]
fn a_large_payload_s_control_is_not_what_waking_costs() {
    let text = |payload| tables(&run(&[("futex", payload, &[100]), ("binder", payload, &[200])]));
    assert!(text(64).contains("Waking each other costs 100 ns"), "{}", text(64));
    for payload in [65, 65536] {
        assert!(!text(payload).contains("Waking"), "{}", text(payload));
    }
}

#[test]
fn the_control_waits_as_the_driver_does() {
    let mut run = run(&[("spin", 4, &[7]), ("futex", 4, &[100]), ("binder", 4, &[9])]);
    assert_eq!(Figures(&run).control(), "futex");
    run.plan.placement = "cross".to_owned();
    let settings = EmbeddedSettings {
        inherit: "nice".to_owned(),
        waiting: "adaptive".to_owned(),
        spin_budget_ns: 50_000,
        direct: true,
    };
    run.driver = run.driver.map(|driver| Driver { embedded: Some(settings), ..driver });
    assert_eq!(Figures(&run).control(), "spin");
}

#[test]
fn limits_are_of_medians_of_rounds() {
    let binder = [100, 90, 104, 96, 900];
    let run_with = |small: &[u64], large: &[u64]| {
        let cases: [(&str, u64, &[u64]); 4] = [
            ("binder", 4, &binder),
            ("binderize", 4, small),
            ("binder", 65536, &[1000]),
            ("binderize", 65536, large),
        ];
        run(&cases)
    };
    let limits_of = |small: &[u64], large: &[u64]| limits(&run_with(small, large));
    let met = limits_of(&[115, 115, 1], &[1100]);
    assert_eq!(met.iter().map(Limit::is_met).collect::<Vec<_>>(), [true, true]);
    assert!(met[1].to_string().ends_with("1.10  at most 1.10: met"), "{}", met[1]);
    let missed = limits_of(&[116, 116, 1], &[1101]);
    assert_eq!(missed.iter().map(Limit::is_met).collect::<Vec<_>>(), [false, false]);
    assert!(missed[0].to_string().ends_with("1.16  at most 1.15: MISSED"), "{}", missed[0]);
    let mut kernel = run_with(&[500], &[500]);
    kernel.driver = fixtures::run().driver;
    assert_eq!(limits(&kernel), [], "they are the embedded driver's");
    assert_eq!(limits(&run(&[("binder", 4, &[1])])), [], "there is nothing to compare");
}
