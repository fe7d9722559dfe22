//! Many kernels beside the first as text, Markdown, JSON and one HTML page.
//! Not here: the figures (`crate::matrix`).

use page::TemplateError;
use serde::Serialize;

use super::compare::percent;
use super::grid::{Row as Line, grid};
use super::printable;
use crate::compare::Verdict;
use crate::matrix::{Cell, Column, Matrix, Row, Table};
use crate::schema::{CaseKind, ClockUnit};
use crate::verdict::Grade;

/// The value of `schema` in [`json()`].
pub const SCHEMA: &str = "binderperf.matrix";
/// Most cases beside one another in a text.
const COLUMNS: usize = 5;

const PAGE: &str = include_str!("matrix/page.html");
const STYLE: &str = concat!(include_str!("report/style.css"), include_str!("matrix/style.css"));

/// The text for a terminal.
#[must_use]
pub fn text(found: &Matrix) -> String {
    let mut text = String::new();
    for table in &found.tests {
        text += &format!("{}{}\n", if text.is_empty() { "" } else { "\n" }, head(found, table));
        let at: Vec<usize> = (0..table.columns.len()).collect();
        // Without a figure there is one table all the same, of reasons.
        for columns in if at.is_empty() { vec![&at[..]] } else { at.chunks(COLUMNS).collect() } {
            let cases = columns.iter().map(|at| table.columns[*at].case.clone());
            let heads: Vec<String> = std::iter::once("Kernel".to_owned()).chain(cases).collect();
            let lines: Vec<Line> = table.rows.iter().map(|row| line(table, row, columns)).collect();
            text += &format!("{}\n", grid(&heads, &lines));
        }
        let told = table.rows.iter().flat_map(spoken).chain(warnings(table));
        text += &told.map(|words| format!("{words}\n")).collect::<String>();
    }
    text + legend(found)
}

/// Tables for a pull request.
#[must_use]
pub fn markdown(found: &Matrix) -> String {
    let mut text = String::new();
    for table in &found.tests {
        text += &format!("{}{}\n\n", if text.is_empty() { "" } else { "\n" }, head(found, table));
        let cases = table.columns.iter().map(|column| format!(" `{}` |", piped(&column.case)));
        text += &format!(
            "| kernel |{}\n|---|{}\n",
            cases.collect::<String>(),
            "--:|".repeat(table.columns.len())
        );
        for row in &table.rows {
            let name = piped(&row.kernel);
            text += &match &row.failure {
                Some(why) => format!("| `{name}` | {} |\n", piped(&reason(why))),
                None => format!("| `{name}` | {} |\n", cells(table, row).join(" | ")),
            };
        }
        let told = table.rows.iter().flat_map(spoken).chain(warnings(table));
        let spoken: String = told.map(|words| format!("- {words}\n")).collect();
        text += &if spoken.is_empty() { spoken } else { format!("\n{spoken}") };
    }
    format!("{text}\n{}", legend(found))
}

/// Every figure as JSON.
#[must_use]
pub fn json(found: &Matrix) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "version": 1, "matrix": found });
    format!("{document:#}\n")
}

/// The whole page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(found: &Matrix) -> Result<String, TemplateError> {
    let parts = found.tests.iter().enumerate().map(|(at, table)| part(found, at, table));
    let values = Values { parts: parts.collect(), legend: legend(found) };
    Ok(page::document("binderperf matrix", STYLE, &page::render(PAGE, &values)?))
}

#[derive(Serialize)]
struct Values {
    parts: Vec<Part>,
    legend: &'static str,
}

#[derive(Serialize)]
struct Part {
    anchor: String,
    test: String,
    head: String,
    columns: Vec<String>,
    rows: Vec<Drawn>,
    spoken: Vec<String>,
}

#[derive(Serialize)]
struct Drawn {
    kernel: String,
    release: String,
    cells: Vec<Shown>,
    failure: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    words: String,
    value: String,
    /// `slower`, `faster` or nothing.
    class: &'static str,
}

fn part(found: &Matrix, at: usize, table: &Table) -> Part {
    let rows = table.rows.iter().map(|row| Drawn {
        kernel: printable(&row.kernel).into_owned(),
        release: printable(&row.release).into_owned(),
        cells: row.cells.iter().map(|cell| shown(unit(table), cell.as_ref())).collect(),
        failure: row.failure.as_deref().map(|why| printable(why).into_owned()),
    });
    Part {
        anchor: format!("test-{}", at + 1),
        test: printable(&table.test).into_owned(),
        head: head(found, table),
        columns: table.columns.iter().map(named).collect(),
        rows: rows.collect(),
        spoken: table.rows.iter().flat_map(spoken).chain(warnings(table)).collect(),
    }
}

/// Differences between the runs besides the kernels.
fn warnings(table: &Table) -> impl Iterator<Item = String> {
    table.environment.iter().map(|words| format!("WARNING {}", printable(words)))
}

/// Text for a cell of a Markdown table.
fn piped(text: &str) -> String {
    printable(text).replace('|', "\\|")
}

fn named(column: &Column) -> String {
    let case = printable(&column.case);
    if column.kind == CaseKind::Control { format!("{case} (control)") } else { case.into_owned() }
}

fn shown(unit: ClockUnit, cell: Option<&Cell>) -> Shown {
    let class = match cell.and_then(|cell| cell.to_first).map(|to_first| to_first.verdict) {
        Some(Verdict::Slower) => "slower",
        Some(Verdict::Faster) => "faster",
        _ => "",
    };
    let value = cell.map(|cell| unit.show(cell.value)).unwrap_or_default();
    Shown { words: cell_words(unit, cell), value, class }
}

/// The unit of a table's values, which has none without a baseline.
fn unit(table: &Table) -> ClockUnit {
    table.unit.unwrap_or(ClockUnit::Ns)
}

fn head(found: &Matrix, table: &Table) -> String {
    let test = printable(&table.test);
    match &table.baseline {
        Some(baseline) => {
            format!("{test}: {} of a call, relative to {}", found.metric.name(), printable(baseline))
        }
        None => format!("{test}: no kernel has a result"),
    }
}

fn line(table: &Table, row: &Row, columns: &[usize]) -> Line {
    let name = printable(&row.kernel).into_owned();
    if let Some(why) = &row.failure {
        return Line::Words(name, reason(why));
    }
    let cells = columns.iter().map(|at| cell_words(unit(table), row.cells.get(*at).and_then(Option::as_ref)));
    Line::Numbers(std::iter::once(name).chain(cells).collect())
}

fn cells(table: &Table, row: &Row) -> Vec<String> {
    row.cells.iter().map(|cell| cell_words(unit(table), cell.as_ref())).collect()
}

/// `21,007 insns` of the baseline, `+12.3 % (+11.8..+12.9)` of the others; `-` without a figure.
fn cell_words(unit: ClockUnit, cell: Option<&Cell>) -> String {
    let Some(cell) = cell else { return "-".to_owned() };
    let Some(to_first) = cell.to_first else { return unit.show(cell.value) };
    let interval = to_first
        .estimate
        .interval
        .map(|bounds| format!(" ({}..{})", percent(bounds.low), percent(bounds.high)));
    let mark = match to_first.verdict {
        Verdict::CannotTell(_) => " ?",
        Verdict::Same => " =",
        Verdict::Slower | Verdict::Faster => "",
    };
    format!("{}{}{mark}", percent(to_first.estimate.ratio), interval.unwrap_or_default())
}

/// The last thing that a failed run said; the lines before it are the command and what led to it.
fn reason(text: &str) -> String {
    printable(text.trim_end().lines().next_back().unwrap_or_default().trim()).into_owned()
}

/// The verdicts of a kernel. Those on throughput say no more than the table.
fn spoken(row: &Row) -> Vec<String> {
    let told =
        row.verdicts.iter().filter(|verdict| verdict.about != "throughput" || verdict.grade == Grade::Bad);
    told.map(|verdict| {
        let measured =
            if verdict.measured.is_empty() { String::new() } else { format!(": {}", verdict.measured) };
        printable(&format!("{}: {} {}{measured}", row.kernel, verdict.grade.name(), verdict.words))
            .into_owned()
    })
    .collect()
}

fn legend(found: &Matrix) -> &'static str {
    match found.tests.iter().all(|table| table.unit.is_none_or(|unit| unit == ClockUnit::Instructions)) {
        true => {
            "\nCounted guest instructions: they repeat from boot to boot to within 1 %, so one boot of each is enough. =: no difference.\n"
        }
        false => {
            "\nIn brackets the 95 % interval over the runs. =: no difference; ?: too few or too unlike runs to tell. Of 50 kernels \
             that are alike one is called slower or faster. Emulated time tells little of real time; --icount counts instructions.\n"
        }
    }
}

#[cfg(test)]
mod tests;
