//! The view of a snapshot: kind of rows, order, filter, one process; keys change it.
//! Not here: drawing it (`screen`, `text`).

use std::path::Path;

use live::session::Snapshot;
use live::top::column::Column;
use live::top::rows::Row;
use live::top::worst::SlowCall;
use live::top::{By, Subject};
use ratatui::crossterm::event::KeyCode;

/// The choices of the user.
#[derive(Clone, Debug)]
pub struct View {
    /// The subjects whose rows are shown.
    pub by: By,
    /// The column by which they are in order.
    pub sort: Column,
    /// The text that a row must have.
    pub filter: String,
    /// Keys go into the filter.
    pub typing: bool,
    /// The process that is shown alone.
    pub process: Option<i32>,
    /// The row that Enter means.
    pub selected: usize,
    /// The screen stays as it is.
    pub paused: bool,
}

/// The request of a key to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Draw the view again.
    Nothing,
    /// End the program.
    End,
    /// Write the newest events into a file.
    Save,
}

impl View {
    /// A view of these rows in this order.
    pub fn new(by: By, sort: Column, filter: &str) -> Self {
        let filter = filter.to_owned();
        Self { by, sort, filter, typing: false, process: None, selected: 0, paused: false }
    }

    /// The rows that are shown, in order.
    pub fn rows<'s>(&self, snapshot: &'s Snapshot) -> Vec<&'s Row> {
        let filter = self.filter.to_lowercase();
        let numbers = |row: &Row| [row.pid, row.tid, row.node, row.from, row.to];
        let holds = |row: &&Row| {
            let text = row.name.to_lowercase();
            text.contains(&filter) || numbers(row).iter().flatten().any(|number| number.to_string() == filter)
        };
        let mut rows: Vec<&Row> = snapshot.rows(self.by).iter().filter(holds).collect();
        self.sort.sort(&mut rows);
        rows
    }

    /// The number of the row that Enter means, of so many: rows may have become fewer since it was chosen.
    pub fn selected_of(&self, rows: usize) -> usize {
        self.selected.min(rows.saturating_sub(1))
    }

    /// Rows of a kind about the process that is shown alone.
    pub fn about<'s>(&self, snapshot: &'s Snapshot, by: By, process: i32) -> Vec<&'s Row> {
        let concerns = |row: &&Row| row.subject.as_ref().is_some_and(|subject| subject.concerns(process));
        let mut rows: Vec<&Row> = snapshot.rows(by).iter().filter(concerns).collect();
        self.sort.sort(&mut rows);
        rows
    }

    /// Takes a key; `snapshot` is on the screen.
    pub fn key(&mut self, key: KeyCode, snapshot: &Snapshot) -> Asked {
        if self.typing {
            match key {
                KeyCode::Char(letter) => self.filter.push(letter),
                KeyCode::Backspace => _ = self.filter.pop(),
                KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
                _ => self.typing = false,
            }
            self.selected = 0;
            return Asked::Nothing;
        }
        let rows = self.rows(snapshot);
        self.selected = self.selected_of(rows.len());
        match key {
            KeyCode::Char('q') => return Asked::End,
            KeyCode::Char('w') => return Asked::Save,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') => self.sort = after(&Column::ALL, self.sort),
            KeyCode::Tab => self.show(after(&By::ALL, self.by)),
            KeyCode::Char(digit @ '1'..='4') => {
                self.show(By::ALL[digit as usize - '1' as usize]);
            }
            KeyCode::Down => self.selected = (self.selected + 1).min(rows.len().saturating_sub(1)),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Enter => {
                let row = rows.get(self.selected);
                self.process = row.and_then(|row| row.pid.or(row.to)).or(self.process);
            }
            KeyCode::Esc | KeyCode::Backspace => match self.process.take() {
                Some(_) => {}
                None => self.filter.clear(),
            },
            _ => {}
        }
        Asked::Nothing
    }

    fn show(&mut self, by: By) {
        (self.by, self.process, self.selected) = (by, None, 0);
    }
}

fn after<T: Copy + PartialEq>(all: &[T], one: T) -> T {
    let at = all.iter().position(|other| *other == one).unwrap_or(0);
    all[(at + 1) % all.len()]
}

/// The state of things in one line.
pub(crate) fn headline(snapshot: &Snapshot, view: &View) -> String {
    let calls = snapshot.calls.map_or_else(
        || "not traced".to_owned(),
        |calls| format!("{:.0} calls/s", calls as f64 / snapshot.span_s),
    );
    let lost = snapshot.lost.filter(|lost| *lost > 0).map(|lost| format!(", {lost} events lost"));
    let filter = if view.filter.is_empty() { String::new() } else { format!(", with {:?}", view.filter) };
    format!(
        "{} by {}{filter}, {:.1} s: {calls}; this view took {:.1} % of a CPU{}{}",
        view.by.word(),
        view.sort.title(),
        snapshot.span_s,
        snapshot.own_cpu * 100.0,
        lost.unwrap_or_default(),
        if view.paused { "; PAUSED" } else { "" },
    )
}

/// The worst finding, in one line.
pub(crate) fn finding(snapshot: &Snapshot) -> String {
    match snapshot.findings.as_deref() {
        None => "explain: the driver's state cannot be read".to_owned(),
        Some([]) => "explain: nothing wrong was found".to_owned(),
        Some([worst, rest @ ..]) => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            format!("explain: {}: {}{more}", worst.grade.word(), worst.what)
        }
    }
}

/// The command that opens a recording.
pub fn opened_by(path: &Path) -> String {
    format!("written; open it with: binderperf trace analyze {}", path.display())
}

/// The slowest calls to a process, one a line.
pub(crate) fn slowest(snapshot: &Snapshot, process: i32) -> Vec<String> {
    let time = |ns: u64| units::duration(ns as f64);
    let line = |call: &SlowCall| {
        let taken = call.taken_ns.map(|ns| format!("taken after {}", time(ns)));
        let served = call.served_ns.map(|ns| format!("served for {}", time(ns)));
        let parts: Vec<String> = taken.into_iter().chain(served).collect();
        let SlowCall { ns, from, thread, node, code, .. } = call;
        format!("{} from {from}:{thread} to node {node} code {code}: {}", time(*ns), parts.join(", "))
    };
    snapshot.worst.of(process).iter().map(line).collect()
}

/// A row's name without that of the process that is shown alone: all its rows have it in common.
pub(crate) fn without_own(row: &Row, process: i32, own: &str) -> String {
    let name = row.name.as_str();
    let short = match row.subject {
        Some(Subject::Pair { from, .. }) if from == process => {
            name.strip_prefix(own).filter(|rest| rest.starts_with(" > "))
        }
        Some(Subject::Pair { .. }) => name.strip_suffix(own).filter(|rest| rest.ends_with(" > ")),
        _ => name.strip_prefix(own).filter(|rest| rest.starts_with(' ')),
    };
    short.unwrap_or(name).trim().to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A snapshot of two processes that call each other.
    pub(crate) fn snapshot() -> Snapshot {
        let row = |pid: i32, name: &str, calls: u64| Row {
            subject: Some(Subject::Process(pid)),
            pid: Some(pid),
            name: name.to_owned(),
            calls: Some(calls),
            calls_per_s: Some(calls as f64),
            p99_ns: Some(calls * 1000),
            failed: Some(0),
            busy: Some(1),
            pool: Some(4),
            ..Row::default()
        };
        let method = Row {
            subject: Some(Subject::Method { pid: 12, node: 5, code: 3, name: None }),
            ..row(12, "beta node 5 code 3", 7)
        };
        Snapshot {
            at_s: 2.0,
            span_s: 2.0,
            level: "full",
            calls: Some(12),
            doubtful: Some(0),
            lost: Some(0),
            own_cpu: 0.004,
            processes: vec![row(11, "alpha", 5), row(12, "beta", 7)],
            threads: Vec::new(),
            methods: vec![method],
            pairs: Vec::new(),
            findings: Some(Vec::new()),
            notes: vec!["DEATHS are blank: no right".to_owned()],
            worst: live::top::worst::Worst::default(),
        }
    }

    #[test]
    fn only_the_own_side_of_a_name_goes() {
        let shown = |subject: Subject, name: &str| {
            without_own(&Row { subject: Some(subject), name: name.to_owned(), ..Row::default() }, 7, "app")
        };
        let method = Subject::Method { pid: 7, node: 1, code: 2, name: None };
        for (subject, name, want) in [
            (Subject::Pair { from: 7, to: 8 }, "app > com.app.x", "> com.app.x"),
            (Subject::Pair { from: 8, to: 7 }, "com.app.x > app", "com.app.x >"),
            (Subject::Pair { from: 7, to: 8 }, "app > app", "> app"),
            (Subject::Pair { from: 8, to: 7 }, "app > app", "app >"),
            (method, "app node 1 app.IFoo.bar", "node 1 app.IFoo.bar"),
            (Subject::Thread { pid: 7, tid: 9 }, "app happy", "happy"),
            (Subject::Thread { pid: 7, tid: 9 }, "apple thread 9", "apple thread 9"),
        ] {
            assert_eq!(shown(subject, name), want, "{name}");
        }
    }

    #[test]
    fn the_selection_stays_on_a_row_when_rows_become_fewer() {
        let mut snapshot = snapshot();
        let mut view = View { selected: 1, ..View::new(By::Processes, Column::Calls, "") };
        snapshot.processes.truncate(1);
        assert_eq!(view.selected_of(view.rows(&snapshot).len()), 0);
        view.key(KeyCode::Enter, &snapshot);
        assert_eq!((view.process, view.selected), (Some(11), 0));
        snapshot.processes.clear();
        assert_eq!((view.key(KeyCode::Down, &snapshot), view.selected), (Asked::Nothing, 0));
    }

    #[test]
    fn keys_choose_what_is_shown() {
        let snapshot = snapshot();
        let mut view = View::new(By::Processes, Column::Calls, "");
        let names = |view: &View| -> Vec<String> {
            view.rows(&snapshot).iter().map(|row| row.name.clone()).collect()
        };
        assert_eq!(names(&view), ["beta", "alpha"]);
        for key in "/ALP".chars() {
            view.key(KeyCode::Char(key), &snapshot);
        }
        assert_eq!(names(&view), ["alpha"]);
        view.key(KeyCode::Enter, &snapshot);
        assert!(!view.typing && view.process.is_none(), "Enter ended the filter");
        view.key(KeyCode::Enter, &snapshot);
        assert_eq!(view.process, Some(11));
        view.key(KeyCode::Esc, &snapshot);
        view.key(KeyCode::Esc, &snapshot);
        assert_eq!((view.process, view.filter.as_str()), (None, ""));
        view.filter = "12".to_owned();
        assert_eq!(names(&view), ["beta"], "a number is the whole number");
        view.filter.clear();
        view.key(KeyCode::Down, &snapshot);
        view.key(KeyCode::Down, &snapshot);
        assert_eq!(view.selected, 1, "it stays on a row");
        view.key(KeyCode::Char('3'), &snapshot);
        assert_eq!((view.by, view.selected), (By::Methods, 0));
        view.key(KeyCode::Char('s'), &snapshot);
        assert_eq!(view.sort, Column::Made);
        view.key(KeyCode::Char('p'), &snapshot);
        assert!(view.paused && headline(&snapshot, &view).ends_with("PAUSED"));
        assert_eq!(view.key(KeyCode::Char('q'), &snapshot), Asked::End);
        assert_eq!(view.key(KeyCode::Char('w'), &snapshot), Asked::Save);
        assert_eq!(view.about(&snapshot, By::Methods, 12).len(), 1);
    }
}
