//! The place of each file that comes from another machine.
//! Not here: which names are taken (crate `intake`), what the command line names (`placed`).

use std::fs;
use std::io;
use std::path::PathBuf;

use intake::{Name, Place};

use crate::placed::Placed;

/// Most folders of one name that are tried.
const MOST_FOLDERS: u32 = 10_000;

/// The place of each file that a machine sends: what the command line names is where it says, all else in a new folder.
pub struct Places<'p> {
    placed: &'p Placed,
    /// The machine's name in paths.
    label: String,
    /// The folder for what the command line does not name.
    own: Option<PathBuf>,
}

impl<'p> Places<'p> {
    /// Places for the files of a command, of a machine with this name.
    #[must_use]
    pub fn new(placed: &'p Placed, label: String) -> Self {
        Self { placed, label, own: None }
    }

    /// The place of a file or folder.
    ///
    /// # Errors
    /// The new folder cannot be made.
    pub fn place(&mut self, name: &Name) -> io::Result<Place> {
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
    pub fn end(&self) {
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
