//! Room: loading a kernel module, `finit_module(2)`.
//! Not here: which modules, and in which order (`lab::vm`).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Loads the module in `file` with `parameters` ("name=value name=value").
///
/// # Errors
/// `EEXIST`: it is loaded already. `ENOENT`: a symbol it needs is missing. `ENOEXEC`: built for
/// another kernel. `EPERM`: needs `CAP_SYS_MODULE`. `EINVAL`: a bad parameter.
pub fn load(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: `parameters` is NUL-terminated and outlives the call, which copies it; the others are
    // integers.
    let result = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
