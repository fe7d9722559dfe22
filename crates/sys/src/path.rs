//! Files by their path, by the system calls themselves: where the C library's functions are replaced (crate `preload`), a path would
//! be looked up once more.
//! Not here: names relative to a descriptor of a folder (`folder`).
//! Facts: `readlink(2)`, `stat(2)`, `statx(2)`, `faccessat(2)`.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::call;
use crate::errno::{check, new_descriptor};

/// The longest path, in bytes.
pub const LONGEST: usize = libc::PATH_MAX as usize;

/// A path as the kernel takes it.
///
/// # Errors
/// `EINVAL`: it contains a zero byte.
pub fn terminated(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// The target of a symbolic link.
///
/// # Errors
/// `EINVAL`: the file is none. `ENOENT`, `ENOTDIR`.
pub fn read_link(path: &CStr) -> io::Result<Vec<u8>> {
    let mut target = vec![0_u8; LONGEST];
    let (at, room) = (target.as_mut_ptr(), target.len());
    // SAFETY: a path, and a buffer of that length.
    let length = unsafe { libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), at, room) };
    check(length)?;
    target.truncate(length as usize);
    Ok(target)
}

/// True if a file is there, behind links.
#[must_use]
pub fn exists(path: &CStr) -> bool {
    // SAFETY: a path and integers.
    unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::F_OK) == 0 }
}

/// True if this process may use a file in these ways (`R_OK` and the like), by its effective rights.
///
/// # Errors
/// Those of `faccessat`.
pub fn access(path: &CStr, mode: i32) -> io::Result<()> {
    // SAFETY: a path and integers.
    check(unsafe { libc::syscall(call::FACCESSAT2, libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) })
}

/// The kernel's `struct stat` of a file, a link itself included. A socket is shown as the device that it stands for
/// ([`crate::folder::Folder::make_device`]).
///
/// # Errors
/// Those of `stat`.
pub fn stat(path: &CStr) -> io::Result<Vec<u8>> {
    let mut found = vec![0_u8; size_of::<libc::stat>().max(256)];
    let (folder, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: a path, and a buffer that is larger than what the kernel stores.
    check(unsafe { libc::syscall(call::NEWFSTATAT, folder, path.as_ptr(), found.as_mut_ptr(), follow) })?;
    found.truncate(size_of::<libc::stat>());
    show_device(&mut found, offset_of!(libc::stat, st_mode));
    Ok(found)
}

/// `struct statx` of a file, a link itself included; a socket as by [`stat`].
///
/// # Errors
/// Those of `statx`.
pub fn extended_stat(path: &CStr, mask: u32) -> io::Result<Vec<u8>> {
    const SIZE: usize = 256;
    const MODE: usize = 28;
    let mut found = vec![0_u8; SIZE];
    let (folder, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: a path, and a buffer of the structure's size.
    check(unsafe { libc::syscall(call::STATX, folder, path.as_ptr(), follow, mask, found.as_mut_ptr()) })?;
    show_device(&mut found, MODE);
    Ok(found)
}

/// Makes a socket's mode, which is at `at`, a character device's.
fn show_device(found: &mut [u8], at: usize) {
    // The lower half, where the machine is little-endian, as all are that the driver knows.
    let Some(mode) = found.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { return };
    let (kind, now) = (libc::S_IFMT as u16, u16::from_ne_bytes(*mode));
    if now & kind == libc::S_IFSOCK as u16 {
        *mode = (now & !kind | libc::S_IFCHR as u16).to_ne_bytes();
    }
}

/// The path of a file without links, which must be there.
///
/// # Errors
/// Those of `open`. `EINVAL`, `ENOENT`: there is no procfs.
pub fn real(path: &CStr) -> io::Result<Vec<u8>> {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: a path and integers.
    let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    // SAFETY: the result of openat.
    let fd = unsafe { new_descriptor(fd) }?;
    read_link(&terminated(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_ref())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_socket_is_shown_as_the_device_that_it_stands_for() {
        let folder = crate::private_folder::PrivateFolder::new("test").expect("a folder");
        let mode = |name: &str| {
            let path = terminated(&folder.path().join(name)).expect("no zero");
            let (found, extended) =
                (stat(&path).expect("there"), extended_stat(&path, 0xfff).expect("there"));
            let at = offset_of!(libc::stat, st_mode);
            let mode = u16::from_ne_bytes([found[at], found[at + 1]]);
            assert_eq!(extended[28..30], mode.to_ne_bytes());
            u32::from(mode) & libc::S_IFMT
        };
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("bound");
        std::fs::write(folder.path().join("file"), "").expect("written");
        assert_eq!((mode("socket"), mode("file")), (libc::S_IFCHR, libc::S_IFREG));
    }

    #[test]
    fn a_device_is_looked_at_by_its_path() {
        let folder = crate::private_folder::PrivateFolder::new("test").expect("a folder");
        let opened = crate::folder::Folder::open(folder.path()).expect("there");
        opened.make_device(OsStr::new("device")).expect("made");
        let plain = folder.path().join("device");
        let path = terminated(&plain).expect("no zero");
        let error = std::fs::File::open(&plain).expect_err("no driver").raw_os_error();
        assert_eq!(error, Some(libc::ENXIO));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("device", &link).expect("linked");
        let canonical = plain.canonicalize().expect("there").into_os_string().into_encoded_bytes();
        assert_eq!(real(&terminated(&link).expect("no zero")).expect("there"), canonical);
        access(&path, libc::R_OK | libc::W_OK).expect("anybody's");
        assert_eq!(read_link(&path).expect_err("no link").raw_os_error(), Some(libc::EINVAL));
        assert!(exists(&path) && !exists(c"/no/such/file"));
        // The first word is the file system, the second the number.
        let found = stat(&path).expect("there");
        let number = u64::from_ne_bytes(found[8..16].try_into().expect("8 bytes"));
        assert_eq!(number, std::os::unix::fs::MetadataExt::ino(&plain.metadata().expect("there")));
        assert_eq!(extended_stat(&path, 0xfff).expect("there")[32..40], number.to_ne_bytes());
    }
}
