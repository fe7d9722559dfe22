//! Extending the running kernel: mounting a filesystem, loading a module.
//! Not here: which ones a guest wants (`vm::guest`).
//! Facts: `mount(2)`, `finit_module(2)`.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::errno::{EINVAL, check};

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(EINVAL))
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
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) })
}

/// Makes a FIFO that only its owner may open.
///
/// # Errors
/// `EEXIST`: the name is taken. Those of creating a file.
pub fn make_fifo(path: &Path) -> io::Result<()> {
    let path = c_string(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: the pointer is a NUL-terminated string that outlives the call; mkfifo(3) reads it and keeps nothing.
    check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) })
}

/// Loads the module in `file` with `parameters` ("name=value name=value").
///
/// # Errors
/// `EEXIST`: it is loaded already. `ENOENT`: a symbol it needs is missing. `ENOEXEC`: built for
/// another kernel. `EPERM`: needs `CAP_SYS_MODULE`. `EINVAL`: a bad parameter.
pub fn load_module(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = c_string(parameters.as_bytes())?;
    // SAFETY: `parameters` is NUL-terminated and outlives the call, which copies it; the others are
    // integers.
    check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) })
}
