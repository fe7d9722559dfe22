//! The history as text, JSON and CSV.
//! Not here: finding changes (`crate::history`).

use super::compare::percent;
use super::table::{Row, Table, cells};
use super::{csv_cell, printable};
use crate::date::milliseconds;
use crate::history::Series;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The history as text: series by environment, each followed by its changes.
#[must_use]
pub fn text(all: &[Series]) -> String {
    let mut environments: Vec<&str> = all.iter().map(|series| series.environment.as_str()).collect();
    environments.sort_unstable();
    environments.dedup();
    let mut text = String::new();
    for environment in environments {
        let own: Vec<&Series> = all.iter().filter(|series| series.environment == environment).collect();
        text += &format!("{}\n\n", printable(environment));
        let heads = ["Case", "metric", "runs", "first", "last", "now"];
        text += &Table::new(heads).rows(own.iter().map(|series| line(series))).text();
        let changes: String = own.iter().map(|series| changes(series)).collect();
        text += if changes.is_empty() { "\nNo change of any series was found.\n" } else { "\nChanges\n" };
        text += &changes;
        text.push('\n');
    }
    text
}

/// All numbers and changes as JSON.
#[must_use]
pub fn json(all: &[Series]) -> String {
    format!("{:#}\n", serde_json::json!({ "schema": "binderperf.history", "version": 1, "series": all }))
}

/// The series of one environment as a table for Apache Otava: a row for each run, a column for each case and metric.
/// Missing values are empty cells.
#[must_use]
pub fn csv(all: &[Series]) -> String {
    type Row<'e> = (Option<i64>, &'e str, &'e str, &'e str);
    let mut rows: BTreeMap<Row<'_>, BTreeMap<usize, f64>> = BTreeMap::new();
    for (column, series) in all.iter().enumerate() {
        for entry in &series.entries {
            let row = (milliseconds(&entry.date), &*entry.date, &*entry.kernel, &*entry.tool);
            let row = rows.entry(row).or_default();
            row.insert(column, entry.value);
        }
    }
    let names: Vec<String> = all.iter().map(|series| csv_cell(&column(series))).collect();
    let mut text = format!("time,kernel,tool,{}\n", names.join(","));
    for ((_, date, kernel, tool), values) in &rows {
        let cells = (0..all.len()).map(|at| values.get(&at).map_or(String::new(), ToString::to_string));
        let cells = cells.collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "{},{},{},{cells}", csv_cell(date), csv_cell(kernel), csv_cell(tool));
    }
    text
}

/// The column name of a series, e.g. `BM_sendVec_binder_4.median`, without characters at which Otava splits.
#[must_use]
pub fn column(series: &Series) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "_.-".contains(letter) { letter } else { '_' };
    format!("{}.{}", series.case.chars().map(plain).collect::<String>(), series.metric.name())
}

fn day(date: &str) -> &str {
    date.get(..10).unwrap_or(date)
}

fn line(series: &Series) -> Row {
    let (Some(first), Some(last)) = (series.entries.first(), series.entries.last()) else {
        return Row::words(&series.case, "nothing");
    };
    cells![
        &series.case,
        series.metric.name(),
        series.entries.len(),
        day(&first.date),
        day(&last.date),
        series.unit.show(last.value),
    ]
}

fn changes(series: &Series) -> String {
    let each = series.changes.iter().filter_map(|turn| {
        let (before, after) = (series.entries.get(turn.at.checked_sub(1)?)?, series.entries.get(turn.at)?);
        let mut text = format!(
            "  {} {}: {} from {}: {} -> {} (p {:.4})",
            printable(&series.case),
            series.metric.name(),
            percent(turn.after / turn.before),
            printable(&after.date),
            series.unit.show(turn.before),
            series.unit.show(turn.after),
            turn.p,
        );
        for (what, was, is) in
            [("kernel", &before.kernel, &after.kernel), ("binderperf", &before.tool, &after.tool)]
        {
            if was != is {
                text += &format!("; {what} {} -> {}", printable(was), printable(is));
            }
        }
        Some(text + "\n")
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::history::{Entry, entries, series};

    #[test]
    fn a_change_is_shown_with_what_else_changed_then() {
        let entry = |at: usize| {
            let mut run = fixtures::run();
            run.started = format!("2026-01-{:02}T12:00:00+00:00", at + 1);
            run.host.kernel.release = if at < 14 { "6.12.9" } else { "7.2.13" }.to_owned();
            let value = if at < 14 { 2500.0 } else { 2750.0 } + (at % 3) as f64;
            Entry { value, ..entries(&run).remove(0) }
        };
        let text = text(&series(&(0..28).map(entry).collect::<Vec<_>>()));
        let line = text.lines().find(|line| line.starts_with("  BM_sendVec_binder/4 median: +10.0 %"));
        let line = line.unwrap_or_else(|| panic!("no change in\n{text}"));
        assert!(line.contains("from 2026-01-15") && line.ends_with("kernel 6.12.9 -> 7.2.13"), "{line}");
        assert!(text.contains("board; bare"), "{text}");
    }

    #[test]
    fn without_a_change_it_says_so() {
        let text = text(&series(&entries(&fixtures::run())));
        assert!(text.contains("No change") && text.contains("2026-01-31"), "{text}");
    }
}
