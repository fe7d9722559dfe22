//! Many kernels beside the first as text, Markdown, JSON and one HTML page.
//! Not here: the figures (`crate::matrix`).

use page::TemplateError;
use serde::Serialize;

use super::compare::percent;
use super::printable;
use super::table::{Cell, Look, Row, Table, cells};
use crate::compare::Verdict;
use crate::matrix::{Cell as Figure, Column, Matrix, Row as Kernel, Table as Test};
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
    let tables = found.tests.iter().map(|test| {
        let at: Vec<usize> = (0..test.columns.len()).collect();
        // Without a figure there is one table all the same, of reasons.
        let columns = if at.is_empty() { vec![&at[..]] } else { at.chunks(COLUMNS).collect() };
        let part = |columns: &&[usize]| table(test, columns, "Kernel", reason).text() + "\n";
        let parts: String = columns.iter().map(part).collect();
        let told: String = remarks(test).iter().map(|words| format!("{words}\n")).collect();
        format!("{}\n{parts}{told}", head(found, test))
    });
    tables.collect::<Vec<_>>().join("\n") + legend(found)
}

/// Tables for a pull request.
#[must_use]
pub fn markdown(found: &Matrix) -> String {
    let tables = found.tests.iter().map(|test| {
        let all: Vec<usize> = (0..test.columns.len()).collect();
        format!(
            "{}\n{}",
            head(found, test),
            table(test, &all, "kernel", reason).notes(remarks(test)).markdown()
        )
    });
    format!("{}\n{}", tables.collect::<Vec<_>>().join("\n"), legend(found))
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
    let values = Values { parts: parts.collect::<Result<_, _>>()?, legend: legend(found) };
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
    /// The table as HTML.
    table: String,
    remarks: Vec<String>,
}

fn part(found: &Matrix, at: usize, test: &Test) -> Result<Part, TemplateError> {
    let all: Vec<usize> = (0..test.columns.len()).collect();
    Ok(Part {
        anchor: format!("test-{}", at + 1),
        test: printable(&test.test).into_owned(),
        head: head(found, test),
        table: table(test, &all, "kernel", str::to_owned).html(&test.test)?,
        remarks: remarks(test),
    })
}

/// A row for each kernel, with these cases. `why`: what to show of the reason for a failure.
fn table(test: &Test, columns: &[usize], head: &str, why: fn(&str) -> String) -> Table {
    let name = |at: &usize| {
        let Column { case, kind } = &test.columns[*at];
        if *kind == CaseKind::Control { format!("{case} (control)") } else { case.clone() }
    };
    let row = |row: &Kernel| {
        let name = Cell::from(&row.kernel).look(Look::Code).hint(&row.release);
        match &row.failure {
            Some(failure) => Row::words(name, &why(failure)),
            None => cells![name].and(columns.iter().map(|at| cell(test, row.cells.get(*at)))),
        }
    };
    Table::new([head.to_owned()].into_iter().chain(columns.iter().map(name))).rows(test.rows.iter().map(row))
}

/// `21,007 insns` of the baseline, `+12.3 % (+11.8..+12.9)` of the others; `-` without a figure.
fn cell(test: &Test, figure: Option<&Option<Figure>>) -> Cell {
    let unit = unit(test);
    let Some(Some(figure)) = figure else { return Cell::from("-") };
    let value = unit.show(figure.value);
    let Some(to_first) = figure.to_first else { return Cell::from(value) };
    let bounds = to_first.estimate.interval;
    let interval = bounds.map(|bounds| format!(" ({}..{})", percent(bounds.low), percent(bounds.high)));
    let (mark, look) = match to_first.verdict {
        Verdict::CannotTell(_) => (" ?", Look::Plain),
        Verdict::Same => (" =", Look::Plain),
        Verdict::Slower => ("", Look::Slower),
        Verdict::Faster => ("", Look::Faster),
    };
    let words = format!("{}{}{mark}", percent(to_first.estimate.ratio), interval.unwrap_or_default());
    Cell::from(words).look(look).hint(&value)
}

/// What the table does not show: verdicts of its kernels, and differences between the runs besides the kernels.
fn remarks(test: &Test) -> Vec<String> {
    let warnings = test.environment.iter().map(|words| format!("WARNING {}", printable(words)));
    test.rows.iter().flat_map(spoken).chain(warnings).collect()
}

/// The unit of a table's values, which has none without a baseline.
fn unit(table: &Test) -> ClockUnit {
    table.unit.unwrap_or(ClockUnit::Ns)
}

fn head(found: &Matrix, table: &Test) -> String {
    let test = printable(&table.test);
    match &table.baseline {
        Some(baseline) => {
            format!("{test}: {} of a call, relative to {}", found.metric.name(), printable(baseline))
        }
        None => format!("{test}: no kernel has a result"),
    }
}

/// The last thing that a failed run said; the lines before it are the command and what led to it.
fn reason(text: &str) -> String {
    printable(text.trim_end().lines().next_back().unwrap_or_default().trim()).into_owned()
}

/// The verdicts of a kernel. Those on throughput say no more than the table.
fn spoken(row: &Kernel) -> Vec<String> {
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
            "\nCounted guest instructions: their medians repeat from boot to boot within 0.5 % where most calls are alike, else within 1 %, so one boot of each is enough. =: no difference.\n"
        }
        false => {
            "\nIn brackets the 95 % interval over the runs. =: no difference; ?: too few or too unlike runs to tell. Of 50 kernels \
             that are alike one is called slower or faster. Emulated time tells little of real time; --icount counts instructions.\n"
        }
    }
}

#[cfg(test)]
mod tests;
