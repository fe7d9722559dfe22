//! Room: two connected sockets that keep message boundaries (`AF_UNIX`, `SOCK_SEQPACKET`).
//! Not here: reading and writing; a descriptor turned into a `File` does both.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Makes the pair, closed on exec.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOBUFS`.
pub fn seqpacket() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0 as libc::c_int; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `pair` has room for the two descriptors that the call stores.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so both are new descriptors that nobody else owns.
    Ok(pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn a_message_arrives_whole_and_the_end_is_seen() {
        let (here, there) = seqpacket().expect("pair");
        let (mut here, mut there) = (File::from(here), File::from(there));
        here.write_all(b"one").expect("write");
        here.write_all(b"two").expect("write");
        let mut bytes = [0; 8];
        assert_eq!(there.read(&mut bytes).expect("read"), 3);
        assert_eq!(&bytes[..3], b"one");
        drop(here);
        assert_eq!(there.read(&mut bytes).expect("read"), 3);
        assert_eq!(there.read(&mut bytes).expect("end"), 0);
    }
}
