//! Free space of file systems, and files past the kernel's cache.
//! Facts: `statvfs(3)`, `open(2)`.

use std::ffi::CString;
use std::io;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_room_or_does_not_exist() {
        assert!(free_bytes(&std::env::temp_dir()).is_ok());
        assert_eq!(free_bytes(Path::new("/proc")).expect("it is mounted"), 0, "nobody writes there");
        let none = free_bytes(Path::new("/no/such/folder")).expect_err("nothing there");
        assert_eq!(none.raw_os_error(), Some(crate::errno::ENOENT));
    }
}
