//! Rights that a program gets from its file: of the owner, of the group, or capabilities.
//! Facts: `execve(2)` on set-user-ID programs, `capabilities(7)` on file capabilities, `xattr(7)`.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::errno::{EINVAL, check};
use crate::identity::{effective_gid, effective_uid};

/// Attribute that holds a file's capabilities.
const CAPABILITIES: &std::ffi::CStr = c"security.capability";
/// Mode bits of a set-user-ID program, and of a set-group-ID one: without the right to run, the bit means locking.
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2010;

/// Whether a program runs with other rights than its starter's.
///
/// # Errors
/// `ENOENT`: there is no such file. `EINVAL`: its path contains a zero byte.
pub fn are_raised(program: &Path) -> io::Result<bool> {
    let found = fs::metadata(program)?;
    let owners = found.mode() & SET_UID != 0 && found.uid() != effective_uid();
    let groups = found.mode() & SET_GID == SET_GID && found.gid() != effective_gid();
    // Root has all of them already.
    Ok(owners || groups || effective_uid() != 0 && has_capabilities(program)?)
}

fn has_capabilities(program: &Path) -> io::Result<bool> {
    let path =
        CString::new(program.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(EINVAL))?;
    // SAFETY: both strings end with a zero byte and live through the call; nothing is stored where the size is 0.
    let size = unsafe { libc::getxattr(path.as_ptr(), CAPABILITIES.as_ptr(), std::ptr::null_mut(), 0) };
    // Fails where the file has none, or the file system has no such attributes.
    Ok(check(size as libc::c_long).is_ok() && size > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn rights_of_a_file_are_seen() {
        let folder = crate::private_folder::PrivateFolder::new("rights").expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "x").expect("written");
        let with = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("own file");
            are_raised(&path).expect("there")
        };
        // The file is this user's own: its rights are no others.
        assert!(!with(0o755) && !with(0o4755));
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        // VFS_CAP_REVISION_2 and CAP_NET_RAW, permitted.
        let value: [u32; 5] = [0x0200_0000, 1 << 13, 0, 0, 0].map(u32::to_le);
        // SAFETY: the strings end with a zero byte, and the value is 20 bytes; all live through the call.
        let set =
            unsafe { libc::setxattr(name.as_ptr(), CAPABILITIES.as_ptr(), value.as_ptr().cast(), 20, 0) };
        // Only root may give a file capabilities, and not on every file system; they are for others.
        assert_eq!(has_capabilities(&path).expect("there"), set == 0);
        assert!(!with(0o755));
        // Where only root is mapped, no file is another user's.
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            assert!(with(0o4755));
        }
        fs::remove_file(&path).expect("removed");
        assert!(are_raised(&path).is_err());
    }
}
