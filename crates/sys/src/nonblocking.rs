//! Room: opening a file so that reading it never waits.
//! Not here: waiting until there is something (`epoll`).
//! Facts: `open(2)`, `O_NONBLOCK`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file to be read; a read that would wait comes back with `EAGAIN`.
///
/// # Errors
/// As for any opening.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_read_does_not_wait() {
        let (read, _write) = io::pipe().expect("a pipe");
        let mut again = open(Path::new(&format!("/proc/self/fd/{}", read.as_raw_fd()))).expect("open");
        let error = again.read(&mut [0]).expect_err("nothing there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
