//! A snapshot as a table of text.
//! Not here: what is shown of it (`view`).

use std::fmt::Write;

use live::session::Snapshot;
use live::top::column::Column;
use live::top::rows::Row;

use crate::view::{View, finding, headline};

/// Width of a table where no terminal has one.
const WIDTH: usize = 140;

/// The table, with its headline, what is wrong, and notes.
pub fn of(snapshot: &Snapshot, view: &View, most: usize) -> String {
    let rows = view.rows(snapshot);
    let columns = Column::fitting(WIDTH);
    let mut text = headline(snapshot, view) + "\n";
    line(&mut text, &columns, |column| column.title().to_owned());
    for row in rows.iter().take(most) {
        line(&mut text, &columns, |column| column.text(row));
    }
    if let Some(more) = rows.len().checked_sub(most).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
    let _ = writeln!(text, "{}", finding(snapshot));
    for note in &snapshot.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text + "\n"
}

fn line(text: &mut String, columns: &[(Column, usize)], cell: impl Fn(Column) -> String) {
    let mut words = String::new();
    for (column, width) in columns {
        let _ = write!(words, "{} ", aligned(*column, &cell(*column), *width));
    }
    text.push_str(words.trim_end());
    text.push('\n');
}

/// A cell in its width: names to the left, cut; numbers to the right, `>` for one that is too wide.
pub(crate) fn aligned(column: Column, cell: &str, width: usize) -> String {
    match column {
        Column::Name => format!("{:<width$}", cell.chars().take(width).collect::<String>()),
        _ if cell.chars().count() > width => format!("{:>width$}", ">"),
        _ => format!("{cell:>width$}"),
    }
}

/// A title in its width, cut, behind a mark if it has one.
pub(crate) fn title(column: Column, mark: &str, width: usize) -> String {
    let title: String = mark.chars().chain(column.title().chars()).take(width).collect();
    aligned(column, &title, width)
}

/// The cells of a row.
pub(crate) fn cells<'r>(row: &'r Row, columns: &'r [(Column, usize)]) -> impl Iterator<Item = String> + 'r {
    columns.iter().map(|(column, width)| aligned(*column, &column.text(row), *width))
}

#[cfg(test)]
mod tests {
    use live::top::By;

    use super::*;
    use crate::view::tests::snapshot;

    #[test]
    fn a_name_is_cut_and_a_number_never_becomes_another() {
        for (column, cell, want) in [
            (Column::Name, "a name that is long", "a name"),
            (Column::Failed, "123456", "123456"),
            (Column::Failed, "1234567", "     >"),
            (Column::Failed, "7", "     7"),
        ] {
            assert_eq!(aligned(column, cell, 6), want);
        }
        assert_eq!(title(Column::Failed, "*", 6), "*FAILE");
    }

    #[test]
    fn a_table_says_what_is_blank_and_how_much_is_left_out() {
        let mut view = View::new(By::Processes, Column::Calls, "");
        let text = of(&snapshot(), &view, 1);
        for says in [
            "processes by CALLS/S, 2.0 s: 6 calls/s; this view took 0.4 % of a CPU\n",
            "     12 beta ",
            "and 1 more\n",
            "explain: nothing wrong was found\n",
            "note: DEATHS are blank: no right\n",
        ] {
            assert!(text.contains(says), "{says:?} in {text}");
        }
        assert!(!text.contains("alpha"), "{text}");
        view.filter = "nobody".to_owned();
        assert!(!of(&snapshot(), &view, 9).contains("beta"));
    }
}
