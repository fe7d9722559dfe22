//! A table, which renders itself as text, Markdown and HTML: every form has the same columns, rows and notes.
//! Not here: what stands in the cells. JSON is no form of a table: it shows the figures themselves (`super::json`).

mod html;
mod markdown;
mod text;

use serde::Serialize;

use super::printable;

/// Columns, rows and notes. A column other than the first without any text in its cells is not shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: Vec<String>,
    /// Blanks before each line of text.
    indent: usize,
    /// Most characters up to which cells of a text are aligned.
    widest: Option<usize>,
    /// Whether a cell needs the whole width of a phone.
    long_cells: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Column {
    head: String,
    /// Whether its cells are words and not numbers, which are aligned at their ends.
    is_words: bool,
    /// A title over this column and its neighbours with the same one.
    group: &'static str,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Row {
    /// A cell for each column.
    Cells(Vec<Cell>),
    /// A name, and text in place of all other cells.
    Words(Cell, String),
    /// A line across the whole table, with or without text.
    Rule(String),
}

/// A cell of one line, which steers no terminal.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    text: String,
    look: Look,
    /// What a page shows on demand.
    hint: String,
}

/// The meaning of a cell, for forms that can show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Look {
    #[default]
    Plain,
    /// Something that differs.
    Strong,
    /// A word of a command line.
    Code,
    /// A cost above the one that it is compared with.
    Slower,
    /// A cost below it.
    Faster,
    /// A failure.
    Bad,
}

impl Cell {
    /// The cell with this meaning.
    pub(crate) fn look(self, look: Look) -> Cell {
        Cell { look, ..self }
    }

    /// The cell with text that a page shows on demand.
    pub(crate) fn hint(self, hint: &str) -> Cell {
        Cell { hint: printable(hint).into_owned(), ..self }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell { text: printable(text).into_owned(), ..Cell::default() }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::from(text.as_str())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::from(text.as_str())
    }
}

/// A missing value is an empty cell.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map(Into::into).unwrap_or_default()
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::from(count.to_string())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::from(count.to_string())
    }
}

/// A row of cells from anything that can be one.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { $crate::render::table::Row::Cells(vec![$($crate::render::table::Cell::from($cell)),*]) };
}
pub(crate) use cells;

impl Row {
    /// A name with text in place of all other cells.
    pub(crate) fn words(name: impl Into<Cell>, words: &str) -> Row {
        Row::Words(name.into(), printable(words).into_owned())
    }

    /// A row with further cells.
    pub(crate) fn and<C: Into<Cell>>(self, further: impl IntoIterator<Item = C>) -> Row {
        match self {
            Row::Cells(mut cells) => {
                cells.extend(further.into_iter().map(Into::into));
                Row::Cells(cells)
            }
            other => other,
        }
    }
}

impl Table {
    /// A table of numbers, whose first column holds their names.
    pub(crate) fn new<H: AsRef<str>>(heads: impl IntoIterator<Item = H>) -> Table {
        let mut table = Table::of_words(heads);
        table.columns.iter_mut().skip(1).for_each(|column| column.is_words = false);
        table
    }

    /// A table of words.
    pub(crate) fn of_words<H: AsRef<str>>(heads: impl IntoIterator<Item = H>) -> Table {
        let column =
            |head: H| Column { head: printable(head.as_ref()).into_owned(), is_words: true, group: "" };
        Table { columns: heads.into_iter().map(column).collect(), ..Table::default() }
    }

    /// The table with a title.
    pub(crate) fn titled(self, title: impl Into<String>) -> Table {
        Table { title: printable(&title.into()).into_owned(), ..self }
    }

    /// The table with these rows at its end.
    pub(crate) fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Table {
        self.rows.extend(rows);
        self
    }

    /// The table with notes below it.
    pub(crate) fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Table {
        self.notes.extend(notes.into_iter().map(|note| printable(&note).into_owned()));
        self
    }

    /// The table with a title over each column.
    pub(crate) fn groups(mut self, titles: impl IntoIterator<Item = &'static str>) -> Table {
        self.columns.iter_mut().zip(titles).for_each(|(column, title)| column.group = title);
        self
    }

    /// The table, indented as text.
    pub(crate) fn indented(self, indent: usize) -> Table {
        Table { indent, ..self }
    }

    /// The table, whose text aligns cells of at most so many characters.
    pub(crate) fn widest(self, widest: usize) -> Table {
        Table { widest: Some(widest), ..self }
    }

    /// The table, of which a cell needs the whole width of a phone.
    pub(crate) fn with_long_cells(self) -> Table {
        Table { long_cells: true, ..self }
    }

    /// Its title; empty without one.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The cells of a column, with its number.
    fn cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| match row {
            Row::Cells(cells) => cells.get(column),
            Row::Words(name, _) => Some(name).filter(|_| column == 0),
            Row::Rule(_) => None,
        })
    }

    /// The numbers of the columns that are shown, with these.
    fn shown(&self) -> Vec<(usize, &Column)> {
        let has_text = |column: usize| column == 0 || self.cells(column).any(|cell| !cell.text.is_empty());
        self.columns.iter().enumerate().filter(|(at, _)| has_text(*at)).collect()
    }
}

#[cfg(test)]
mod tests;
