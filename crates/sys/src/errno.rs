//! Errno values: their numbers, their names, and results of system calls.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Declares the constants and the table of names.
macro_rules! errnos {
    ($($name:ident)*) => {
        pub use libc::{$($name),*};

        /// The symbolic name of an errno; `None` for one that is not in this module.
        #[must_use]
        pub fn name(errno: i32) -> Option<&'static str> {
            match errno {
                $($name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

errnos! {
    EPERM ENODATA ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EPIPE EDOM ERANGE
    EDEADLK ENAMETOOLONG ENOSYS ELOOP EPROTO EOVERFLOW EOPNOTSUPP ETIMEDOUT ECONNREFUSED ECONNRESET ENOBUFS EMSGSIZE EINPROGRESS ETOOMANYREFS
}

/// "EBUSY (Device or resource busy)"; the error's own text if it carries no errno.
#[must_use]
pub fn describe(error: &io::Error) -> String {
    match error.raw_os_error().and_then(name) {
        Some(symbol) => {
            let text = error.to_string();
            format!("{symbol} ({})", text.split(" (os error").next().unwrap_or(&text))
        }
        None => error.to_string(),
    }
}

/// The errno of an error, or the one that its kind stands for if it carries none; `None` if that is unknown.
#[must_use]
pub fn number(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or(match error.kind() {
        io::ErrorKind::ConnectionReset => Some(ECONNRESET),
        io::ErrorKind::Interrupted => Some(EINTR),
        io::ErrorKind::InvalidInput => Some(EINVAL),
        _ => None,
    })
}

/// The result of a system call that returns a negative number and sets `errno` on failure.
pub(crate) fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The descriptor that a system call returned; its error if that is negative.
///
/// # Safety
/// If it is not negative, it is a new descriptor that nobody else owns.
pub(crate) unsafe fn new_descriptor(result: impl Into<i64>) -> io::Result<OwnedFd> {
    let number = result.into();
    check(number)?;
    // SAFETY: the caller's promise; a descriptor's number fits an int.
    Ok(unsafe { OwnedFd::from_raw_fd(number as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_said_by_name() {
        assert_eq!(describe(&io::Error::from_raw_os_error(EBUSY)), "EBUSY (Device or resource busy)");
        assert_eq!(describe(&io::Error::other("plain")), "plain");
    }

    #[test]
    fn an_error_without_an_errno_has_that_of_its_kind() {
        let gone = io::Error::new(io::ErrorKind::ConnectionReset, "the broker is gone");
        assert_eq!(number(&gone), Some(ECONNRESET));
        assert_eq!(number(&io::Error::from_raw_os_error(EBUSY)), Some(EBUSY));
        assert_eq!(number(&io::Error::other("plain")), None);
    }
}
