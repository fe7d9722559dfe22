//! Progress of a run: one line on a terminal, and lines by which a copy of this program, in a guest or on another machine,
//! reports to the first.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::terminal;

const MARK: &str = "@progress ";
/// Longest part of a line that waits for its end, in bytes.
const LONGEST_LINE: usize = 64 * 1024;

/// A progress line for the copy of this program on the host.
pub fn line(done: usize, all: usize, name: &str) -> String {
    format!("{MARK}{done} {all} {name}")
}

/// Parses a progress line: done, all, name.
fn read(line: &str) -> Option<(usize, usize, &str)> {
    let mut words = line.strip_prefix(MARK)?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?))
}

/// One line on a terminal; for another machine lines of progress; silent elsewhere.
pub struct StatusLine {
    on_terminal: bool,
    for_another: bool,
    shown: bool,
    start: Option<Instant>,
}

impl Default for StatusLine {
    fn default() -> Self {
        let for_another = std::env::var_os(host::ON_VARIABLE).is_some();
        Self { on_terminal: terminal::error_is_terminal(), for_another, shown: false, start: None }
    }
}

impl StatusLine {
    /// Replaces the shown text; an empty one only clears.
    pub fn show(&mut self, text: &str) {
        // With nothing shown the line holds the text of another program.
        if self.on_terminal && (self.shown || !text.is_empty()) {
            self.shown = !text.is_empty();
            terminal::replace_line(text);
        }
    }

    /// Shows the number of finished steps, the next one, and the time left.
    pub fn step(&mut self, done: usize, all: usize, name: &str) {
        let elapsed = self.start.get_or_insert_with(Instant::now).elapsed();
        if self.for_another {
            terminal::note(format_args!("{}\n", line(done, all, name)));
            return;
        }
        let left = left(elapsed, done, all);
        self.show(&format!("{}/{all} {name}{left}", done.saturating_add(1)));
    }
}

/// The estimated time left; empty while too little is done.
fn left(elapsed: Duration, done: usize, all: usize) -> String {
    if done < 3 || all < done {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / done as f64 * (all - done) as f64;
    format!(", about {seconds:.0} s left")
}

/// Gives each whole line of what came, with its end.
fn lines(pending: &mut Vec<u8>, bytes: &[u8], mut each: impl FnMut(&str)) {
    pending.extend_from_slice(bytes);
    while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
        let line: Vec<u8> = pending.drain(..=end).collect();
        each(&String::from_utf8_lossy(&line));
    }
}

/// Receives the standard error of a copy of this program: shows its progress, keeps the rest.
pub struct Listener<'l> {
    line: &'l mut StatusLine,
    pending: Vec<u8>,
    /// Everything except progress lines.
    pub said: String,
}

impl<'l> Listener<'l> {
    /// Shows its progress there.
    pub fn new(line: &'l mut StatusLine) -> Self {
        Self { line, pending: Vec::new(), said: String::new() }
    }
}

impl Write for Listener<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lines(&mut self.pending, bytes, |text| match read(text.trim_end()) {
            Some((done, all, name)) => self.line.step(done, all, name),
            None => self.said += text,
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Passes on the standard error of a copy of this program, line by line, and shows its progress.
#[derive(Default)]
pub struct Relay {
    pending: Vec<u8>,
}

impl Relay {
    /// Takes a part of it.
    pub fn pass(&mut self, bytes: &[u8], shown: &mut StatusLine) {
        lines(&mut self.pending, bytes, |text| match read(text.trim_end()) {
            Some((done, all, name)) => shown.step(done, all, name),
            None => {
                shown.show("");
                crate::note(text);
            }
        });
        // Whatever this is, it has no lines.
        if self.pending.len() > LONGEST_LINE {
            crate::note(self.rest());
        }
    }

    /// The last line, if it has no end.
    pub fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_pieces() {
        let mut status = StatusLine { on_terminal: false, for_another: false, shown: false, start: None };
        let mut listener = Listener::new(&mut status);
        let text = format!("{}\nsomething else\n", line(3, 75, "BM_x/4"));
        for byte in text.bytes() {
            listener.write_all(&[byte]).expect("never fails");
        }
        assert_eq!(listener.said, "something else\n");
        assert_eq!(read("@progress 3 75 BM_x/4"), Some((3, 75, "BM_x/4")));
        assert_eq!(read("@progress x"), None);
    }

    #[test]
    fn what_has_no_lines_is_passed_on_and_not_kept() {
        let mut status = StatusLine { on_terminal: false, for_another: false, shown: false, start: None };
        let mut relay = Relay::default();
        relay.pass(b"@progress 1 2 a\nhalf a l", &mut status);
        assert_eq!(relay.rest(), "half a l");
        relay.pass(&vec![b' '; LONGEST_LINE + 1], &mut status);
        assert_eq!(relay.rest(), "");
    }

    #[test]
    fn time_left() {
        assert_eq!(left(Duration::from_secs(10), 2, 75), "");
        assert_eq!(left(Duration::from_secs(10), 5, 10), ", about 10 s left");
    }
}
