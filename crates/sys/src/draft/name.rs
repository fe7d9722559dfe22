//! Names of drafts: where a path leads, hidden names beside it, and drafts that a killed process left.

use std::ffi::CString;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::errno::{EEXIST, EINVAL, ELOOP, check};

/// Hidden names in one folder that are looked at for what was left.
const SLOTS: usize = 16;
/// Links on the way to a file, as for the kernel.
const MOST_LINKS: usize = 40;

/// Where a path leads: its last links followed, so that a link stays and the file that it names is replaced. `None`: to an
/// open descriptor of some process.
///
/// # Errors
/// `ELOOP`. `EISDIR`: only a folder may have this name.
pub(super) fn place_of(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(super::is_a_folder());
        }
        let Ok(target) = fs::read_link(&path) else { return Ok(Some(path)) };
        let of_proc = |link: &Path| Some(fs::symlink_metadata(link).ok()?.dev());
        if of_proc(&path) == of_proc(Path::new("/proc/self")) {
            return Ok(None);
        }
        path = folder_of(&path).join(target);
    }
    Err(io::Error::from_raw_os_error(ELOOP))
}

/// Opens what is no file in a folder. A descriptor of this process is duplicated: a second one would have a place of its own
/// in a regular file, and write over what the first one wrote.
pub(super) fn through(path: &Path) -> io::Result<File> {
    let own = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
    let mut link = path.to_owned();
    while let Ok(target) = fs::read_link(&link) {
        let folder = fs::canonicalize(folder_of(&link))?;
        let number = link.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(number) = number.filter(|_| folder == own) {
            return crate::descriptor::duplicate(number).map(File::from);
        }
        if folder.starts_with("/proc") {
            break;
        }
        link = folder.join(target);
    }
    File::create(path)
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The hidden names of drafts in a folder.
fn slots(folder: &Path) -> impl Iterator<Item = PathBuf> {
    (0..SLOTS).map(move |number| folder.join(format!(".binderperf-draft-{number}")))
}

/// Those names; and one that nobody can guess, should another user of the folder hold them all.
pub(super) fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let last = std::iter::once_with(move || {
        let number = RandomState::new().build_hasher().finish();
        folder.join(format!(".binderperf-draft-{number:x}"))
    });
    slots(folder).chain(last)
}

/// Makes a file under a hidden name, locked.
///
/// # Errors
/// `EACCES`, `EROFS`, `ENOENT`. `EEXIST`: all names are taken.
pub(super) fn named(folder: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    for slot in names(folder) {
        let made = File::options().read(true).write(true).create_new(true).mode(mode).open(&slot);
        match made {
            // Before it was locked another process may have taken it for left over.
            Ok(file) if locked(&file) && is_at(&file, &slot) => return Ok((file, slot)),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(EEXIST))
}

/// Locks a file. A file system without locks has no draft that is taken for left over.
fn locked(file: &File) -> bool {
    !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// Removes the drafts of a folder whose writers are gone; those of other users are not opened.
pub(super) fn sweep(folder: &Path) {
    let own = |slot: &PathBuf| {
        let found = fs::symlink_metadata(slot);
        found.is_ok_and(|found| found.is_file() && found.uid() == crate::identity::effective_uid())
    };
    for slot in slots(folder).filter(own) {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(&slot) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &slot) {
            let _ = fs::remove_file(&slot);
        }
    }
}

/// Whether a name is that of an open file.
pub(super) fn is_at(file: &File, name: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (Ok(file), Ok(there)) = (file.metadata(), fs::symlink_metadata(name)) else { return false };
    identity(file) == identity(there)
}

/// Gives an open file a name that is free.
///
/// # Errors
/// `EEXIST`. `ENOENT`: it had a name before, or `/proc` is not mounted. `EACCES`.
pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
    let invalid = |_| io::Error::from_raw_os_error(EINVAL);
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(invalid)?;
    let to = CString::new(name.as_os_str().as_bytes()).map_err(invalid)?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both strings end with a zero byte and live through the call.
    check(unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) })
}
