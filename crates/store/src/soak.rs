//! The log of a soak in its folder: each line reaches the disk before the next turn begins.
//! Not here: its form (`record::soak`).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use record::soak::{Setup, Soak, Turn, line};

use crate::StoreError;

/// The file.
const NAME: &str = "soak.jsonl";
/// Largest log that is read, in bytes: of years.
const MAX_BYTES: u64 = 1 << 30;

/// An open log.
pub struct Log {
    path: PathBuf,
    /// Whether this command made it.
    is_new: bool,
    file: File,
    setup: Option<Setup>,
    /// The last turn; the others are on disk, so that this program does not grow with the soak.
    last: Option<Turn>,
}

impl Log {
    /// Opens the log of a folder, or makes it.
    ///
    /// # Errors
    /// It cannot be opened, or is no log of a soak.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(NAME);
        let failed = |error| StoreError::unwritten("write to", &path, error);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(StoreError::Unusable(format!("{} is no regular file", path.display())));
        }
        // The name has to outlive a reboot, too. Not every file system can.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        let mut log = Self { path, is_new: false, file, setup: None, last: None };
        if log.text()?.is_empty() {
            log.is_new = true;
        } else {
            let Soak { setup, mut turns, .. } = log.read()?;
            (log.setup, log.last) = (Some(setup), turns.pop());
        }
        Ok(log)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last turn.
    pub fn last(&self) -> Option<&Turn> {
        self.last.as_ref()
    }

    /// Begins a stretch of a soak with this setup.
    ///
    /// # Errors
    /// The soak has another setup, or writing fails.
    pub fn begin(&mut self, setup: Setup) -> Result<(), StoreError> {
        match &self.setup {
            Some(there) if *there == setup => Ok(()),
            Some(there) => {
                let why = format!(
                    "{} is a soak of another setup, and its turns would not compare; give another folder\n  there: {}\n  \
                     here:  {}",
                    self.path.display(),
                    there.setup,
                    setup.setup
                );
                Err(StoreError::Unusable(why))
            }
            None => {
                self.put(&line(&setup))?;
                self.setup = Some(setup);
                Ok(())
            }
        }
    }

    /// Adds a turn.
    ///
    /// # Errors
    /// Writing fails; the log then ends before this turn.
    pub fn append(&mut self, turn: Turn) -> Result<(), StoreError> {
        self.put(&line(&turn))?;
        self.last = Some(turn);
        Ok(())
    }

    fn put(&mut self, text: &str) -> Result<(), StoreError> {
        let before = self.file.metadata().map(|file| file.len());
        let written = before.and_then(|before| {
            let start = if self.is_cut()? { "\n" } else { "" };
            let written =
                self.file.write_all(format!("{start}{text}").as_bytes()).and_then(|()| self.file.sync_data());
            written.inspect_err(|_| drop(self.file.set_len(before)))
        });
        written.map_err(|error| StoreError::unwritten("write all of a turn to", &self.path, error))
    }

    /// Whether a kill cut the last line short.
    fn is_cut(&self) -> std::io::Result<bool> {
        use std::os::unix::fs::FileExt;
        let Some(last) = self.file.metadata()?.len().checked_sub(1) else { return Ok(false) };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        Ok(byte != *b"\n")
    }

    fn text(&self) -> Result<String, StoreError> {
        let failed = |error| StoreError::unread("read", &self.path, error);
        let mut bytes = Vec::new();
        File::open(&self.path)
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
            .map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The whole soak.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(&self) -> Result<Soak, StoreError> {
        let refused = |why| StoreError::Unusable(format!("{}: {why}", self.path.display()));
        Soak::parse(&self.text()?).map_err(refused)
    }

    /// Removes a log without a turn that this command made.
    pub fn remove_if_empty(&self) {
        if self.is_new && self.last.is_none() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
