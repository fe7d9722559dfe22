//! An open folder: what is in it is reached by one name at a time, relative to its descriptor, and no link is followed.
//! Not here: removing all that is in it (`clear`), devices (`device`), folders for temporary files (`private_folder`).
//! Facts: `open(2)` (`O_NOFOLLOW`, `O_TMPFILE`), `openat(2)`, `unlinkat(2)`, `getdents64(2)`.
//!
//! The system calls themselves: the C library's functions of these names may be those of a program that a library is
//! preloaded into.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zerocopy::IntoBytes;

use crate::errno::{EINVAL, EISDIR, ENOENT, EOPNOTSUPP, check, new_descriptor};
use crate::file_key::FileKey;

mod clear;
mod device;

/// An open folder.
#[derive(Debug)]
pub struct Folder(File);

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// Whether it may be a folder: false if it certainly is none.
    pub may_be_folder: bool,
}

/// What has a name: a link itself, not what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its owner.
    pub uid: u32,
    /// Its type and permissions (`st_mode`).
    pub mode: u32,
    /// Which file it is, whatever its name.
    pub key: FileKey,
}

impl Found {
    fn is_of_type(self, kind: libc::mode_t) -> bool {
        #[allow(clippy::useless_conversion, reason = "the type is narrower elsewhere")]
        let (mask, kind) = (u32::from(libc::S_IFMT), u32::from(kind));
        self.mode & mask == kind
    }

    /// Whether it is a folder.
    #[must_use]
    pub fn is_folder(self) -> bool {
        self.is_of_type(libc::S_IFDIR)
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(self) -> bool {
        self.is_of_type(libc::S_IFREG)
    }

    /// Whether it is a link.
    #[must_use]
    pub fn is_link(self) -> bool {
        self.is_of_type(libc::S_IFLNK)
    }

    /// Whether it is a folder of user `me` and of nobody else.
    #[must_use]
    pub fn is_private_folder(self, me: u32) -> bool {
        self.is_folder() && self.uid == me && self.mode & 0o077 == 0
    }
}

impl From<&Metadata> for Found {
    fn from(found: &Metadata) -> Self {
        let key = FileKey { device: found.dev(), inode: found.ino() };
        Self { uid: found.uid(), mode: found.mode(), key }
    }
}

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> Self {
        folder.0.into()
    }
}

impl Folder {
    /// Opens the folder that a user named, through links if there are any.
    ///
    /// # Errors
    /// `ENOTDIR`, `ENOENT`, `EACCES`, `EMFILE`.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NONBLOCK).open(path).map(Self)
    }

    /// Opens a folder whose last part is no link. The parts before it may be.
    ///
    /// # Errors
    /// `ENOTDIR`: it is a link, or no folder. `ENOENT`, `EACCES`, `EMFILE`.
    pub fn open_itself(path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        File::options().read(true).custom_flags(flags).open(path).map(Self)
    }

    /// Its owner, mode and identity.
    ///
    /// # Errors
    /// None for an open folder.
    pub fn found(&self) -> io::Result<Found> {
        self.0.metadata().map(|found| Found::from(&found))
    }

    /// A path to this folder, wherever it is moved, for this process while this value lives.
    #[must_use]
    pub fn own_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// [`Self::own_path`] for other processes of this user, too.
    #[must_use]
    pub fn path_through(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// What has this name. Opens nothing, so neither a FIFO nor a device nor another user notices.
    ///
    /// # Errors
    /// `ENOENT`; `EINVAL`: the name is none ([`is_name`]).
    pub fn look(&self, name: &OsStr) -> io::Result<Found> {
        let name = c_name(name)?;
        // SAFETY: a stat64 is integers, for which all-zero bytes are a value.
        let mut found: libc::stat64 = unsafe { std::mem::zeroed() };
        let (fd, flags) = (self.0.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: `name` is NUL-terminated and `found` writable; both live through the call.
        check(unsafe { libc::fstatat64(fd, name.as_ptr(), &raw mut found, flags) })?;
        #[allow(clippy::unnecessary_cast, reason = "another type on each target")]
        let key = FileKey { device: found.st_dev as u64, inode: found.st_ino as u64 };
        Ok(Found { uid: found.st_uid, mode: found.st_mode, key })
    }

    /// Whether this folder has the name `name` in `parent`.
    ///
    /// # Errors
    /// See [`Self::look`]; a missing name is none.
    pub fn is_named(&self, parent: &Self, name: &OsStr) -> io::Result<bool> {
        match parent.look(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => Ok(found?.key == self.found()?.key),
        }
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// `ENOTDIR`: it is a link, or no folder. `ENOENT`, `EACCES`, `EMFILE`, `EINVAL`.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        self.open_at(name, flags, 0).map(Self)
    }

    /// Makes a folder in this one.
    ///
    /// # Errors
    /// `EEXIST`: the name is taken. `EACCES`, `ENOSPC`, `EROFS`, `EINVAL`.
    pub fn make_folder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: `name` is NUL-terminated and outlives the call, which reads it; the others are integers.
        check(unsafe { libc::syscall(libc::SYS_mkdirat, self.0.as_raw_fd(), name.as_ptr(), mode) })
    }

    /// Makes a new file, to be read and written.
    ///
    /// # Errors
    /// `EEXIST`: the name is taken, also by a link. `EACCES`, `ENOSPC`, `EROFS`, `EMFILE`, `EINVAL`.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, mode)
    }

    /// Writes a file under a name that nobody can foresee, and gives it this name when it is whole.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`: what has the name is another user's, in a folder that all users write. `ENOSPC`, `EROFS`, `EMFILE`,
    /// `EINVAL`.
    pub fn replace_file(&self, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<()> {
        let draft = unforeseen_name();
        let written = self
            .create_file(&draft, mode)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| self.rename(&draft, self, name));
        if written.is_err() {
            // The first error counts.
            let _ = self.remove_file(&draft);
        }
        written
    }

    /// Opens a regular file to be read. Never waits: a FIFO or a device is refused.
    ///
    /// # Errors
    /// `ELOOP`: it is a link. `EINVAL`: it is no regular file. `ENOENT`, `EACCES`, `EMFILE`.
    pub fn read_file(&self, name: &OsStr) -> io::Result<File> {
        self.regular(name, libc::O_RDONLY)
    }

    /// Opens a regular file to be read and written, as it is.
    ///
    /// # Errors
    /// See [`Self::read_file`].
    pub fn update_file(&self, name: &OsStr) -> io::Result<File> {
        self.regular(name, libc::O_RDWR)
    }

    fn regular(&self, name: &OsStr, access: libc::c_int) -> io::Result<File> {
        // Looked at first: opening a device may have an effect.
        let found = self.look(name)?;
        if !found.is_file() && !found.is_link() {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        let file = self.open_at(name, access | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY, 0)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        Ok(file)
    }

    /// Makes a file without a name, which goes with its last descriptor, to be read and written.
    ///
    /// # Errors
    /// `EACCES`, `ENOSPC`, `EROFS`, `EMFILE`.
    pub fn nameless_file(&self) -> io::Result<File> {
        self.nameless_file_with(0)
    }

    /// [`Self::nameless_file`], opened with more flags of `open(2)` ([`crate::disk::DIRECT`]).
    ///
    /// # Errors
    /// See [`Self::nameless_file`]. `EINVAL`: the file system does not know the flags.
    pub fn nameless_file_with(&self, flags: i32) -> io::Result<File> {
        let flags = flags | libc::O_RDWR;
        match self.call_open(c".", flags | libc::O_TMPFILE | libc::O_EXCL, 0o600) {
            // The file system, or an old kernel, has no such files.
            Err(error) if matches!(error.raw_os_error(), Some(EOPNOTSUPP | EISDIR | ENOENT)) => {
                let name = unforeseen_name();
                let file = self.open_at(&name, flags | libc::O_CREAT | libc::O_EXCL, 0o600)?;
                self.remove_file(&name).map(|()| file)
            }
            other => other,
        }
    }

    /// Removes a name that is no folder's.
    ///
    /// # Errors
    /// `EISDIR`: it is a folder. `ENOENT`, `EACCES`, `EINVAL`.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, 0)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`, `EBUSY`: something is mounted there. `ENOENT`, `EACCES`, `EINVAL`.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: `name` is NUL-terminated and outlives the call, which reads it; the others are integers.
        check(unsafe { libc::syscall(libc::SYS_unlinkat, self.0.as_raw_fd(), name.as_ptr(), flags) })
    }

    /// Gives what has this name another one, there; what has that one is replaced.
    ///
    /// # Errors
    /// See `rename(2)`; `EINVAL`: one of the names is none.
    pub fn rename(&self, name: &OsStr, there: &Self, new: &OsStr) -> io::Result<()> {
        let (name, new) = (c_name(name)?, c_name(new)?);
        let (from, to) = (self.0.as_raw_fd(), there.0.as_raw_fd());
        // SAFETY: both names are NUL-terminated and outlive the call, which reads them; the others are integers.
        check(unsafe { libc::syscall(libc::SYS_renameat2, from, name.as_ptr(), to, new.as_ptr(), 0) })
    }

    /// Calls `each` with what is in the folder until it returns false.
    ///
    /// # Errors
    /// `ENOENT`: the folder was removed.
    pub fn for_each(&self, mut each: impl FnMut(Entry) -> bool) -> io::Result<()> {
        // From the beginning, also if it was read before.
        (&self.0).rewind()?;
        let mut bytes = [0u64; 4096];
        loop {
            let (fd, room) = (self.0.as_raw_fd(), size_of_val(&bytes));
            // SAFETY: the kernel stores at most `room` bytes into `bytes`, which is live and as long, and aligned.
            let count = unsafe { libc::syscall(libc::SYS_getdents64, fd, bytes.as_mut_ptr(), room) };
            check(count)?;
            if count == 0 {
                return Ok(());
            }
            let mut rest = &bytes.as_bytes()[..count as usize];
            while let Some((entry, after)) = parse(rest) {
                rest = after;
                if entry.name != "." && entry.name != ".." && !each(entry) {
                    return Ok(());
                }
            }
        }
    }

    /// What is in the folder, in no order.
    ///
    /// # Errors
    /// See [`Self::for_each`].
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.for_each(|entry| {
            entries.push(entry);
            true
        })?;
        Ok(entries)
    }

    /// Whether it has anything.
    ///
    /// # Errors
    /// See [`Self::for_each`].
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut empty = true;
        self.for_each(|_| {
            empty = false;
            false
        })?;
        Ok(empty)
    }

    /// The open folder itself, to be locked.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    fn open_at(&self, name: &OsStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
        self.call_open(&c_name(name)?, flags, mode)
    }

    fn call_open(&self, name: &CStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
        let flags = flags | libc::O_CLOEXEC | libc::O_LARGEFILE;
        // SAFETY: `name` is NUL-terminated and outlives the call, which reads it; the others are integers.
        let fd = unsafe { libc::syscall(libc::SYS_openat, self.0.as_raw_fd(), name.as_ptr(), flags, mode) };
        // SAFETY: the result of openat.
        unsafe { new_descriptor(fd as i64) }.map(File::from)
    }
}

/// Whether this is one name in a folder: no path, and neither `.` nor `..`.
#[must_use]
pub fn is_name(name: &OsStr) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.as_bytes().iter().any(|byte| matches!(byte, b'/' | 0))
}

fn c_name(name: &OsStr) -> io::Result<CString> {
    let wrong = || io::Error::from_raw_os_error(EINVAL);
    if is_name(name) { CString::new(name.as_bytes()).map_err(|_| wrong()) } else { Err(wrong()) }
}

/// A number that other processes cannot foresee.
pub(crate) fn unforeseen() -> u64 {
    // The keys of the standard library's hasher are the system's random numbers.
    RandomState::new().build_hasher().finish()
}

/// A hidden name that other processes cannot foresee.
fn unforeseen_name() -> OsString {
    format!(".binderperf-{:016x}", unforeseen()).into()
}

/// The first entry of what `getdents64(2)` stored, and the rest.
fn parse(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    // `struct linux_dirent64`: the length of the entry at 16, the type at 18, the name behind it.
    let length = u16::from_ne_bytes([*bytes.get(16)?, *bytes.get(17)?]);
    let (entry, rest) = bytes.split_at_checked(length.into())?;
    let kind = *entry.get(18)?;
    let name = CStr::from_bytes_until_nul(entry.get(19..)?).ok()?.to_bytes();
    let may_be_folder = kind == libc::DT_DIR || kind == libc::DT_UNKNOWN;
    Some((Entry { name: OsString::from_vec(name.to_vec()), may_be_folder }, rest))
}

#[cfg(test)]
#[path = "folder/tests.rs"]
mod tests;
