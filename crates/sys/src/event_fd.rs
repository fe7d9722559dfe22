//! Room: event counters (`eventfd(2)`).
//! Not here: adding and taking; a descriptor turned into a `File` does both, 8 bytes at a time.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Makes a counter at 0, closed on exec. Reading it waits until it is more, and sets it to 0.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub fn counter() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes two integers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn what_was_added_is_taken_at_once() {
        let mut counter = File::from(counter().expect("eventfd"));
        for _ in 0..2 {
            counter.write_all(&3u64.to_ne_bytes()).expect("add");
        }
        let mut bytes = [0; 8];
        counter.read_exact(&mut bytes).expect("take");
        assert_eq!(u64::from_ne_bytes(bytes), 6);
    }
}
