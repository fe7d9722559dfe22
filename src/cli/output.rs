//! Room: places that text goes to, each of which may be full, closed or forbidden.
//! Not here: the text.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use lab::plan::gbench::Color;

/// One place; after the first error it takes no more, and the error is kept.
pub(super) struct Sink {
    name: String,
    writer: Box<dyn Write>,
    error: Option<io::Error>,
}

impl Sink {
    /// The standard output.
    pub(super) fn stdout() -> Self {
        Self { name: "standard output".to_owned(), writer: Box::new(io::stdout()), error: None }
    }

    /// A file, emptied or made now, so that a bad path shows before anything is measured.
    pub(super) fn file(path: &Path) -> Self {
        let name = path.display().to_string();
        match File::create(path) {
            Ok(file) => Self { name, writer: Box::new(file), error: None },
            Err(error) => Self { name, writer: Box::new(io::sink()), error: Some(error) },
        }
    }

    /// Writes text at once.
    pub(super) fn put(&mut self, text: &str) {
        if self.error.is_none()
            && let Err(error) = self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush())
        {
            self.error = Some(error);
        }
    }

    /// What went wrong, if anything did. That the reader went away is nothing wrong.
    pub(super) fn trouble(&self) -> Option<String> {
        let error = self.error.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)?;
        Some(format!("could not write all of the result to {}: {}", self.name, describe(error)))
    }

    /// Whether the reader went away, which a reader may.
    pub(super) fn is_closed(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

fn describe(error: &io::Error) -> String {
    lab::describe_errno(error)
}

/// Whether to colour the standard output.
pub(super) fn in_color(wanted: Color) -> bool {
    match wanted {
        Color::Yes => true,
        Color::No => false,
        Color::Auto => {
            let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            io::stdout().is_terminal() && !dumb && !refused
        }
    }
}
