//! Renderings of a record, one module each.
//! Not here: writing them, deciding on colours or terminals.

pub mod across;
pub(crate) mod chart;
pub mod checkup;
pub mod compare;
pub mod crowd;
mod device;
pub mod flavours;
pub mod history;
mod imported;
pub mod json;
pub mod kpi;
pub mod latency;
pub mod matrix;
pub(crate) mod object;
pub mod permissions;
mod recorder;
pub(crate) mod remarks;
pub mod report;
pub mod soak;
pub mod summary;
pub(crate) mod table;
pub mod targets;
pub(crate) mod verdicts;

pub use recorder::picture_title;
pub use units::visible::printable;

/// A table as text: a first column of words, the others of numbers. A column without any text below its head is not shown.
#[must_use]
pub fn plain(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let row = |cells: Vec<String>| table::Row::Cells(cells.into_iter().map(table::Cell::from).collect());
    table::Table::new(heads).rows(rows.map(row)).text()
}

/// A CSV cell: control characters escaped, in quotes if it contains a comma or a quote.
pub(crate) fn csv_cell(text: &str) -> String {
    let text = printable(text);
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

/// Escapes text for Markdown, including Markdown tables.
fn in_markdown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        if "|*`<[\\".contains(letter) {
            shown.push('\\');
        }
        shown.push(letter);
    }
    shown
}
