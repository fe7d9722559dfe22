//! Library's own functions in C, for programs that are linked with it: `include/binderperf.h` declares them.
//!
//! Facts: `open(2)`.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use embedded::device_path;
use sys::errno::EINVAL;

use crate::exports::outcome;
use crate::file::Place;
use crate::{calls, table};

/// Returns the version of the library, as text.
#[unsafe(no_mangle)]
pub extern "C" fn binderperf_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Returns 1 if a descriptor is a device of the embedded driver, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn binderperf_is_device(fd: c_int) -> c_int {
    table::has(fd).into()
}

/// Opens the device of this name, as `open("/dev/NAME", flags)` does.
///
/// # Safety
/// `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binderperf_open(name: *const c_char, flags: c_int) -> c_int {
    outcome(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        open(None, name, flags)
    })
}

/// Opens the device of this name in a directory, whose programs share their contexts.
///
/// # Safety
/// `directory` and `name` are null or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn binderperf_open_in(
    directory: *const c_char,
    name: *const c_char,
    flags: c_int,
) -> c_int {
    outcome(-1, || {
        // SAFETY: the caller's promise.
        let directory = unsafe { text(directory) }?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        let directory =
            std::path::absolute(Path::new(OsStr::from_bytes(directory))).map_err(|_| invalid())?;
        open(Some(&directory), name, flags)
    })
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(EINVAL)
}

/// Returns the bytes of a text.
///
/// # Safety
/// `text` is null or ends with a zero byte, and stays as it is while the result lives.
///
/// # Errors
/// `EINVAL`: null.
unsafe fn text<'t>(text: *const c_char) -> io::Result<&'t [u8]> {
    if text.is_null() {
        return Err(invalid());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

fn open(directory: Option<&Path>, name: &[u8], flags: c_int) -> io::Result<c_int> {
    let name =
        std::str::from_utf8(name).ok().filter(|name| device_path::is_name(name)).ok_or_else(invalid)?;
    let path = format!("/dev/binderfs/{name}");
    let device = Place { directory, name, path: &path };
    calls::open(&device, libc::O_RDWR | flags & (libc::O_CLOEXEC | libc::O_NONBLOCK))
}
