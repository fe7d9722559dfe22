//! Verdicts as text: the table of a run's tests, and the lines of a single test.
//! Not here: judging (`crate::verdict`, `super::report`), HTML.

use super::printable;
use crate::verdict::{TestVerdicts, Verdict};

/// A row for each verdict, with all columns to the left, as they hold text.
pub(super) fn table(tests: &[TestVerdicts]) -> String {
    let heads = ["Test", "", "Verdict", "Measured (expected)"].map(str::to_owned);
    let rows = tests.iter().flat_map(|test| {
        test.verdicts.iter().enumerate().map(|(at, verdict)| {
            let name = if at == 0 { test.test.as_str() } else { "" };
            let numbers = numbers(verdict);
            [name, verdict.grade.name(), &verdict.words, &numbers].map(|cell| printable(cell).into_owned())
        })
    });
    let rows: Vec<[String; 4]> = [heads].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let row = |[test, grade, words, measured]: &[String; 4]| {
        let line = format!("{test:<first$}  {grade:<second$}  {words:<third$}  {measured}");
        line.trim_end().to_owned() + "\n"
    };
    let rule = "-".repeat(first + second + third + width(3) + 6) + "\n";
    row(&rows[0]) + &rule + &rows[1..].iter().map(row).collect::<String>()
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
pub(super) fn lines(verdicts: &[Verdict]) -> String {
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
