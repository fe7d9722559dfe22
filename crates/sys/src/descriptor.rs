//! Room: descriptors of this process by number, as a command stream names them.
//! Not here: descriptors that somebody owns (`std::os::fd`).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// A new descriptor (closed on exec) of what `number` names at this moment.
///
/// # Errors
/// `EBADF`: it names nothing. `EMFILE`.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes integers; a number that names nothing is answered with an error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a non-negative result is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_number_is_duplicated_or_refused() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let copy = duplicate(file.as_raw_fd()).expect("open");
        assert_ne!(copy.as_raw_fd(), file.as_raw_fd());
        assert_eq!(duplicate(-1).expect_err("no descriptor").raw_os_error(), Some(libc::EBADF));
    }
}
