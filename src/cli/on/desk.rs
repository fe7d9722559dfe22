//! This machine's side of a command elsewhere: where its output goes, and the place of each of its files.
//! Not here: which names are taken (crate `intake`), what the command line names (`remote::Placed`).

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use intake::{Name, Place};
use remote::{Placed, Sinks};

use crate::cli::complain;
use crate::cli::progress::{Relay, StatusLine};
use crate::cli::terminal::{self, note};

/// Most folders of one name that are tried.
const MOST_FOLDERS: u32 = 10_000;

/// The place of each file that a machine sends: what the command line names is where it says, all else in a new folder.
pub(super) struct Places<'p> {
    placed: &'p Placed,
    /// The machine's name in paths.
    label: String,
    /// The folder for what the command line does not name.
    own: Option<PathBuf>,
}

impl<'p> Places<'p> {
    pub(super) fn new(placed: &'p Placed, label: String) -> Self {
        Self { placed, label, own: None }
    }

    /// The place of a file or folder.
    ///
    /// # Errors
    /// The new folder cannot be made.
    pub(super) fn place(&mut self, name: &Name) -> io::Result<Place> {
        if let Some(place) = self.placed.place(name) {
            return Ok(place);
        }
        let root = match self.own.take() {
            Some(own) => own,
            None => new_folder(&self.label)?,
        };
        Ok(Place::below(self.own.insert(root), name))
    }

    /// Removes the new folder if it stayed empty.
    pub(super) fn end(&self) {
        let _ = self.own.as_ref().map(fs::remove_dir);
    }
}

/// Makes a folder of this name, or of the first one with a number that is free.
fn new_folder(label: &str) -> io::Result<PathBuf> {
    let numbered = (2..MOST_FOLDERS).map(|number| format!("{label}.{number}"));
    for name in std::iter::once(label.to_owned()).chain(numbered) {
        match fs::create_dir(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| PathBuf::from(name)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The user's desk.
pub(super) struct Desk<'p> {
    stdout: Box<dyn Write>,
    line: StatusLine,
    relay: Relay,
    places: Places<'p>,
    /// Why the standard output takes no more, if it is not that nobody reads it.
    unwritten: Option<io::Error>,
}

impl<'p> Desk<'p> {
    pub(super) fn new(places: Places<'p>) -> Self {
        let stdout = terminal::passed_on();
        Self { stdout, line: StatusLine::new(), relay: Relay::default(), places, unwritten: None }
    }

    /// Clears the line of progress and passes on what is left of the standard error; gives the error of the standard output.
    pub(super) fn end(mut self) -> Option<io::Error> {
        self.line.show("");
        note(self.relay.rest());
        self.places.end();
        self.unwritten
    }
}

impl Sinks for Desk<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.line.show("");
        self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::BrokenPipe {
                self.unwritten.get_or_insert(error);
            }
            kind.into()
        })
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.relay.pass(bytes, &mut self.line);
    }

    fn progress(&mut self, text: &str) {
        self.line.show(text);
    }

    fn note(&mut self, text: &str) {
        self.line.show("");
        complain(text);
    }

    fn place(&mut self, name: &Name) -> io::Result<Place> {
        self.places.place(name)
    }
}
