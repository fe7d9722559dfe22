//! A table of a page. On a narrow one each row is a block, with the head before each number.
//! Not here: other forms (`super::text`, `super::markdown`), its style (`report/style.css`), its heading (the pages).

use page::TemplateError;
use serde::Serialize;

use super::{Cell, Look, Row, Table};

const TEMPLATE: &str = include_str!("table.html");

#[derive(Serialize)]
struct Values<'t> {
    label: &'t str,
    long_cells: bool,
    groups: Vec<(&'static str, usize)>,
    heads: Vec<&'t str>,
    rows: Vec<Line<'t>>,
    notes: &'t [String],
}

/// A row: its cells, or only the first and words.
#[derive(Serialize)]
struct Line<'t> {
    cells: Vec<&'t Cell>,
    words: Option<&'t str>,
    /// Whether it tells of a failure.
    is_bad: bool,
}

impl Table {
    /// Table and notes. `label` names it for those who do not see the page.
    ///
    /// # Errors
    /// [`TemplateError`] if the template is faulty.
    pub(crate) fn html<'t>(&'t self, label: &'t str) -> Result<String, TemplateError> {
        let columns = self.shown();
        let mut groups: Vec<(&'static str, usize)> = Vec::new();
        for (_, column) in &columns {
            match groups.last_mut() {
                Some((title, columns)) if *title == column.group => *columns += 1,
                _ => groups.push((column.group, 1)),
            }
        }
        groups = if groups.len() > 1 { groups } else { Vec::new() };
        let line = |row: &'t Row| match row {
            Row::Cells(cells) => {
                let is_bad = cells.iter().any(|cell| cell.look == Look::Bad);
                let cells = columns.iter().filter_map(|(at, _)| cells.get(*at)).collect();
                Some(Line { cells, words: None, is_bad })
            }
            Row::Words(name, words) => Some(Line { cells: vec![name], words: Some(words), is_bad: false }),
            Row::Rule(_) => None,
        };
        let values = Values {
            label,
            long_cells: self.long_cells,
            groups,
            heads: columns.iter().map(|(_, column)| column.head.as_str()).collect(),
            rows: self.rows.iter().filter_map(line).collect(),
            notes: &self.notes,
        };
        page::render(TEMPLATE, &values)
    }
}
