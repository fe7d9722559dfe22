//! Removes all that is in a folder and belongs to its owner.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Entry, Folder, Found, unforeseen_name};
use crate::errno::EISDIR;

impl Folder {
    /// Removes all that is in the folder. What another user owns, or another file system is mounted on, stays, and the
    /// folders around it. Needs three descriptors at most, however deep the folder is.
    ///
    /// # Errors
    /// The first failure; the rest is removed nevertheless.
    pub fn clear(&self) -> io::Result<()> {
        let own = self.found()?;
        loop {
            let (mut moved, mut result) = (false, Ok(()));
            for Entry { name, .. } in self.entries()? {
                let removed = self.remove_level(&name, own, &mut moved);
                result = result.and(removed);
            }
            // What came up goes in the next round.
            if !moved {
                return result;
            }
        }
    }

    /// Removes a file, or a folder with its files; folders in that move up into this one.
    fn remove_level(&self, name: &OsStr, own: Found, moved: &mut bool) -> io::Result<()> {
        if self.remove_leaf(name, own)? {
            return Ok(());
        }
        let sub = self.folder(name)?;
        let mut result = Ok(());
        for Entry { name, .. } in sub.entries()? {
            let gone = sub.remove_leaf(&name, own).and_then(|is_gone| {
                if !is_gone {
                    sub.rename(&name, self, &unforeseen_name())?;
                    *moved = true;
                }
                Ok(())
            });
            result = result.and(gone);
        }
        result.and_then(|()| self.remove_folder(name))
    }

    /// Removes a file or an empty folder; false for a folder that is not empty, which its owner can enter and move then.
    fn remove_leaf(&self, name: &OsStr, own: Found) -> io::Result<bool> {
        let found = match self.look(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            other => other?,
        };
        if (found.uid, found.key.device) != (own.uid, own.key.device) {
            let what = format!("{} is another user's, or on another file system", Path::new(name).display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        match self.remove_file(name) {
            Err(error) if error.raw_os_error() == Some(EISDIR) => {}
            other => return other.map(|()| true),
        }
        if self.remove_folder(name).is_ok() {
            return Ok(true);
        }
        if found.mode & 0o700 != 0o700 {
            // A descriptor only for looking: opening it may need the permission.
            let there = self.open_at(name, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
            let way = format!("/proc/self/fd/{}", there.as_raw_fd());
            std::fs::set_permissions(way, Permissions::from_mode(found.mode & 0o7777 | 0o700))?;
        }
        Ok(false)
    }
}
