//! Devices that lead nowhere, in a folder.
//! Facts: `mknod(2)`; `vfs_mknod` lets any user make device 0:0 since Linux 5.8.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;

use super::{Folder, c_name};
use crate::errno::{EPERM, check};

/// Permissions of a device.
const RIGHTS: libc::mode_t = 0o666;

impl Folder {
    /// Makes a file that is a character device to all that look at it and leads to no driver; where a user may not, a socket
    /// without a listener. To open either is `ENXIO`.
    ///
    /// # Errors
    /// `EEXIST`: the name is taken. Those of `mknod`.
    pub fn make_device(&self, name: &OsStr) -> io::Result<()> {
        match self.make_node(name, libc::S_IFCHR) {
            Err(error) if error.raw_os_error() == Some(EPERM) => self.make_node(name, libc::S_IFSOCK),
            other => other,
        }
    }

    fn make_node(&self, name: &OsStr, kind: libc::mode_t) -> io::Result<()> {
        let (fd, name) = (self.0.as_raw_fd(), c_name(name)?);
        // SAFETY: `name` is NUL-terminated and outlives the call, which reads it; the others are integers.
        check(unsafe { libc::syscall(libc::SYS_mknodat, fd, name.as_ptr(), kind | RIGHTS, 0) })?;
        // The mask of the process is not the driver's.
        // SAFETY: as above.
        check(unsafe { libc::syscall(libc::SYS_fchmodat, fd, name.as_ptr(), RIGHTS) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    #[test]
    fn a_device_that_leads_nowhere() {
        let private = crate::private_folder::PrivateFolder::new("test").expect("a folder");
        let (folder, name) = (Folder::open(private.path()).expect("there"), OsStr::new("device"));
        folder.make_device(name).expect("made");
        assert_eq!(folder.make_device(name).expect_err("there").raw_os_error(), Some(libc::EEXIST));
        let found = private.path().join(name).metadata().expect("there");
        assert!(found.file_type().is_char_device() || found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o777, 0o666);
    }
}
