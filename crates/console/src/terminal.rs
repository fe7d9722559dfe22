//! The one place of this program that writes to its standard output and error: no text gets there that steers a terminal.
//! Not here: outputs to files (`output`).
//!
//! What this program says may have parts of a trace, a log, a device's name or words of the command line: all of it but this
//! program's own colours is made visible (`units::visible`), wherever it goes. What *another* program says (one in a guest,
//! or behind `--on`) is passed on byte by byte, as it may be data; but to a terminal by the same rule as our own text.
//! `tests/tidy` looks for other places that write there.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use units::visible::{printable, visible};

/// The colours of Google Benchmark's table, as `record` writes them, and their end.
const COLOURS: [&str; 6] = ["\x1b[0;31m", "\x1b[0;32m", "\x1b[0;33m", "\x1b[0;36m", "\x1b[0;37m", "\x1b[m"];

/// A text with everything visible that would steer a terminal, but for our colours.
pub fn tamed(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\x1b') {
        shown += &visible(&rest[..at]);
        rest = &rest[at..];
        let colour = COLOURS.iter().find(|colour| rest.starts_with(**colour));
        // Without a colour the escape itself.
        let length = colour.map_or(1, |colour| colour.len());
        shown += colour.copied().unwrap_or("\\u001b");
        rest = &rest[length..];
    }
    shown + &visible(rest)
}

/// Whether the standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether the standard error is a terminal.
pub fn error_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes text to stderr. Errors are ignored: they could not be reported anywhere.
pub fn note(text: impl Display) {
    let _ = io::stderr().write_all(tamed(&text.to_string()).as_bytes());
}

/// Replaces the last line of a terminal on stderr. A closed terminal is no reason to stop.
pub fn replace_line(text: &str) {
    let _ = io::stderr().write_all(format!("\r\x1b[K{}", printable(text)).as_bytes());
}

/// The standard output for this program's own text.
pub fn own() -> impl Write {
    Tamed { to: io::stdout(), held: Some(Held::default()) }
}

/// The standard output for what another program says, or for data.
pub fn passed_on() -> Box<dyn Write> {
    let to = io::stdout();
    Box::new(Tamed { held: to.is_terminal().then(Held::default), to })
}

/// The standard error for what another program says.
pub fn passed_on_error() -> Box<dyn Write> {
    let to = io::stderr();
    Box::new(Tamed { held: to.is_terminal().then(Held::default), to })
}

/// Text on its way to a stream.
struct Tamed<W: Write> {
    to: W,
    /// None: it passes as it is.
    held: Option<Held>,
}

impl<W: Write> Write for Tamed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) => self.to.write_all(held.take(bytes).as_bytes())?,
            None => self.to.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write> Drop for Tamed<W> {
    fn drop(&mut self) {
        let rest = self.held.as_mut().map(Held::rest).unwrap_or_default();
        let _ = self.to.write_all(rest.as_bytes());
    }
}

/// The end of what came so far, if more may belong to it: a part of a character, of a colour or of the end of a line.
#[derive(Debug, Default)]
struct Held(Vec<u8>);

impl Held {
    /// Takes more bytes; gives what can be shown.
    fn take(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let end = self.0.len() - self.unfinished();
        let text: Vec<u8> = self.0.drain(..end).collect();
        tamed(&String::from_utf8_lossy(&text).replace("\r\n", "\n"))
    }

    /// What is left when nothing more comes.
    fn rest(&mut self) -> String {
        tamed(&String::from_utf8_lossy(&std::mem::take(&mut self.0)))
    }

    /// The length of the unfinished end.
    fn unfinished(&self) -> usize {
        let bytes = &self.0;
        if bytes.last() == Some(&b'\r') {
            return 1;
        }
        let begun = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            COLOURS.iter().any(|colour| colour.len() > end.len() && colour.as_bytes().starts_with(end))
        };
        if let Some(length) = (1..=bytes.len().min(7)).find(begun) {
            return length;
        }
        let is_cut = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            end[0] >= 0xc0 && std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
        };
        (1..=bytes.len().min(3)).find(is_cut).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal gets of these pieces.
    fn shown(pieces: &[&[u8]]) -> String {
        let mut got = Vec::new();
        let mut to = Tamed { to: &mut got, held: Some(Held::default()) };
        pieces.iter().for_each(|piece| to.write_all(piece).expect("memory"));
        drop(to);
        String::from_utf8(got).expect("text")
    }

    #[test]
    fn nothing_but_our_colours_reaches_a_terminal() {
        assert_eq!(tamed("\x1b[0;32mBM_x\x1b[m\n"), "\x1b[0;32mBM_x\x1b[m\n");
        for (hostile, visible) in [
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("a\x1b[2Jb\x1b", "a\\u001b[2Jb\\u001b"),
            ("\x1b[0;31", "\\u001b[0;31"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\u{9b}2J\u{202e}", "\\u009b2J\\u202e"),
        ] {
            assert_eq!(tamed(hostile), visible);
            assert_eq!(shown(&[hostile.as_bytes()]), visible);
        }
    }

    #[test]
    fn a_text_in_pieces_is_the_same_text() {
        let text = "one\r\ntwo \u{e4}\u{20ac}\u{1f600} \x1b[0;36mcyan\x1b[m \x1b[0;3 \x1b[2J\r.\n";
        let want = "one\ntwo \u{e4}\u{20ac}\u{1f600} \x1b[0;36mcyan\x1b[m \\u001b[0;3 \\u001b[2J\\u000d.\n";
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(shown(&[one, other]), want, "{cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(shown(&bytes), want);
        assert_eq!(shown(&[b"\x9b2J", b"\xff\xc3"]), "\u{fffd}2J\u{fffd}\u{fffd}");
    }
}
