//! Room: errno values by name, for errors that say what came back.

use std::io;

/// Declares the table of names.
macro_rules! names {
    ($($name:ident)*) => {
        /// The symbolic name of an errno, `None` for one that no binder path returns.
        #[must_use]
        pub fn name(errno: i32) -> Option<&'static str> {
            match errno {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EPIPE EDOM ERANGE
    EDEADLK ENAMETOOLONG ENOSYS ELOOP EPROTO EOVERFLOW EOPNOTSUPP ETIMEDOUT ECONNREFUSED ECONNRESET ENOBUFS EMSGSIZE
}

/// "EBUSY (Device or resource busy)", or the error's own text when it carries no errno.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_said_by_name() {
        assert_eq!(describe(&io::Error::from_raw_os_error(libc::EBUSY)), "EBUSY (Device or resource busy)");
        assert_eq!(describe(&io::Error::other("plain")), "plain");
    }
}
