//! Outputs for text: the standard output and files. Each may be full, closed or forbidden.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bench::plan::gbench::Color;
use record::Run;
use sys::draft::{Draft, Kept};

use crate::terminal::{self, tamed};
use crate::{Failure, exit, note};

/// An output. After the first error it writes no more, and keeps the error.
///
/// A file takes the place of an older one when it is kept, and not before: what ends without a result leaves the older one.
pub struct Sink {
    name: String,
    writer: Writer,
    error: Option<io::Error>,
}

enum Writer {
    Stdout(Box<dyn Write>),
    File {
        draft: Draft,
        path: PathBuf,
        /// Whether each part is of use, even if no more follows.
        in_parts: bool,
    },
    /// A file that is in its place, or that could not be begun.
    Done,
}

impl Sink {
    /// The standard output.
    pub fn stdout() -> Self {
        let name = "standard output".to_owned();
        Self { name, writer: Writer::Stdout(Box::new(terminal::own())), error: None }
    }

    /// A file that is written at the end. It is begun now, so that a bad path shows before anything is measured.
    pub fn file(path: &Path) -> Self {
        Self::begun(path, false)
    }

    /// A file whose rows are written as they are measured; until it is kept they are in another file beside it.
    pub fn in_parts(path: &Path) -> Self {
        Self::begun(path, true)
    }

    fn begun(path: &Path, in_parts: bool) -> Self {
        let name = path.display().to_string();
        match Draft::new(path) {
            Ok(draft) => {
                Self { name, writer: Writer::File { draft, path: path.to_owned(), in_parts }, error: None }
            }
            Err(error) => Self { name, writer: Writer::Done, error: Some(error) },
        }
    }

    /// Writes and flushes text, in which nothing steers a terminal: a file may be shown there, too. JSON stays the same.
    pub fn put(&mut self, text: &str) {
        if self.error.is_some() || text.is_empty() {
            return;
        }
        let text = tamed(text);
        let written = match &mut self.writer {
            Writer::Stdout(stdout) => stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()),
            Writer::File { draft, in_parts, .. } => {
                if *in_parts {
                    draft.show();
                }
                draft.write_all(text.as_bytes())
            }
            Writer::Done => Ok(()),
        };
        self.error = written.err();
    }

    /// Puts a file in its place, unless an error came before. A partial result does not replace an older one: it
    /// goes to `FILE.partial`, with a message.
    pub fn keep(&mut self, is_whole: bool) {
        let Writer::File { draft, .. } = std::mem::replace(&mut self.writer, Writer::Done) else { return };
        if self.error.is_some() {
            return;
        }
        match if is_whole { draft.commit().map(|()| Kept::There) } else { draft.commit_part() } {
            Ok(Kept::There) => {}
            Ok(Kept::Beside(part)) => {
                let part = part.display();
                note(format_args!("{} stays as it was: this result is a part, in {part}\n", self.name));
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Writes a whole text, and keeps it.
    pub fn deliver(mut self, text: &str) -> Result<(), Failure> {
        self.put(text);
        self.keep(true);
        self.trouble().map_or(Ok(()), |trouble| Err(Failure::new(exit::INTERNAL, trouble)))
    }

    /// Writes a record, and keeps it. That of a run that ended early replaces only one that ended early, too.
    pub fn keep_record(&mut self, run: &Run) {
        self.put(&run.to_json());
        let older = match &self.writer {
            Writer::File { path, .. } if !run.complete && path.is_file() => {
                File::open(path).ok().and_then(|file| Run::read(file).ok())
            }
            _ => None,
        };
        self.keep(run.complete || older.is_some_and(|older| !older.complete));
    }

    /// The error message, if writing failed. A closed pipe is no error.
    pub fn trouble(&self) -> Option<String> {
        let error = self.error.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)?;
        Some(format!("could not write all of the result to {}: {}", self.name, sys::errno::describe(error)))
    }

    /// Whether the reader closed the pipe.
    pub fn is_closed(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Whether to colour the standard output.
pub fn in_color(wanted: Color) -> bool {
    match wanted {
        Color::Yes => true,
        Color::No => false,
        Color::Auto => {
            let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal::is_terminal() && !dumb && !refused
        }
    }
}
