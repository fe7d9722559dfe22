//! Histories of made-up runs.

use super::*;
use crate::fixtures;
use crate::render::history::csv;
use fastrand::Rng;

/// One entry for each value, a day apart.
fn daily(case: &str, values: &[f64]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (day, value) in values.iter().enumerate() {
        let mut run = fixtures::run();
        run.started = format!("2026-{:02}-{:02}T12:00:00+00:00", 1 + day / 28, 1 + day % 28);
        let entry = self::entries(&run).remove(0);
        entries.push(Entry { case: case.to_owned(), value: *value, ..entry });
    }
    entries
}

fn steps(before: usize, after: usize) -> Vec<f64> {
    let mut rng = Rng::with_seed(3);
    (0..before + after)
        .map(|at| if at < before { 100.0 } else { 106.0 } + crate::stats::normal(&mut rng))
        .collect()
}

#[test]
fn a_run_gives_a_line_for_each_case_and_metric() {
    let run = fixtures::run();
    let found = entries(&run);
    let told: Vec<(&str, Metric)> = found.iter().map(|entry| (entry.case.as_str(), entry.metric)).collect();
    let case = "BM_sendVec_binder/4";
    assert_eq!(told, [(case, Metric::Median), (case, Metric::P99), (case, Metric::Mean)]);
    assert_eq!((found[2].value, found[2].kernel.as_str()), (2500.0, "6.12.9-amd64"));
    assert!(found[0].environment.contains("board; bare; 4 x"), "{}", found[0].environment);
    let text: String = found.iter().map(Entry::line).collect();
    assert_eq!(parse(&text), (found, vec![]));
}

#[test]
fn lines_that_are_cut_short_or_strange_cost_only_themselves() {
    let entries = daily("x", &[1.0, 2.0, 3.0]);
    let lines: Vec<String> = entries.iter().map(Entry::line).collect();
    let text = format!("{}{}\n\nnot JSON\n{}", lines[0], &lines[1][..30], lines[2]);
    assert_eq!(parse(&text), (vec![entries[0].clone(), entries[2].clone()], vec![2, 4]));
    let negative = lines[0].replace("\"value\":1.0", "\"value\":-1.0");
    assert_eq!(parse(&negative), (vec![], vec![1]));
}

#[test]
fn the_same_run_is_added_once() {
    let known = daily("x", &[1.0, 2.0]);
    let more = daily("x", &[1.0, 2.0, 3.0]);
    assert_eq!(fresh(&known, more.clone()), [more[2].clone()]);
}

#[test]
fn what_is_measured_under_other_circumstances_is_another_series() {
    let mut run = fixtures::latency_run(&[fixtures::Pair::healthy(0)]);
    let alone = entries(&run);
    for case in &mut run.cases {
        let latency = case.latency.as_mut().expect("a latency case");
        (latency.pairs, latency.load) = (2, "cpu:1".to_owned());
    }
    let loaded = entries(&run);
    assert!(loaded[0].environment.ends_with("; 2 pairs; load cpu:1"), "{}", loaded[0].environment);
    assert_eq!(series(&[alone.clone(), loaded].concat()).len(), 2 * series(&alone).len());
}

#[test]
fn runs_are_in_the_order_in_which_they_began_wherever_their_clocks_stood() {
    let mut entries = daily("x", &[1.0, 2.0]);
    entries[0].date = "2026-10-25T02:30:00+02:00".to_owned();
    entries[1].date = "2026-10-25T02:10:00.5+01:00".to_owned();
    entries.reverse();
    let all = series(&entries);
    assert_eq!(all[0].entries.iter().map(|entry| entry.value).collect::<Vec<_>>(), [1.0, 2.0]);
    assert!(csv(&all).lines().nth(1).expect("a row").starts_with("2026-10-25T02:30"), "{}", csv(&all));
    let strange = entries[0].line().replace("2026-10-25T02:10:00.5+01:00", "yesterday");
    assert_eq!(parse(&strange), (vec![], vec![1]));
}

#[test]
fn a_step_is_found_with_its_levels_and_noise_has_none() {
    let entries = daily("x", &steps(30, 20));
    let found = series(&entries);
    assert_eq!(found.len(), 1);
    let turn = found[0].changes[0];
    assert!(found[0].changes.len() == 1 && turn.at == 30, "{:?}", found[0].changes);
    assert!((turn.before - 100.0).abs() < 1.0 && (turn.after - 106.0).abs() < 1.0, "{turn:?}");
    assert_eq!(series(&daily("x", &steps(50, 0)))[0].changes, []);
    let mut disturbed = steps(30, 20);
    (disturbed[11], disturbed[40]) = (300.0, 320.0);
    assert_eq!(series(&daily("x", &disturbed))[0].changes.len(), 1, "outliers hide nothing");
}

#[test]
fn other_machines_and_cases_are_other_series_and_order_is_by_date() {
    let mut entries = daily("x", &[1.0, 2.0, 3.0]);
    entries.extend(daily("y", &[4.0]));
    entries[1].environment = "elsewhere".to_owned();
    entries.reverse();
    let found = series(&entries);
    let sizes: Vec<(&str, usize)> = found.iter().map(|one| (one.case.as_str(), one.entries.len())).collect();
    assert_eq!(sizes, [("x", 2), ("x", 1), ("y", 1)]);
    assert!(found[0].entries[0].value == 1.0 && found[0].entries[1].value == 3.0);
}

#[test]
fn the_table_has_a_row_for_each_run_and_leaves_gaps() {
    let mut entries = daily("BM_a/4", &[1.5, 2.0]);
    entries.extend(daily("latency_binder/fifo", &[7.0]));
    let table = csv(&series(&entries));
    let wanted = "time,kernel,tool,BM_a_4.median,latency_binder_fifo.median\n\
                  2026-01-01T12:00:00+00:00,6.12.9-amd64,0.1.0,1.5,7\n\
                  2026-01-02T12:00:00+00:00,6.12.9-amd64,0.1.0,2,\n";
    assert_eq!(table, wanted);
}
