//! Free space and kinds of file systems, sizes of folders, and files past the kernel's cache.
//! Facts: `statvfs(3)`, `statfs(2)`, `open(2)`.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::errno::check;

/// Flag of `open` with which reads and writes go between the program's memory and the disk and wait for it.
pub const DIRECT: i32 = libc::O_DIRECT;

/// Bytes that this user may still write on the file system of a path.
///
/// # Errors
/// `ENOENT`: there is no such path. `EINVAL`: it contains a zero byte.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from_raw_os_error(crate::errno::EINVAL))?;
    // SAFETY: a statvfs is integers, for which all-zero bytes are a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a zero byte and `found` is writable; both live through the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut found) })?;
    // The types differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "32-bit targets")]
    let (blocks, size) = (found.f_bavail as u64, found.f_frsize as u64);
    Ok(blocks.saturating_mul(size))
}

/// Bytes of all files below a folder.
///
/// # Errors
/// A folder or an entry cannot be read.
pub fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}

/// Numbers of file systems that other machines may write, too (`statfs(2)`): NFS, SMB, 9P, Ceph, AFS, and those that a
/// program serves.
const REMOTE: [u32; 9] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
    0x6b41_4653,
    0x6573_5546,
];

/// Whether a file is on a file system that other machines may write, too.
#[must_use]
pub fn is_remote(file: &File) -> bool {
    // SAFETY: a statfs is integers, for which all-zero bytes are a value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is writable and lives through the call.
    let result = check(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) });
    #[allow(clippy::unnecessary_cast, reason = "another type on each target")]
    let kind = found.f_type as u32;
    result.is_ok() && REMOTE.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_room_or_does_not_exist() {
        assert!(!is_remote(&File::open("/proc").expect("it is mounted")));
        assert!(free_bytes(&std::env::temp_dir()).is_ok());
        assert_eq!(free_bytes(Path::new("/proc")).expect("it is mounted"), 0, "nobody writes there");
        let none = free_bytes(Path::new("/no/such/folder")).expect_err("nothing there");
        assert_eq!(none.raw_os_error(), Some(crate::errno::ENOENT));
    }
}
