//! The table of `binderperf kpi`: what Android publishes of each kernel release.
//! Not here: the measurements; verdicts on a difference (`crate::compare`).
//! Facts: the release notes of Android's common kernels have rows "Binder-rpc", "Binder-addints" and "Hwbinder".

use std::collections::BTreeMap;

use super::remarks::without_numbers;
use super::table::{Row, Table, cells};
use crate::ratio::Controls;
use crate::schema::{Case, CaseKind, Run};
use crate::stats;
use crate::stats::order::quantile_ranks;

/// The name of the test in its plan.
pub const TEST: &str = "kpi";

/// The families as Android calls them.
const NAMES: [(&str, &str); 3] = [
    ("BM_sendVec_rpc", "Binder-rpc"),
    ("BM_addInts", "Binder-addints"),
    ("BM_sendVec_binderize", "Hwbinder"),
];

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Whether a run measures them.
pub(super) fn has_kpis(run: &Run) -> bool {
    run.plan.test == TEST
}

/// The table: a row for each case, with its ratio to each control.
pub(super) fn table(run: &Run) -> String {
    let controls = Controls::of(&run.cases);
    let words = control_words(run);
    let heads = ["KPI", "payload", "threads", "median", "interval"].into_iter().map(str::to_owned);
    let heads = heads.chain(words.iter().map(|word| format!("x {word}")));
    let tests = run.cases.iter().filter(|case| case.kind == CaseKind::Test);
    let rows = tests.map(|case| row(case, &controls, &words));
    let rounds = run.cases.iter().map(|case| case.measurements().count()).max().unwrap_or(0);
    let what = match rounds {
        1 => "the median of one round".to_owned(),
        rounds => format!("medians of the medians of {rounds} rounds"),
    };
    let unit = run.clock.unit.name();
    let note =
        "interval: 95 % for the median of this run's rounds; it knows nothing of other runs, `compare` does";
    Table::new(heads).rows(rows).notes([format!("{what}, in {unit}"), note.to_owned()]).text()
}

/// The last words of the controls' families, in their order.
fn control_words(run: &Run) -> Vec<String> {
    let controls = run.cases.iter().filter(|case| case.kind == CaseKind::Control);
    let mut words: Vec<String> = Vec::new();
    for case in controls {
        let word = case.family.rsplit('_').next().unwrap_or_default();
        if words.iter().all(|known| known != word) {
            words.push(word.to_owned());
        }
    }
    words
}

fn row(case: &Case, controls: &Controls, words: &[String]) -> Row {
    let name = NAMES
        .iter()
        .find(|(family, _)| *family == case.family)
        .map_or(case.family.as_str(), |(_, name)| name);
    let mut medians: Vec<f64> = case.medians().collect();
    let Some(median) = stats::median(&medians) else {
        return Row::words(name, &without_numbers(Some(case)));
    };
    medians.sort_unstable_by(f64::total_cmp);
    let ratios: BTreeMap<String, f64> = controls.ratios(case, median).collect();
    let ratio = |word: &String| ratios.get(&format!("x_{word}")).map(|ratio| format!("{ratio:.2}"));
    cells![
        name,
        format!("{} B", case.payload_bytes),
        u64::from(case.threads),
        format!("{median:.0}"),
        interval(&medians)
    ]
    .and(words.iter().map(|word| ratio(word).unwrap_or_default()))
}

/// The interval of the median by ranks; empty where there are too few rounds, the value itself where all are the same.
fn interval(sorted: &[f64]) -> String {
    let ranks = quantile_ranks(sorted.len() as u64, 0.5, CONFIDENCE);
    let at = |rank: Option<u64>| rank.and_then(|rank| sorted.get(rank as usize - 1));
    match (sorted, at(ranks.low), at(ranks.high)) {
        (_, Some(low), Some(high)) if low < high => format!("{low:.0} - {high:.0}"),
        ([first, .., last], ..) if first == last => "all the same".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::schema::Outcome;

    fn case(family: &str, payload: u64, threads: u32, rounds: &[u64]) -> Case {
        let outcomes = rounds.iter().map(|median| Outcome::Measured(fixtures::of_times([*median; 3])));
        let kind =
            if NAMES.iter().any(|(known, _)| *known == family) { CaseKind::Test } else { CaseKind::Control };
        Case { kind, threads, ..fixtures::case(family, payload, 0, outcomes.collect()) }
    }

    fn text(cases: Vec<Case>) -> String {
        let mut run = fixtures::run();
        run.cases = cases;
        table(&run)
    }

    fn line(text: &str, begin: &[&str]) -> Vec<String> {
        let lines =
            text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>());
        let starts = |line: &Vec<String>| line.iter().zip(begin).all(|(word, want)| word == want);
        lines.into_iter().find(starts).unwrap_or_else(|| panic!("{begin:?} in {text}"))
    }

    #[test]
    fn each_figure_has_its_interval_and_its_ratios() {
        let rounds: Vec<u64> = (100..110).collect();
        let text = text(vec![
            case("BM_sendVec_pipe", 64, 1, &[50; 10]),
            case("BM_sendVec_unix", 8, 1, &[10; 10]),
            case("BM_sendVec_rpc", 64, 1, &rounds),
            case("BM_sendVec_rpc", 64, 4, &[400; 10]),
            case("BM_addInts", 8, 1, &[20, 21]),
            case("BM_sendVec_binderize", 64, 1, &[75; 10]),
        ]);
        assert!(text.contains("medians of the medians of 10 rounds, in ns"), "{text}");
        // The second and the ninth of ten values are beyond the median with 97.9 %.
        let rpc = ["Binder-rpc", "64", "B", "1", "104", "101", "-", "108", "2.09"];
        assert_eq!(line(&text, &["Binder-rpc", "64", "B", "1"]), rpc, "{text}");
        let several = ["Binder-rpc", "64", "B", "4", "400", "all", "the", "same"];
        assert_eq!(line(&text, &several[..4]), several, "a control has one caller: {text}");
        assert_eq!(
            line(&text, &["Binder-addints"]),
            ["Binder-addints", "8", "B", "1", "20", "2.05"],
            "{text}"
        );
        let hwbinder = ["Hwbinder", "64", "B", "1", "75", "all", "the", "same", "1.50"];
        assert_eq!(line(&text, &["Hwbinder"]), hwbinder, "{text}");
    }

    #[test]
    fn a_figure_that_could_not_be_measured_says_why() {
        let failed = Outcome::Failed { reason: "the server died".to_owned(), partial: None };
        let mut case = case("BM_addInts", 8, 1, &[]);
        case.repetitions.push(crate::schema::Repetition { index: 0, outcome: failed });
        let text = text(vec![case]);
        assert!(text.contains("Binder-addints") && text.contains("the server died"), "{text}");
    }
}
