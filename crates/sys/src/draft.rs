//! A file under construction: it takes the place of an older one when it is whole, and not before.
//!
//! A command that is refused or killed, and a disk that is full, leave the older file as it was. The draft has no name
//! where the file system has such files, so nothing of it stays; elsewhere it is hidden and locked beside the older file,
//! and the next draft in that folder removes it once its writer is gone. What is no regular file (a device, a pipe, an open
//! descriptor as `/dev/stdout`) is written through.
//! Facts: `open(2)` on `O_TMPFILE`, `linkat(2)`, `rename(2)`, `flock(2)`, `proc_pid_fd(5)`.

mod name;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::errno::{EACCES, EBUSY, EEXIST, EINVAL, EISDIR, EOPNOTSUPP, EPERM, EXDEV};
use name::{folder_of, is_at, link, named, names, place_of, sweep, through};

/// The end of the name of a result that is a part only.
pub const PARTIAL: &str = ".partial";

/// A file under construction; thrown away on drop.
#[derive(Debug)]
pub struct Draft {
    file: File,
    place: Place,
    /// Whether to wait for the disk.
    waits: bool,
}

/// Where it will be.
#[derive(Debug)]
enum Place {
    /// Where it is: no regular file.
    Through,
    /// In a folder.
    Beside {
        path: PathBuf,
        /// The older file, open to be written.
        older: Option<File>,
        /// The draft's own name, where it has one.
        name: Option<PathBuf>,
        /// Whether that name is for users to see.
        shown: bool,
    },
    /// In an older file of a folder that takes no others: its content is replaced at the end.
    Over(File),
}

/// Where the result is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Where it was wanted.
    There,
    /// Beside an older one, under this name.
    Beside(PathBuf),
}

impl Draft {
    /// Begins a file. A path that cannot be written shows now; an older file's mode and owner are kept.
    ///
    /// # Errors
    /// As for a file that is opened to be written: `EACCES`, `EISDIR`, `ENOENT`, `EROFS`, ...
    pub fn new(path: &Path) -> io::Result<Self> {
        Self::with_mode(path, 0o666)
    }

    /// [`Self::new`] with the mode of a file that has no older one, before the umask.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        let Some(path) = place_of(path)? else {
            return Ok(Self::at(through(path)?, Place::Through));
        };
        // Opened, not truncated: that this user may write it is known, and its content stays.
        let older = match File::options().write(true).open(&path) {
            Ok(file) if file.metadata()?.is_file() => Some(file),
            Ok(file) => return Ok(Self::at(file, Place::Through)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let folder = folder_of(&path);
        sweep(folder);
        let unnamed =
            File::options().read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder);
        let begun = match unnamed {
            Ok(file) => Ok((file, None)),
            Err(_) => named(folder, mode).map(|(file, name)| (file, Some(name))),
        };
        match (begun, older) {
            (Ok((file, name)), older) => {
                if let Some(older) = &older {
                    take_on(&file, older)?;
                }
                Ok(Self::at(file, Place::Beside { path, older, name, shown: false }))
            }
            (Err(error), Some(older)) if takes_no_files(&error) => Ok(Self::at(spool()?, Place::Over(older))),
            (Err(error), None | Some(_)) => Err(error),
        }
    }

    fn at(file: File, place: Place) -> Self {
        Self { file, place, waits: true }
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the draft a name that users see, the path's with [`PARTIAL`] behind it, because a part of it is of use: it
    /// stays there if this process is killed. An older part of that name is replaced. No name where that cannot be.
    /// [`Self::file`] may be another one then.
    pub fn show(&mut self) {
        let Place::Beside { path, name, shown, .. } = &mut self.place else { return };
        let part = partial(path);
        if !*shown && let Ok(own) = own_name(&mut self.file, path, name.take()) {
            *shown = fs::rename(&own, &part).is_ok();
            *name = Some(if *shown { part } else { own });
        }
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// It could not be written whole: the older file is as it was, and the draft is gone.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        match &mut self.place {
            Place::Through => Ok(()),
            Place::Over(older) => overwrite(&mut self.file, older),
            Place::Beside { path, older, name, shown } => {
                if self.waits {
                    synced(&self.file)?;
                }
                if name.is_none() && older.is_none() && link(&self.file, path).is_ok() {
                    return Ok(());
                }
                let own = own_name(&mut self.file, path, name.take())?;
                let moved = fs::rename(&own, &*path);
                *shown = false;
                match (moved, older) {
                    (Ok(()), _) => Ok(()),
                    (Err(error), Some(older)) if keeps_its_place(&error) => {
                        *name = Some(own);
                        overwrite(&mut self.file, older)
                    }
                    (Err(error), _) => {
                        *name = Some(own);
                        Err(error)
                    }
                }
            }
        }
    }

    /// [`Self::commit`] without waiting for the disk, for what is written while something is measured.
    ///
    /// # Errors
    /// See [`Self::commit`].
    pub fn commit_unsynced(mut self) -> io::Result<()> {
        self.waits = false;
        self.commit()
    }

    /// Puts a part of a result in its place, or beside an older file, which stays.
    ///
    /// # Errors
    /// See [`Self::commit`]. `EACCES`: the folder takes no other file.
    pub fn commit_part(mut self) -> io::Result<Kept> {
        let (path, name, shown) = match &mut self.place {
            Place::Beside { path, name, shown, .. } => (path, name, shown),
            Place::Over(older) if older.metadata()?.len() > 0 => {
                return Err(io::Error::from_raw_os_error(EACCES));
            }
            Place::Over(_) | Place::Through => return self.commit().map(|()| Kept::There),
        };
        if !fs::metadata(&*path).is_ok_and(|older| older.len() > 0) {
            return self.commit().map(|()| Kept::There);
        }
        synced(&self.file)?;
        let (part, own) = (partial(path), own_name(&mut self.file, path, name.take())?);
        let moved = fs::rename(&own, &part);
        // What is moved stays; what is not goes.
        *shown = moved.is_ok();
        *name = Some(if *shown { part.clone() } else { own });
        moved.map(|()| Kept::Beside(part))
    }

    /// Throws the draft away, even one that users saw.
    pub fn discard(mut self) {
        if let Place::Beside { shown, .. } = &mut self.place {
            *shown = false;
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Place::Beside { name: Some(name), shown, .. } = &self.place else { return };
        let is_of_use = *shown && self.file.metadata().is_ok_and(|file| file.len() > 0);
        if !is_of_use && is_at(&self.file, name) {
            let _ = fs::remove_file(name);
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Draft {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// See [`Draft::new`], and those of writing.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut draft = Draft::new(path)?;
    draft.write_all(content.as_ref())?;
    draft.commit()
}

/// Copies a file with its mode, whole or not at all; returns its size in bytes.
///
/// # Errors
/// See [`Draft::new`], and those of reading and writing.
pub fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let mut from = File::open(from)?;
    let mode = from.metadata()?.mode();
    let mut draft = Draft::with_mode(to, mode & 0o777)?;
    let bytes = io::copy(&mut from, &mut draft)?;
    draft.commit()?;
    Ok(bytes)
}

/// Where a part of a result stands that may not replace this file.
#[must_use]
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(PARTIAL);
    path.with_file_name(name)
}

/// Gives a draft the owner and the mode of the file that it replaces.
fn take_on(draft: &File, older: &File) -> io::Result<()> {
    let (of, now) = (older.metadata()?, draft.metadata()?);
    if (of.uid(), of.gid()) != (now.uid(), now.gid()) {
        // Only root may give files away, and this user may write it in any case.
        let _ = std::os::unix::fs::fchown(draft, Some(of.uid()), Some(of.gid()))
            .or_else(|_| std::os::unix::fs::fchown(draft, None, Some(of.gid())));
    }
    // FAT has one mode for all.
    let _ = draft.set_permissions(fs::Permissions::from_mode(of.mode() & 0o7777));
    Ok(())
}

/// Whether a folder's error means that it takes no new files, while those in it may be written.
fn takes_no_files(error: &io::Error) -> bool {
    let refuses = matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    refuses || matches!(error.raw_os_error(), Some(EOPNOTSUPP | EINVAL))
}

/// Whether the error of a rename means that the file there may be written, but not replaced: it is mounted on its own, or
/// another user's in a folder of all.
fn keeps_its_place(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EBUSY | EXDEV | EPERM | EACCES))
}

/// A file without a name, among the temporary ones or in memory.
fn spool() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let unnamed =
        File::options().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder);
    unnamed.or_else(|_| crate::mapping::memory_file(0, 0))
}

/// Replaces the content of a file by that of a draft. Its end is cut last: a disk that is full shows before.
fn overwrite(draft: &mut File, older: &mut File) -> io::Result<()> {
    draft.seek(SeekFrom::Start(0))?;
    older.seek(SeekFrom::Start(0))?;
    let bytes = io::copy(draft, older)?;
    if older.metadata()?.is_file() {
        // A file of the kernel has no length to set.
        let _ = older.set_len(bytes);
    }
    synced(older)
}

/// Waits until a file is on its disk. Some file systems cannot tell.
fn synced(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP)) => Ok(()),
        done => done,
    }
}

/// The name of a draft in the folder of its path; it gets one if it has none, or if another has it by now.
fn own_name(file: &mut File, path: &Path, name: Option<PathBuf>) -> io::Result<PathBuf> {
    if let Some(name) = name.filter(|name| is_at(file, name)) {
        return Ok(name);
    }
    let folder = folder_of(path);
    // So that no other draft takes it for left over while it has the name.
    let _ = file.try_lock();
    for slot in names(folder) {
        match link(file, &slot) {
            Ok(()) => return Ok(slot),
            Err(error) if error.raw_os_error() == Some(EEXIST) => {}
            // As on a phone, whose rules let nobody link.
            Err(_) => break,
        }
    }
    let mode = file.metadata()?.mode() & 0o777;
    let (mut copy, name) = named(folder, mode)?;
    let copied = take_on(&copy, file).and_then(|()| copy_all(file, &mut copy)).and_then(|()| synced(&copy));
    if let Err(error) = copied {
        let _ = fs::remove_file(&name);
        return Err(error);
    }
    *file = copy;
    Ok(name)
}

/// Copies a whole file, and goes on at its place.
fn copy_all(from: &mut File, to: &mut File) -> io::Result<()> {
    let at = from.stream_position()?;
    from.seek(SeekFrom::Start(0))?;
    io::copy(from, to)?;
    to.seek(SeekFrom::Start(at)).map(drop)
}

/// The error of a path that names a folder.
fn is_a_folder() -> io::Error {
    io::Error::from_raw_os_error(EISDIR)
}

#[cfg(test)]
mod tests;
