//! Aligns cells in columns.
//! Not here: the content of the cells.

use super::printable;

/// One line of a table.
pub(super) enum Row {
    /// A cell for each head.
    Numbers(Vec<String>),
    /// A name, and text in place of all other cells.
    Words(String, String),
    /// Text across the whole table.
    Rule(String),
}

/// The table: headings, a rule, rows. The first column is left-aligned, others right-aligned; empty columns are
/// omitted.
pub(super) fn grid(heads: &[impl AsRef<str>], rows: &[Row]) -> String {
    let cells = |column: usize| {
        rows.iter().filter_map(move |row| match row {
            Row::Numbers(cells) => cells.get(column).map(String::as_str),
            Row::Words(name, _) if column == 0 => Some(name.as_str()),
            Row::Words(..) | Row::Rule(_) => None,
        })
    };
    let columns: Vec<(usize, usize)> = (0..heads.len())
        .filter(|&column| column == 0 || cells(column).any(|cell| !cell.is_empty()))
        .map(|column| {
            let widest = cells(column).map(str::len).max().unwrap_or(0);
            (column, widest.max(heads[column].as_ref().len()))
        })
        .collect();
    let line = |cell: &dyn Fn(usize) -> String| -> String {
        let padded = columns.iter().map(|&(column, width)| match column {
            0 => format!("{:<width$}", cell(0)),
            _ => format!("  {:>width$}", cell(column)),
        });
        padded.collect::<String>().trim_end().to_owned() + "\n"
    };
    let width: usize = columns.iter().map(|&(_, width)| width + 2).sum();
    let mut text = line(&|column| heads[column].as_ref().to_owned());
    text += &("-".repeat(width - 2) + "\n");
    for row in rows {
        text += &match row {
            Row::Numbers(cells) => line(&|column| cells.get(column).cloned().unwrap_or_default()),
            Row::Words(name, words) => {
                let width = columns[0].1;
                format!("{name:<width$}  {}\n", printable(words))
            }
            Row::Rule(words) if words.is_empty() => "-".repeat(width - 2) + "\n",
            Row::Rule(words) => format!("{:-^1$}\n", format!(" {words} "), width - 2),
        };
    }
    text
}
