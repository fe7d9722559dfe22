//! Our statistics, compared with scipy's for the same values (written by `fixtures/by_scipy.py`).

use super::super::{median, order, rank, shift};
use serde_json::Value;

fn fixtures(kind: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../fixtures/scipy.json")).expect("JSON");
    let of_kind = all[kind].as_array().expect(kind).clone();
    assert!(!of_kind.is_empty(), "{kind}");
    of_kind
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn close(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-9 * (1.0 + wanted.abs())
}

#[test]
fn mann_whitney_is_scipys_counted_and_normal_with_ties_and_without() {
    let (mut exact, mut many) = (0, 0);
    for fixture in fixtures("rank_sum") {
        let (first, second) = (numbers(&fixture["first"]), numbers(&fixture["second"]));
        let found = rank::mann_whitney(&first, &second).expect("two groups");
        assert!(close(found.p, number(&fixture["p"])), "{found:?} {fixture}");
        assert!(close(found.p_greater, number(&fixture["greater"])), "{found:?} {fixture}");
        if first.len() + second.len() <= 40 { exact += 1 } else { many += 1 }
    }
    assert!(exact > 10 && many > 5, "{exact} {many}");
}

#[test]
fn signed_rank_is_scipys() {
    for fixture in fixtures("signed") {
        let found = rank::signed_rank(&numbers(&fixture["differences"])).expect("differences");
        assert!(close(found.p, number(&fixture["p"])), "{found:?} {fixture}");
    }
}

#[test]
fn shifts_are_medians_of_all_differences() {
    for fixture in fixtures("shift") {
        let found = shift::hodges_lehmann(&numbers(&fixture["first"]), &numbers(&fixture["second"]));
        assert!(close(found.expect("two groups"), number(&fixture["shift"])), "{found:?} {fixture}");
    }
}

#[test]
fn ranks_of_quantiles_are_those_of_scipys_binomial_distribution() {
    for fixture in fixtures("ranks") {
        let n = fixture["n"].as_u64().expect("a count");
        let found = order::quantile_ranks(n, number(&fixture["quantile"]), 0.95);
        let wanted = order::Ranks { low: fixture["low"].as_u64(), high: fixture["high"].as_u64() };
        // Near the switch to the normal approximation ranks may differ by a few thousandths.
        let near = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => one.abs_diff(other) <= if n > 10_000 { 3 } else { 0 },
            (one, other) => one == other,
        };
        assert!(near(found.low, wanted.low) && near(found.high, wanted.high), "{found:?} {fixture}");
    }
}

#[test]
fn student_s_quantiles_are_scipys() {
    for fixture in fixtures("student") {
        let freedom = fixture["freedom"].as_u64().expect("a count") as usize;
        let found = shift::student_quantile(number(&fixture["p"]), freedom).expect("within 0.5 and 1");
        assert!((found - number(&fixture["t"])).abs() < 1e-6 * (1.0 + found), "{found} {fixture}");
    }
}

#[test]
fn the_bootstrap_is_scipys_but_for_the_draw() {
    for fixture in fixtures("bootstrap") {
        let values = numbers(&fixture["values"]);
        let mut drawn = values.clone();
        let found = shift::interval(median(&values).expect("some"), values.len(), 1, 0.95, 1, |rng| {
            drawn.iter_mut().for_each(|slot| *slot = values[rng.usize(..values.len())]);
            median(&drawn)
        });
        let found = found.expect("enough values");
        for (end, wanted) in [(found.low, &fixture["low"]), (found.high, &fixture["high"])] {
            assert!((end - number(wanted)).abs() < 0.08, "{found:?} {fixture}");
        }
    }
}
