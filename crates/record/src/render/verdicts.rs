//! Verdicts as text: the table of a run's tests, and the lines of a single test.
//! Not here: judging (`crate::verdict`, `super::report`), HTML.

use super::printable;
use super::table::{Table, cells};
use crate::verdict::{TestVerdicts, Verdict};

/// A row for each verdict, with all columns to the left, as they hold text.
pub(crate) fn table(tests: &[TestVerdicts]) -> String {
    let rows = tests.iter().flat_map(|test| {
        test.verdicts.iter().enumerate().map(|(at, verdict)| {
            let name = if at == 0 { test.test.as_str() } else { "" };
            cells![name, verdict.grade.name(), &verdict.words, numbers(verdict)]
        })
    });
    Table::of_words(["Test", "", "Verdict", "Measured (expected)"]).rows(rows).text()
}

/// The measured value, and the expected one.
fn numbers(verdict: &Verdict) -> String {
    match (verdict.measured.as_str(), verdict.expected.as_str()) {
        (measured, "") => measured.to_owned(),
        ("", expected) => format!("(expected: {expected})"),
        (measured, expected) => format!("{measured} (expected: {expected})"),
    }
}

/// The verdicts on one test: measured against expected, then the reason and the next step.
pub(crate) fn lines(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let line = format!("{:<5} {}: {}", verdict.grade.name(), verdict.words, numbers(verdict));
        text += &(printable(&line).into_owned() + "\n");
        if let Some(why) = verdict.explanation() {
            text += &format!("      {}\n", printable(&why));
        }
    }
    text
}
