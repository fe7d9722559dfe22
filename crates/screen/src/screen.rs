//! The screen of `top`, and its end: the terminal is as before however it comes.
//! Not here: what is shown (`view`).

use std::fmt;
use std::io::{self, IsTerminal};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use ftrace::tracefs::TraceError;
use live::session::{Session, Snapshot};
use live::top::By;
use live::top::column::Column;
use live::top::rows::Row;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};
use sys::epoll::Epoll;

use crate::text::{cells, title};
use crate::view::{Asked, View, finding, headline, opened_by, slowest, without_own};

const KEYS: &str = "q end  1-4 what  s sort  / filter  Enter process  Esc back  p pause  w write";

/// Pause between two readings of events.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Why a view cannot be shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScreenError {
    /// The terminal does not take it.
    Terminal(io::Error),
    /// The events cannot be read any more.
    Trace(TraceError),
}

impl fmt::Display for ScreenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal(error) => write!(f, "the terminal: {error}"),
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ScreenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Terminal(error) => error,
            Self::Trace(error) => error,
        })
    }
}

/// Shows the view until a key, a signal or the terminal's end.
///
/// # Errors
/// [`ScreenError`]; a terminal that goes away later is none.
pub fn run(session: &mut Session<'_>, view: View, count: Option<NonZeroU64>) -> Result<(), ScreenError> {
    let mut terminal = ratatui::try_init().map_err(ScreenError::Terminal)?;
    let shown = show(&mut terminal, session, view, count);
    // It may be gone; then its own end would complain, and panic where that cannot be written either.
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
    std::mem::forget(terminal);
    match shown {
        // Without a terminal nobody is left to read why.
        Ok(()) | Err(Trouble::Terminal) => Ok(()),
        Err(Trouble::Trace(error)) => Err(ScreenError::Trace(error)),
    }
}

enum Trouble {
    Terminal,
    Trace(TraceError),
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Terminal
    }
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    session: &mut Session<'_>,
    mut view: View,
    count: Option<NonZeroU64>,
) -> Result<(), Trouble> {
    let mut shown: Option<Snapshot> = None;
    let mut message = String::new();
    let mut left = count.map(NonZeroU64::get);
    let keyboard = Keyboard::open()?;
    loop {
        terminal.draw(|frame| draw(frame, shown.as_ref(), &view, &message))?;
        loop {
            let waited = keyboard.next(session.left().min(PAUSE))?;
            session.poll().map_err(Trouble::Trace)?;
            if sys::stop_signal::received().is_some() {
                return Ok(());
            }
            match waited {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    let is_interrupt =
                        key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                    let asked = match &shown {
                        _ if is_interrupt => Asked::End,
                        Some(snapshot) => view.key(key.code, snapshot),
                        None if key.code == KeyCode::Char('q') => Asked::End,
                        None => Asked::Nothing,
                    };
                    match asked {
                        Asked::End => return Ok(()),
                        Asked::Save => message = saved(session),
                        Asked::Nothing => message.clear(),
                    }
                    break;
                }
                Some(Event::Resize(..)) => break,
                _ => {}
            }
            if session.left().is_zero() {
                let snapshot = session.snapshot(left == Some(1)).map_err(Trouble::Trace)?;
                if !view.paused {
                    shown = Some(snapshot);
                }
                left = left.map(|left| left - 1);
                break;
            }
        }
        if left == Some(0) {
            terminal.draw(|frame| draw(frame, shown.as_ref(), &view, &message))?;
            return Ok(());
        }
    }
}

/// The terminal's keys.
struct Keyboard {
    waits: Epoll,
}

impl Keyboard {
    fn open() -> io::Result<Self> {
        let waits = Epoll::new()?;
        waits.add(io::stdin().as_fd(), 0)?;
        Ok(Self { waits })
    }

    /// Waits up to this time for a key or another size. A terminal that is gone is an error; it is looked for first, since
    /// crossterm would read its end for ever.
    fn next(&self, patience: Duration) -> io::Result<Option<Event>> {
        let mut ready = Vec::new();
        let ms = patience.as_millis().try_into().unwrap_or(i32::MAX);
        match self.waits.wait(&mut ready, ms) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        if !io::stdin().is_terminal() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if event::poll(Duration::ZERO)? { event::read().map(Some) } else { Ok(None) }
    }
}

/// Writes the newest events into a new file in this folder, and says how to open it.
fn saved(session: &Session<'_>) -> String {
    let name = |number: u32| PathBuf::from(format!("binderperf-top-{number}.bptrace"));
    let path = (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0));
    match session.save(&path) {
        Ok(_) => opened_by(&path),
        Err(error) => error.to_string(),
    }
}

/// Draws a snapshot.
fn draw(frame: &mut Frame<'_>, snapshot: Option<&Snapshot>, view: &View, message: &str) {
    let notes = snapshot.map_or(0, |snapshot| snapshot.notes.len().min(3)) as u16;
    let headline = snapshot.map(|snapshot| headline(snapshot, view)).unwrap_or_default();
    let is_cut = headline.chars().count() > usize::from(frame.area().width);
    let parts = Layout::vertical([
        Constraint::Length(if is_cut { 2 } else { 1 }),
        Constraint::Min(1),
        Constraint::Length(notes),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [head, middle, note, bottom, keys] = parts.areas(frame.area());
    let Some(snapshot) = snapshot else {
        frame.render_widget(Paragraph::new("binderperf top: the first interval"), head);
        frame.render_widget(Paragraph::new(KEYS), keys);
        return;
    };
    let headline = Paragraph::new(headline).wrap(Wrap { trim: true });
    frame.render_widget(headline.style(Modifier::BOLD), head);
    let lines = match view.process {
        Some(process) => of_process(snapshot, view, process, middle),
        None => of_rows(&view.rows(snapshot), view, middle),
    };
    frame.render_widget(Paragraph::new(lines), middle);
    let notes: Vec<Line<'_>> =
        snapshot.notes.iter().rev().take(3).map(|note| Line::from(note.as_str())).collect();
    frame.render_widget(Paragraph::new(notes).style(Modifier::DIM), note);
    frame.render_widget(Paragraph::new(finding(snapshot)), bottom);
    let last = match message {
        _ if view.typing => format!("filter: {}_", view.filter),
        "" => KEYS.to_owned(),
        message => message.to_owned(),
    };
    frame.render_widget(Paragraph::new(last).style(Modifier::REVERSED), keys);
}

/// A table, scrolled to the selected row.
fn of_rows(rows: &[&Row], view: &View, area: Rect) -> Vec<Line<'static>> {
    let columns = Column::fitting(area.width.into());
    let room = usize::from(area.height).saturating_sub(1);
    let selected = view.selected_of(rows.len());
    let first = selected.saturating_sub(room.saturating_sub(1));
    let mut lines = vec![titles(&columns, view.sort)];
    for (number, row) in rows.iter().enumerate().skip(first).take(room) {
        let style =
            if number == selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        lines.push(Line::styled(cells(row, &columns).collect::<Vec<_>>().join(" "), style));
    }
    lines
}

fn titles(columns: &[(Column, usize)], sort: Column) -> Line<'static> {
    let titled =
        |(column, width): &(Column, usize)| title(*column, if *column == sort { "*" } else { "" }, *width);
    let words: Vec<String> = columns.iter().map(titled).collect();
    Line::styled(words.join(" "), Modifier::UNDERLINED)
}

/// One process: itself, what it is called for, its peers and threads, and the slowest calls to it.
fn of_process(snapshot: &Snapshot, view: &View, process: i32, area: Rect) -> Vec<Line<'static>> {
    let columns = Column::fitting(area.width.into());
    let mut lines = vec![titles(&columns, view.sort)];
    let mut own = String::new();
    let most = (usize::from(area.height).saturating_sub(12) / 3).max(3);
    for (title, by) in
        [("", By::Processes), ("nodes", By::Methods), ("peers", By::Pairs), ("threads", By::Threads)]
    {
        if !title.is_empty() {
            lines.push(Line::styled(title, Modifier::BOLD));
        }
        for row in view.about(snapshot, by, process).into_iter().take(most) {
            let mut row = row.clone();
            match by {
                By::Processes => own = row.name.clone(),
                _ => row.name = without_own(&row, process, &own),
            }
            lines.push(Line::from(cells(&row, &columns).collect::<Vec<_>>().join(" ")));
        }
    }
    lines.push(Line::styled("slowest calls to it", Modifier::BOLD));
    lines.extend(slowest(snapshot, process).into_iter().map(Line::from));
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::view::tests::snapshot;

    fn drawn(width: u16, view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 16)).expect("memory");
        let snapshot = snapshot();
        terminal.draw(|frame| draw(frame, Some(&snapshot), view, "")).expect("memory");
        terminal.backend().to_string()
    }

    #[test]
    fn columns_go_where_the_terminal_is_narrow_and_never_the_name() {
        let view = View::new(By::Processes, Column::Calls, "");
        let wide = drawn(160, &view);
        for says in ["DEATHS", "*CALLS/S", "1/4", "beta", "nothing wrong", "DEATHS are blank", "q end"] {
            assert!(wide.contains(says), "{says:?} in {wide}");
        }
        let narrow = drawn(40, &view);
        assert!(narrow.contains("beta") && narrow.contains("P99") && !narrow.contains("BUFFERS"), "{narrow}");
        assert!(
            narrow.contains("% of a CPU") && narrow.contains("q end"),
            "the cost, and the way out: {narrow}"
        );
        for width in [1, 5, 12, 20] {
            drawn(width, &view);
        }
    }

    #[test]
    fn one_process_has_its_nodes_and_peers() {
        let view = View { process: Some(12), ..View::new(By::Processes, Column::Calls, "") };
        let shown = drawn(160, &view);
        for says in ["nodes", "peers", "threads", "slowest calls to it", " node 5 code 3"] {
            assert!(shown.contains(says), "{says:?} in {shown}");
        }
        assert!(!shown.contains("alpha") && !shown.contains("beta node"), "{shown}");
    }
}
