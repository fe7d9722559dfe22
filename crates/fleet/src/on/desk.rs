//! This machine's side of a command elsewhere: where its output goes.
//! Not here: the place of each of its files (`remote::Places`).

use std::io::{self, Write};

use intake::{Name, Place};
use remote::{Places, Sinks};

use console::progress::{Relay, StatusLine};
use console::{complain, note, terminal};

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
        Self { stdout, line: StatusLine::default(), relay: Relay::default(), places, unwritten: None }
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
