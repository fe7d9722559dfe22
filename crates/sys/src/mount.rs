//! Room: attaching a new filesystem, `mount(2)`.
//! Not here: which ones a guest wants (`lab::vm::guest`).

use std::ffi::CString;
use std::io;
use std::path::Path;

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Mounts a filesystem that needs no device (`proc`, `tmpfs`, `binder`, ...) on an existing folder.
///
/// # Errors
/// `ENODEV`: the kernel has no such filesystem. `EPERM`: needs `CAP_SYS_ADMIN`. `ENOENT`: no such
/// folder. `EINVAL`: an option the filesystem does not know, or a NUL byte in an argument.
pub fn mount(kind: &str, target: &Path, options: &str) -> io::Result<()> {
    let kind = c_string(kind.as_bytes())?;
    let target = c_string(target.as_os_str().as_encoded_bytes())?;
    let options = c_string(options.as_bytes())?;
    // SAFETY: all four pointers are NUL-terminated strings that outlive the call; mount(2) reads
    // them and keeps none.
    let result =
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
