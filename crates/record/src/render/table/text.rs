//! A table for a terminal: aligned columns.
//! Not here: other forms (`super::markdown`, `super::html`).

use super::{Cell, Row, Table};

impl Table {
    /// Title, heads, a rule, rows and notes, each on lines of their own. Without any head there is no rule.
    pub(crate) fn text(&self) -> String {
        let columns = self.widths();
        let pad = |(at, width, is_words): (usize, usize, bool), text: &str| match is_words {
            _ if at == 0 => format!("{:1$}{text:<width$}", "", self.indent),
            true => format!("  {text:<width$}"),
            false => format!("  {text:>width$}"),
        };
        let line = |text: &dyn Fn(usize) -> String| -> String {
            let padded = columns.iter().map(|column| pad(*column, &text(column.0)));
            padded.collect::<String>().trim_end().to_owned() + "\n"
        };
        let whole = columns.iter().map(|(_, width, _)| width + 2).sum::<usize>().saturating_sub(2);
        let mut text = if self.title.is_empty() { String::new() } else { format!("{}\n", self.title) };
        if self.columns.iter().any(|column| !column.head.is_empty()) {
            text += &line(&|column| self.columns[column].head.clone());
            text += &("-".repeat(whole) + "\n");
        }
        for row in &self.rows {
            text += &match row {
                Row::Cells(cells) => line(&|column| cells.get(column).map_or("", Cell::text).to_owned()),
                Row::Words(name, words) => format!("{}  {words}\n", pad(columns[0], &name.text)),
                Row::Rule(words) if words.is_empty() => "-".repeat(whole) + "\n",
                Row::Rule(words) => format!("{:-^whole$}\n", format!(" {words} ")),
            };
        }
        text + &self.notes.iter().map(|note| format!("{note}\n")).collect::<String>()
    }

    /// The columns that are shown: number, width in characters, whether they hold words.
    fn widths(&self) -> Vec<(usize, usize, bool)> {
        let width = |at: usize, head: &str| {
            let cells = self.cells(at).map(Cell::text).chain([head]).map(|text| text.chars().count());
            let most = cells.max().unwrap_or(0);
            self.widest.map_or(most, |widest| most.min(widest))
        };
        self.shown().into_iter().map(|(at, column)| (at, width(at, &column.head), column.is_words)).collect()
    }
}

impl Cell {
    fn text(&self) -> &str {
        &self.text
    }
}
