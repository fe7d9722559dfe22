//! Identity of an open file, whichever process and number it has.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Number of the file system.
    pub device: u64,
    /// Number of the file there.
    pub inode: u64,
}

impl FileKey {
    /// The file behind a descriptor.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`: no descriptor is free.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let found = File::from(fd.try_clone_to_owned()?).metadata()?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}
