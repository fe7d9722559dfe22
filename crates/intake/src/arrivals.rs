//! The files of one transport, each written beside its place and named when it is whole.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use sys::folder::Folder;

use super::{Limits, Name};

/// Limit of refused names in a message.
const MOST_REFUSED: usize = 20;

/// The place of a file or folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder that this machine's user gave, made if it is missing; a link there is followed.
    pub root: PathBuf,
    /// The path below it, in which no link is followed.
    pub below: PathBuf,
}

impl Place {
    /// The place of the same name below a folder.
    #[must_use]
    pub fn below(root: &Path, name: &Name) -> Self {
        Self { root: root.to_owned(), below: name.as_path().to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }
}

/// Gives the place of each file by its name; the error is that a folder for it cannot be made.
pub type Placing<'p> = &'p mut dyn FnMut(&Name) -> io::Result<Place>;

/// Why nothing more is taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum IntakeError {
    /// More files and folders than this.
    Entries(usize),
    /// More bytes in files than this.
    Bytes(u64),
    /// More bytes of output than this.
    Output(u64),
    /// A file or folder of this machine.
    Here {
        /// The operation.
        doing: String,
        /// The error.
        source: io::Error,
    },
}

impl IntakeError {
    fn here(act: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let doing = format!("{act} {}", path.display());
        move |source| Self::Here { doing, source }
    }
}

impl fmt::Display for IntakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(most) => {
                write!(f, "it sends more than {most} files, and no command leaves that many")
            }
            Self::Bytes(most) => {
                write!(f, "its files have more than {} GiB, and more is not taken", most >> 30)
            }
            Self::Output(most) => write!(f, "it printed more than {} GiB, and more is not taken", most >> 30),
            Self::Here { doing, source } => write!(f, "{doing}: {}", sys::errno::describe(source)),
        }
    }
}

impl std::error::Error for IntakeError {}

/// The files of one transport.
#[derive(Debug)]
pub struct Arrivals {
    limits: Limits,
    entries: usize,
    bytes: u64,
    current: Option<Incoming>,
    written: Vec<PathBuf>,
    refused: Vec<String>,
}

/// A file that is not whole yet; removed on drop.
#[derive(Debug)]
struct Incoming {
    folder: Folder,
    part: OsString,
    name: OsString,
    path: PathBuf,
    file: File,
    /// Bytes that are still to come, if their number is known.
    left: Option<u64>,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Fails if it got its name.
        let _ = self.folder.remove_file(&self.part);
    }
}

impl Arrivals {
    /// Nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let (written, refused) = (Vec::new(), Vec::new());
        Self { limits, entries: 0, bytes: 0, current: None, written, refused }
    }

    /// Starts a file; one whose size is known ends by itself, another one with [`Self::end`]. A name that cannot be taken is
    /// noted, and the file passed over.
    ///
    /// # Errors
    /// A limit is reached, or this machine cannot write it.
    pub fn begin(
        &mut self,
        name: &str,
        mode: u32,
        size: Option<u64>,
        place: Placing<'_>,
    ) -> Result<(), IntakeError> {
        self.current = None;
        let Some(name) = self.admitted(name)? else { return Ok(()) };
        self.count(size.unwrap_or(0))?;
        let place = place(&name).map_err(IntakeError::here("finding a place for", name.as_path()))?;
        let path = place.path();
        let begun = || {
            let (folder, name) = opened(&place, false)?;
            let (part, file) = part_in(&folder, mode)?;
            Ok(Incoming { folder, part, name, path: path.clone(), file, left: size })
        };
        self.current = Some(begun().map_err(IntakeError::here("writing", &path))?);
        if size == Some(0) { self.end() } else { Ok(()) }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// See [`Self::begin`].
    pub fn folder(&mut self, name: &str, place: Placing<'_>) -> Result<(), IntakeError> {
        let Some(name) = self.admitted(name)? else { return Ok(()) };
        let place = place(&name).map_err(IntakeError::here("finding a place for", name.as_path()))?;
        opened(&place, true).map(drop).map_err(IntakeError::here("making", &place.path()))
    }

    /// Appends to the file.
    ///
    /// # Errors
    /// See [`Self::begin`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), IntakeError> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let length = bytes.len() as u64;
        match &mut current.left {
            Some(left) => *left = left.saturating_sub(length),
            None => self.count(length)?,
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        current.file.write_all(bytes).map_err(IntakeError::here("writing", &current.path))?;
        if current.left == Some(0) { self.end() } else { Ok(()) }
    }

    /// Gives the file its name: it is whole.
    ///
    /// # Errors
    /// This machine cannot.
    pub fn end(&mut self) -> Result<(), IntakeError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let named = current.folder.rename(&current.part, &current.folder, &current.name);
        named.map_err(IntakeError::here("writing", &current.path))?;
        self.written.push(current.path.clone());
        Ok(())
    }

    /// Number of files that are whole.
    #[must_use]
    pub fn whole(&self) -> usize {
        self.written.len()
    }

    /// The files that are whole, and what was not taken: each name, quoted, with the reason.
    #[must_use]
    pub fn into_parts(self) -> (Vec<PathBuf>, Vec<String>) {
        (self.written.clone(), self.refused.clone())
    }

    /// Counts an entry and checks its name; none if it cannot be taken.
    fn admitted(&mut self, name: &str) -> Result<Option<Name>, IntakeError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(IntakeError::Entries(self.limits.entries));
        }
        match Name::parse(name) {
            Ok(name) => return Ok(Some(name)),
            Err(why) if self.refused.len() < MOST_REFUSED => {
                let short: String = name.chars().take(200).collect();
                self.refused.push(format!("{short:?} ({why})"));
            }
            Err(_) => {}
        }
        Ok(None)
    }

    fn count(&mut self, bytes: u64) -> Result<(), IntakeError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes { Err(IntakeError::Bytes(self.limits.bytes)) } else { Ok(()) }
    }
}

/// The folder of a place and the last part of its name; with `whole` that is a folder, too, and made.
fn opened(place: &Place, whole: bool) -> io::Result<(Folder, OsString)> {
    let root = if place.root.as_os_str().is_empty() { Path::new(".") } else { &place.root };
    std::fs::create_dir_all(root)?;
    let mut folder = Folder::open(root)?;
    let mut parts = place.below.components().map(|part| match part {
        Component::Normal(part) => Ok(part),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    });
    let mut last: &OsStr = parts.next().ok_or(io::ErrorKind::InvalidInput)??;
    for part in parts {
        folder = made(&folder, last)?;
        last = part?;
    }
    if whole {
        made(&folder, last)?;
    }
    Ok((folder, last.to_owned()))
}

/// A folder in another one, made if it is missing.
fn made(folder: &Folder, name: &OsStr) -> io::Result<Folder> {
    match folder.make_folder(name, 0o777) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => folder.folder(name),
    }
}

/// A new file for what is not whole yet, and its name.
fn part_in(folder: &Folder, mode: u32) -> io::Result<(OsString, File)> {
    let mut number = 0;
    loop {
        let name = OsString::from(format!(".binderperf-part-{}-{number}", std::process::id()));
        match folder.create_file(&name, mode & 0o777) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            made => return made.map(|file| (name, file)),
        }
    }
}

#[cfg(test)]
mod tests;
