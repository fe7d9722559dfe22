//! Tests of rendered comparisons.

use super::*;
use crate::compare::gate::gate;
use crate::compare::{Group, Member, Options, compare};
use crate::fixtures;

/// Copies of the fixture run, each slightly different, all slower by a factor.
fn group(name: &str, factor: f64, runs: usize) -> Group {
    let member = |at: usize| {
        let mut run = fixtures::run();
        let each = (2500.0 * factor) as u64 + 3 * (at as u64 % 4);
        run.cases = vec![
            fixtures::case("BM_sendVec_binder", 4, 0, vec![fixtures::measured(1000, 1000 * each, 1_000_000)]),
            fixtures::case("BM_sendVec_pipe", 4, 0, vec![fixtures::measured(1000, 1_250_000, 1_000_000)]),
        ];
        run.started = format!("2026-01-31T12:{at:02}:00+01:00");
        Member { file: format!("{name}/{at}.json"), run }
    };
    Group { name: name.to_owned(), members: (0..runs).map(member).collect() }
}

fn compared(factor: f64, runs: usize) -> Comparison {
    let (a, mut b) = (group("base", 1.0, runs), group("new", factor, runs));
    b.members.iter_mut().for_each(|member| member.run.host.kernel.release = "7.2.13".to_owned());
    compare(&a, &b, &Options::default()).expect("comparable")
}

#[test]
fn what_differed_comes_before_any_figure() {
    let text = text(&compared(1.1, 8));
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in\n{text}"));
    assert!(place("kernel") < place("Case") && place("6.12.9-amd64") < place("7.2.13"), "{text}");
    assert!(text.contains("base (8 runs)") && text.contains("+10.0 %"), "{text}");
    assert!(text.trim_end().ends_with("B is slower in 1 case: 1 slower; p99 worse in 1"), "{text}");
}

#[test]
fn each_word_has_its_sentence() {
    assert_eq!(verdict(&compared(1.0, 8)), "No difference in 1 case");
    assert!(verdict(&compared(0.9, 8)).starts_with("B is faster"));
    assert_eq!(verdict(&compared(1.0, 1)), "Cannot tell in 1 case");
}

#[test]
fn an_interval_within_one_run_is_labelled_and_the_output_ends_with_how_to_repeat() {
    let one = text(&compared(1.0, 1));
    let row = one.lines().find(|line| line.contains("BM_sendVec_binder/4")).expect("the case");
    assert!(row.contains(" within run ") && row.contains("cannot tell: one run a side"), "{row}");
    assert!(one.contains("Tails within run"), "{one}");
    let last = one.lines().last().expect("lines");
    assert!(last.contains("differ by more") && last.contains("binderperf ab --a"), "{last}");
    let markdown = markdown(&compared(1.0, 1));
    assert!(markdown.contains(" within run |") && markdown.trim_end().ends_with("b3.json"), "{markdown}");
    let gated = gate(&group("a", 1.0, 1), &group("b", 1.0, 1), 0.05, &Options::default()).expect("fine");
    assert!(super::gated(&gated).contains(" within run]"));
    for many in [text(&compared(1.0, 8)), super::markdown(&compared(1.0, 8))] {
        assert!(!many.contains("within run") && !many.contains("Repeat"), "{many}");
    }
}

#[test]
fn markdown_begins_with_the_verdict_and_keeps_its_tables_whole() {
    let mut found = compared(1.1, 8);
    found.environment[0].a = "a|b".to_owned();
    let markdown = markdown(&found);
    assert!(markdown.starts_with("**B is slower"), "{markdown}");
    let row = markdown.lines().find(|line| line.starts_with("| BM_sendVec_binder/4 |")).expect("the case");
    assert!(row.contains("**slower**") && row.matches('|').count() == 11, "{row}");
    assert!(markdown.contains("a\\|b"), "{markdown}");
}

#[test]
fn json_is_the_comparison_itself() {
    let value: serde_json::Value = serde_json::from_str(&json(&compared(1.1, 8))).expect("JSON");
    assert_eq!((value["schema"].as_str(), value["word"].as_str()), (Some(SCHEMA), Some("slower")));
    assert_eq!(value["cases"][0]["verdict"], "slower");
    assert_eq!(value["cases"][0]["basis"]["runs"], serde_json::json!([8, 8]));
    assert!(value["cases"][0]["interval"]["low"].as_f64().is_some_and(|low| low > 1.05), "{value}");
    let one: serde_json::Value = serde_json::from_str(&json(&compared(1.0, 1))).expect("JSON");
    assert_eq!(one["cases"][0]["verdict"]["cannot-tell"], "one-run");
}

#[test]
fn a_gate_names_what_exceeds_it() {
    let judged = |factor: f64, runs: usize| {
        gated(
            &gate(&group("a", 1.0, runs), &group("b", factor, runs), 0.05, &Options::default())
                .expect("fine"),
        )
    };
    let failed = judged(1.1, 8);
    assert!(failed.starts_with("Gate at +5 %: exceeded (1 exceeded, 0 cannot tell, 0 kept)\n"), "{failed}");
    assert!(failed.contains("BM_sendVec_binder/4: +10.0 %"), "{failed}");
    assert!(judged(1.0, 8).starts_with("Gate at +5 %: kept"));
    assert!(judged(1.0, 1).contains("cannot tell: one run a side"));
    assert!(!judged(1.1, 1).contains("[]"), "{}", judged(1.1, 1));
}
