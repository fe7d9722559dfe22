//! Generic netlink: hearing what a part of the kernel tells a group of listeners.
//! Not here: the meaning of a message's attributes (who listens).
//! Facts: `netlink(7)`; `linux/netlink.h`, `linux/genetlink.h`: a message is a header of 16 bytes that begins with its length and
//! type, a generic header of 4, and attributes: length and type of 16 bits each, then the value, padded to 4 bytes. `write` and
//! `read` on such a socket send to and receive from the kernel.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::errno::{check, new_descriptor};

/// Bytes before the attributes of a message.
const HEADERS: usize = 20;
/// Bytes of a read: more than the kernel puts in one message of a group.
const ROOM: usize = 32 << 10;

/// A listener of a group.
#[derive(Debug)]
pub struct Listener {
    socket: File,
    family: u16,
}

impl Listener {
    /// Joins a group of a family.
    ///
    /// # Errors
    /// `ENOENT`: the kernel has no such family or group. `EAFNOSUPPORT`, `EPROTONOSUPPORT`: it has no netlink.
    pub fn join(family: &str, group: &str) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes integers only.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
        // SAFETY: the result of socket.
        let mut socket = File::from(unsafe { new_descriptor(fd) }?);
        socket.write_all(&request(family))?;
        let mut answer = vec![0; ROOM];
        let length = socket.read(&mut answer)?;
        let answer = answer.get(..length).unwrap_or_default();
        let (family, group) = found(answer, group)?;
        let length = size_of::<u32>() as libc::socklen_t;
        let value = (&raw const group).cast();
        // SAFETY: `value` points to an integer of `length` bytes that outlives the call.
        check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_ADD_MEMBERSHIP,
                value,
                length,
            )
        })?;
        crate::descriptor::set_nonblocking(socket.as_fd(), true)?;
        Ok(Self { socket, family })
    }

    /// The next message of the group: its command and its attributes; `None` without one.
    ///
    /// # Errors
    /// `ENOBUFS`: messages were lost since the last one.
    pub fn next(&self) -> io::Result<Option<(u8, Vec<u8>)>> {
        let mut message = vec![0; ROOM];
        loop {
            match (&self.socket).read(&mut message) {
                Ok(length) => {
                    let message = message.get(..length).unwrap_or_default();
                    if number(message, 4) == Some(self.family)
                        && let Some(command) = message.get(16)
                    {
                        return Ok(Some((*command, message.get(HEADERS..).unwrap_or_default().to_vec())));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Attributes in bytes, each with its type and value, as far as they are whole.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(number(bytes, 0)?), number(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two upper bits are marks.
        Some((kind & 0x3fff, value))
    })
}

/// Asks for a family by its name.
fn request(family: &str) -> Vec<u8> {
    let name = [family.as_bytes(), &[0]].concat();
    let mut attribute = Vec::new();
    attribute.extend(u16::try_from(4 + name.len()).unwrap_or(u16::MAX).to_ne_bytes());
    attribute.extend((libc::CTRL_ATTR_FAMILY_NAME as u16).to_ne_bytes());
    attribute.extend(&name);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    let mut message = Vec::new();
    message.extend(u32::try_from(HEADERS + attribute.len()).unwrap_or(u32::MAX).to_ne_bytes());
    message.extend((libc::GENL_ID_CTRL as u16).to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence number and port.
    message.extend([0; 8]);
    message.extend([libc::CTRL_CMD_GETFAMILY as u8, 1, 0, 0]);
    message.extend(attribute);
    message
}

/// The numbers of a family and a group of it, from the answer to [`request`].
fn found(answer: &[u8], group: &str) -> io::Result<(u16, u32)> {
    let missing = || io::Error::from_raw_os_error(libc::ENOENT);
    if number(answer, 4) == Some(libc::NLMSG_ERROR as u16) {
        let errno =
            answer.get(16..).and_then(<[u8]>::first_chunk).map_or(0, |errno| i32::from_ne_bytes(*errno));
        return Err(io::Error::from_raw_os_error(-errno));
    }
    let all = || attributes(answer.get(HEADERS..).unwrap_or_default());
    let value = |kind: i32| all().find(|(found, _)| i32::from(*found) == kind).map(|(_, value)| value);
    let family = value(libc::CTRL_ATTR_FAMILY_ID).and_then(|value| number(value, 0)).ok_or_else(missing)?;
    let groups = value(libc::CTRL_ATTR_MCAST_GROUPS).unwrap_or_default();
    let id = attributes(groups).find_map(|(_, one)| {
        let part =
            |kind: i32| attributes(one).find(|(found, _)| i32::from(*found) == kind).map(|(_, part)| part);
        let name = part(libc::CTRL_ATTR_MCAST_GRP_NAME)?;
        (name.strip_suffix(&[0]) == Some(group.as_bytes())).then_some(())?;
        Some(u32::from_ne_bytes(*part(libc::CTRL_ATTR_MCAST_GRP_ID)?.first_chunk()?))
    });
    Ok((family, id.ok_or_else(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_the_kernel_is_found_and_another_is_not() {
        let error = match Listener::join("no-such-family", "x") {
            Ok(_) => panic!("joined"),
            Err(error) => error,
        };
        // A machine may have no netlink at all.
        let without = [libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT, libc::EPERM, libc::EACCES];
        match error.raw_os_error() {
            Some(libc::ENOENT) => {
                let listener = Listener::join("nlctrl", "notify").expect("the family of families");
                assert!(listener.next().is_ok());
                let other = Listener::join("nlctrl", "no-such-group").map(|_| ());
                assert_eq!(other.map_err(|error| error.raw_os_error()), Err(Some(libc::ENOENT)));
            }
            errno => assert!(errno.is_some_and(|errno| without.contains(&errno)), "{error}"),
        }
    }

    #[test]
    fn attributes_that_are_cut_end_the_list() {
        let bytes = [6, 0, 1, 0, 7, 8, 0, 0, 4, 0, 2, 0x80, 9, 0, 3, 0, 1];
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(1, &[7, 8][..]), (2, &[][..])]);
        assert_eq!(attributes(&[0, 0, 1, 0, 1]).count(), 0, "a length of 0 is none");
    }
}
