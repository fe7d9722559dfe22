//! Outputs for text: the standard output and files. Each may be full, closed or forbidden.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bench::plan::gbench::Color;

use super::terminal::{self, tamed};
use super::{Failure, exit};

/// An output. After the first error it writes no more, and keeps the error.
pub(super) struct Sink {
    name: String,
    writer: Box<dyn Write>,
    error: Option<io::Error>,
}

impl Sink {
    /// The standard output.
    pub(super) fn stdout() -> Self {
        Self { name: "standard output".to_owned(), writer: Box::new(terminal::own()), error: None }
    }

    /// A file, created or truncated now, so that a bad path shows before anything is measured.
    pub(super) fn file(path: &Path) -> Self {
        let name = path.display().to_string();
        match File::create(path) {
            Ok(file) => Self { name, writer: Box::new(file), error: None },
            Err(error) => Self { name, writer: Box::new(io::sink()), error: Some(error) },
        }
    }

    /// Writes and flushes text, in which nothing steers a terminal: a file may be shown there, too. JSON stays the same.
    pub(super) fn put(&mut self, text: &str) {
        if self.error.is_none()
            && let Err(error) =
                self.writer.write_all(tamed(text).as_bytes()).and_then(|()| self.writer.flush())
        {
            self.error = Some(error);
        }
    }

    /// Writes a whole text.
    pub(super) fn deliver(mut self, text: &str) -> Result<(), Failure> {
        self.put(text);
        self.trouble().map_or(Ok(()), |trouble| Err(Failure::new(exit::INTERNAL, trouble)))
    }

    /// The error message, if writing failed. A closed pipe is no error.
    pub(super) fn trouble(&self) -> Option<String> {
        let error = self.error.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)?;
        Some(format!("could not write all of the result to {}: {}", self.name, sys::errno::describe(error)))
    }

    /// Whether the reader closed the pipe.
    pub(super) fn is_closed(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Whether two paths lead to one file; false if one of them does not exist.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether to colour the standard output.
pub(super) fn in_color(wanted: Color) -> bool {
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
