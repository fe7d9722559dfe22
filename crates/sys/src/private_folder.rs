//! Folders for temporary files below a folder that other users write, too: made, used, removed, and removed by the next
//! command if their maker was killed.
//! Not here: what is done in them (`folder`).
//!
//! A new one has a name that nobody can foresee and mode 0700, and is this user's by its descriptor. A shared lock
//! (`flock(2)`) on that descriptor says that it is in use: the kernel takes it back however the process ends, so no number
//! of a process counts that is another's by now. Who removes what was left asks for the exclusive lock, and never waits for
//! it. What belongs to another user is never opened.

use std::ffi::{OsStr, OsString};
use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk;
use crate::errno::describe;
use crate::folder::{Entry, Folder, unforeseen};
use crate::identity::effective_uid;

/// Begin of the name of each.
const BEGIN: &str = "binderperf-";
/// End of the name of each; before it are the digits of a random number.
const END: &str = ".tmp";
const DIGITS: usize = 16;
/// Longest time that looking for what killed processes left may take, whatever others put beside it.
const LOOKING: Duration = Duration::from_millis(500);
/// Attempts to make one. Each fails only if another command of this user takes the new folder for one that was left.
const TRIES: u32 = 100;

/// A folder that is this user's alone, removed on drop.
#[derive(Debug)]
pub struct PrivateFolder {
    parent: Folder,
    folder: Folder,
    name: OsString,
    named: PathBuf,
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes one in the folder for temporary files (`TMPDIR`), and removes what killed commands of this user left there.
    /// `kind` is a part of its name, for people.
    ///
    /// # Errors
    /// Text with the folder, the errno and the remedy; its kind is that of the system call's error.
    pub fn new(kind: &str) -> io::Result<Self> {
        let parent = std::env::temp_dir();
        Self::below(&parent, kind).map_err(|error| {
            let remedy = "set TMPDIR to a folder that this user can write";
            io::Error::new(error.kind(), format!("{error}; {remedy}"))
        })
    }

    /// [`Self::new`] in another folder.
    ///
    /// # Errors
    /// Text with the folder and the errno.
    pub fn below(parent: &Path, kind: &str) -> io::Result<Self> {
        std::path::absolute(parent).and_then(|parent| Self::make(&parent, kind)).map_err(|error| {
            let what = format!("making a folder of its own in {}: {}", shown(parent), describe(&error));
            io::Error::new(error.kind(), what)
        })
    }

    fn make(at: &Path, kind: &str) -> io::Result<Self> {
        let parent = Folder::open(at)?;
        remove_left(&parent, LOOKING);
        for _ in 0..TRIES {
            let name = OsString::from(format!("{BEGIN}{kind}-{:0DIGITS$x}{END}", unforeseen()));
            match parent.make_folder(&name, 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let Some(folder) = taken(&parent, &name)? else { continue };
            let found = folder.found()?;
            if !found.is_private_folder(effective_uid()) {
                let (owner, mode) = (found.uid, found.mode & 0o7777);
                return Err(io::Error::other(format!(
                    "a new folder there belongs to user {owner}, with mode {mode:04o}, and not to this user alone"
                )));
            }
            let named = at.join(&name);
            let path = if is_ours_alone(at) { named.clone() } else { folder.path_through() };
            return Ok(Self { parent, folder, name, named, path });
        }
        Err(io::Error::other("other commands remove each new folder there"))
    }

    /// Its path for this process, and for others of this user while this value lives. Where other users could put another
    /// folder in its place, because they own the folder above or write to it, the way leads through the descriptor.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path by name, for messages and for processes that may live longer than this value.
    #[must_use]
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The folder, to work in by descriptor.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Removes it with all that is in it and is this user's.
    ///
    /// # Errors
    /// The first failure; the rest is removed nevertheless.
    pub fn remove(self) -> io::Result<()> {
        self.take_away()
    }

    fn take_away(&self) -> io::Result<()> {
        // Somebody else's by now, or gone.
        if !self.folder.is_named(&self.parent, &self.name)? {
            return Ok(());
        }
        let cleared = self.folder.clear();
        self.parent.remove_folder(&self.name).or(cleared)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What stays is removed by the next command.
        let _ = self.take_away();
    }
}

/// The claim of a process that did not make a folder: while it lives, no command takes the folder for one that was left.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "held, not used")] Folder);

impl Held {
    /// Claims a private folder.
    ///
    /// # Errors
    /// `ENOENT`: it is gone, or being removed. `ENOTDIR`: it is a link, or no folder. `EACCES`: it is not this user's alone.
    pub fn of(path: &Path) -> io::Result<Self> {
        let folder = Folder::open_itself(path)?;
        if !folder.found()?.is_private_folder(effective_uid()) {
            return Err(io::Error::from_raw_os_error(crate::errno::EACCES));
        }
        if is_locked(folder.file().try_lock_shared())? {
            return Ok(Self(folder));
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Removes the folders that killed commands of this user left in `parent`; what cannot be looked at stays.
pub fn sweep(parent: &Path) {
    // A folder that cannot be opened has nothing that could be removed.
    let _ = Folder::open(parent).map(|parent| remove_left(&parent, LOOKING));
}

/// Whether a folder of this name was made as one of this kind.
#[must_use]
pub fn is_named(name: &OsStr, kind: &str) -> bool {
    name.to_str().and_then(kind_in) == Some(kind)
}

/// A path as it can be told: bytes that are no text are escaped.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

/// The new folder of this name with its lock; none if another command removes it as one that was left.
fn taken(parent: &Folder, name: &OsStr) -> io::Result<Option<Folder>> {
    let opened = parent.folder(name).and_then(|folder| {
        let is_locked = is_locked(folder.file().try_lock_shared())?;
        Ok((is_locked && folder.is_named(parent, name)?).then_some(folder))
    });
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            // Such as EMFILE: nothing is left. It is empty, so nobody loses anything.
            let _ = parent.remove_folder(name);
            Err(error)
        }
        other => other,
    }
}

fn is_locked(result: Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether no other user but root can give another folder a name below this one: none owns it or a folder above, nor writes
/// to one without the sticky bit.
fn is_ours_alone(path: &Path) -> bool {
    let me = effective_uid();
    let holds = |folder: &Path| {
        folder.metadata().is_ok_and(|found| {
            let is_sticky = found.mode() & 0o1000 != 0;
            (found.uid() == me || found.uid() == 0) && (found.mode() & 0o022 == 0 || is_sticky)
        })
    };
    path.canonicalize().is_ok_and(|path| path.ancestors().all(holds))
}

/// Whether an entry has the name of a private folder.
fn is_meant(entry: &Entry) -> bool {
    entry.may_be_folder && entry.name.to_str().and_then(kind_in).is_some()
}

/// The kind in the name of a private folder.
fn kind_in(name: &str) -> Option<&str> {
    let (kind, digits) = name.strip_prefix(BEGIN)?.strip_suffix(END)?.rsplit_once('-')?;
    let is_ours =
        digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_ours.then_some(kind)
}

fn remove_left(parent: &Folder, limit: Duration) {
    // Locks of another machine's processes are not seen here.
    if disk::is_remote(parent.file()) {
        return;
    }
    let until = Instant::now() + limit;
    let mut names = Vec::new();
    // An error ends it early; the next command goes on.
    let _ = parent.for_each(|entry| {
        if is_meant(&entry) {
            names.push(entry.name);
        }
        Instant::now() < until
    });
    for name in names {
        if Instant::now() >= until {
            return;
        }
        // What is in use or another's stays.
        let _ = remove_if_left(parent, &name);
    }
}

fn remove_if_left(parent: &Folder, name: &OsStr) -> io::Result<()> {
    let me = effective_uid();
    if !parent.look(name)?.is_private_folder(me) {
        return Ok(());
    }
    let folder = parent.folder(name)?;
    // Between the two looks it may have become another one.
    if !folder.found()?.is_private_folder(me) || !is_locked(folder.file().try_lock())? {
        return Ok(());
    }
    if folder.is_named(parent, name)? {
        let cleared = folder.clear();
        return parent.remove_folder(name).or(cleared);
    }
    Ok(())
}

#[cfg(test)]
#[path = "private_folder/tests.rs"]
mod tests;
