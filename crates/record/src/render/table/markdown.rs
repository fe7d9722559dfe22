//! A table for a pull request or a mail.
//! Not here: other forms (`super::text`, `super::html`).

use super::{Cell, Look, Row, Table};
use crate::render::in_markdown;

impl Table {
    /// Heading, table and notes, each after an empty line. Numbers are aligned at their ends.
    pub(crate) fn markdown(&self) -> String {
        let columns = self.shown();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = if self.title.is_empty() {
            String::new()
        } else {
            format!("\n## {}\n", in_markdown(&self.title))
        };
        let mut heads: Vec<String> = columns.iter().map(|(_, column)| in_markdown(&column.head)).collect();
        let mut rule: String =
            columns.iter().map(|(_, column)| if column.is_words { "---|" } else { "--:|" }).collect();
        // A cell without a head is not shown.
        if heads.len() == 1 && self.rows.iter().any(|row| matches!(row, Row::Words(..))) {
            heads.push(String::new());
            rule += "---|";
        }
        text += &format!("\n{}|{rule}\n", line(&heads));
        for row in &self.rows {
            text += &match row {
                Row::Cells(cells) => {
                    let shown = |at: &usize| cells.get(*at).map(Cell::in_markdown).unwrap_or_default();
                    line(&columns.iter().map(|(at, _)| shown(at)).collect::<Vec<_>>())
                }
                Row::Words(name, words) => line(&[name.in_markdown(), in_markdown(words)]),
                Row::Rule(_) => String::new(),
            };
        }
        let notes: String = self.notes.iter().map(|note| format!("- {}\n", in_markdown(note))).collect();
        if notes.is_empty() { text } else { format!("{text}\n{notes}") }
    }
}

impl Cell {
    fn in_markdown(&self) -> String {
        match self.look {
            Look::Code => format!("`{}`", self.text.replace('`', "'").replace('|', "\\|")),
            Look::Strong if !self.text.is_empty() => format!("**{}**", in_markdown(&self.text)),
            _ => in_markdown(&self.text),
        }
    }
}
