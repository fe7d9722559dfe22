//! Sockets that keep message boundaries and carry descriptors (`AF_UNIX`, `SOCK_SEQPACKET`).
//! Not here: what the messages mean (`embedded`).
//! Facts: `unix(7)`, `sendmsg(2)`, `recvmsg(2)`, `socketpair(2)`.

use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::errno::{check, new_descriptor};

/// Most descriptors in one message (`SCM_MAX_FD` of the kernel).
pub const MAX_DESCRIPTORS: usize = 253;

/// Whether a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it can be done.
    Forever,
    /// Not at all: `EAGAIN` instead.
    No,
}

impl Wait {
    fn flag(self) -> libc::c_int {
        if self == Self::No { libc::MSG_DONTWAIT } else { 0 }
    }
}

/// The one control message that is used here, as the kernel lays it out: its header, then the
/// descriptors (`CMSG_DATA` is `cmsghdr`'s size rounded up to a word, which it is already).
#[repr(C, align(8))]
struct Rights {
    header: libc::cmsghdr,
    descriptors: [RawFd; MAX_DESCRIPTORS],
}

impl Rights {
    const HEADER: usize = offset_of!(Self, descriptors);

    fn empty() -> Self {
        // SAFETY: integers only, for which all-zero bytes are a value.
        unsafe { zeroed() }
    }

    fn length_for(descriptors: usize) -> usize {
        Self::HEADER + descriptors * size_of::<RawFd>()
    }
}

/// Makes two connected sockets, closed on exec. As a `File` each one reads and writes whole messages.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOBUFS`.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0 as libc::c_int; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `pair` has room for the two descriptors that the call stores.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so both are new descriptors that nobody else owns.
    Ok(pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).into())
}

/// Sends one message, whole or not at all.
///
/// # Errors
/// `EPIPE`, `ECONNRESET`: the other end is gone. `EAGAIN`: no room, and not waiting. `EMSGSIZE`.
/// `EINVAL`: more than [`MAX_DESCRIPTORS`]. `ETOOMANYREFS`: this user has too many on their way.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    wait: Wait,
) -> io::Result<()> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut rights = Rights::empty();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is integers and pointers, for which all-zero bytes are a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let length = Rights::length_for(descriptors.len());
        rights.header.cmsg_level = libc::SOL_SOCKET;
        rights.header.cmsg_type = libc::SCM_RIGHTS;
        rights.header.cmsg_len = length as _;
        for (place, descriptor) in rights.descriptors.iter_mut().zip(descriptors) {
            *place = descriptor.as_raw_fd();
        }
        message.msg_control = (&raw mut rights).cast();
        message.msg_controllen = length as _;
    }
    retried(|| {
        // SAFETY: all that `message` points to is live and of the lengths it says; sendmsg only reads.
        unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, wait.flag() | libc::MSG_NOSIGNAL) }
    })
    .map(drop)
}

/// A message received by [`recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    /// Bytes of the message; 0: the other end is gone.
    pub bytes: usize,
    /// The message was longer than the room for it.
    pub cut: bool,
    /// More descriptors came than this process could take (`RLIMIT_NOFILE`); the rest is closed.
    pub descriptors_lost: bool,
}

/// Takes one message; its descriptors are appended, closed on exec.
///
/// # Errors
/// `EAGAIN`: none there, and not waiting. `ECONNRESET`: the other end went without reading all.
pub fn recv(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
    wait: Wait,
) -> io::Result<Got> {
    let mut rights = Rights::empty();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is integers and pointers, for which all-zero bytes are a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut rights).cast();
    message.msg_controllen = size_of::<Rights>() as _;
    let flags = wait.flag() | libc::MSG_CMSG_CLOEXEC;
    let received = retried(|| {
        // SAFETY: all that `message` points to is live, writable, and of the lengths it says.
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) }
    })?;
    #[allow(clippy::unnecessary_cast, reason = "another type in each C library")]
    let lengths = (message.msg_controllen as usize, rights.header.cmsg_len as usize);
    let kind = (rights.header.cmsg_level, rights.header.cmsg_type);
    if lengths.0 > Rights::HEADER && kind == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
        let count = lengths.1.saturating_sub(Rights::HEADER) / size_of::<RawFd>();
        descriptors.extend(rights.descriptors.iter().take(count).map(|fd| {
            // SAFETY: the kernel opened each of them in this process for this message; nobody else
            // owns them.
            unsafe { OwnedFd::from_raw_fd(*fd) }
        }));
    }
    Ok(Got {
        bytes: received as usize,
        cut: message.msg_flags & libc::MSG_TRUNC != 0,
        descriptors_lost: message.msg_flags & libc::MSG_CTRUNC != 0,
    })
}

/// A system call, repeated while a signal interrupts it.
fn retried(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<libc::ssize_t> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: socket takes integers only.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the result of socket.
    unsafe { new_descriptor(fd) }
}

/// The address of a path. Paths that do not fit `sun_path` with its NUL are `ENAMETOOLONG`.
fn address(path: &Path) -> io::Result<libc::sockaddr_un> {
    // SAFETY: a sockaddr_un is integers, for which all-zero bytes are a value.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok(address)
}

const ADDRESS_LEN: libc::socklen_t = size_of::<libc::sockaddr_un>() as libc::socklen_t;

/// A socket that listens at a path, which must not exist yet; its `accept` does not wait.
///
/// # Errors
/// `EADDRINUSE`: the path exists. `ENAMETOOLONG`: above 107 bytes. `EACCES`, `ENOENT`, `EMFILE`.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    let address = address(path)?;
    let socket = socket()?;
    // SAFETY: `address` is a live sockaddr_un of the length given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_LEN) })?;
    // SAFETY: listen takes integers only.
    check(unsafe { libc::listen(socket.as_raw_fd(), 1024) })?;
    // SAFETY: F_SETFL takes an integer.
    check(unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok(socket)
}

/// The next of those who want to connect.
///
/// # Errors
/// `EAGAIN`: nobody. `EMFILE`, `ENFILE`: no room; they go on wanting.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
    let fd = retried(|| {
        // SAFETY: no address is asked for, which the null pointers say.
        unsafe { libc::accept4(listener.as_raw_fd(), address, length, libc::SOCK_CLOEXEC) as libc::ssize_t }
    })?;
    // SAFETY: the result of accept4.
    unsafe { new_descriptor(fd as i64) }
}

/// Connects to who listens at a path. Waits for at most `limit` while those who connected before are not accepted.
///
/// # Errors
/// `ENOENT`: no such path. `ECONNREFUSED`: nobody listens there any more. `ETIMEDOUT`: the limit has passed. `EACCES`,
/// `ENAMETOOLONG`, `EMFILE`; `EPROTOTYPE`: a socket of another kind.
pub fn connect(path: &Path, limit: Duration) -> io::Result<OwnedFd> {
    let address = address(path)?;
    let socket = socket()?;
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        limit_sending(&socket, left)?;
        // SAFETY: `address` is a live sockaddr_un of the length given.
        let result =
            check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_LEN) });
        match result {
            // Time is up, or a signal came: the time that is left counts, not a new limit for each signal.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {}
            other => {
                other?;
                limit_sending(&socket, Duration::ZERO)?;
                return Ok(socket);
            }
        }
    }
}

/// Limits the time for which a `connect` or `sendmsg` waits (`SO_SNDTIMEO`); zero: not at all.
fn limit_sending(socket: &OwnedFd, limit: Duration) -> io::Result<()> {
    // Rounded up: nothing at all would be no limit.
    let us = limit.subsec_nanos().div_ceil(1000).min(999_999);
    #[allow(clippy::cast_possible_wrap, reason = "a limit is some seconds")]
    let time = libc::timeval { tv_sec: limit.as_secs() as _, tv_usec: us as _ };
    let (level, option, length) = (libc::SOL_SOCKET, libc::SO_SNDTIMEO, size_of::<libc::timeval>());
    // SAFETY: `time` is a live timeval of the length given, which setsockopt reads.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const time).cast(),
            length as libc::socklen_t,
        )
    })
}

/// Who is at the other end, as the kernel noted it when they connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process; 0 if this process cannot see it.
    pub pid: u32,
    /// Its effective uid.
    pub euid: u32,
}

/// Stores a socket's option into `value`; returns the number of bytes stored.
fn option(socket: BorrowedFd<'_>, option: libc::c_int, value: &mut [u8]) -> io::Result<usize> {
    let (fd, mut length) = (socket.as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: `value` has room for `length` bytes, and both are live.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, option, value.as_mut_ptr().cast(), &raw mut length)
    })?;
    Ok(length as usize)
}

/// `SO_PEERCRED`.
///
/// # Errors
/// None for a connected socket.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    // `struct ucred`: pid, uid, gid.
    let mut found = [0; 12];
    option(socket, libc::SO_PEERCRED, &mut found)?;
    let word = |number: usize| u32::from_ne_bytes(found.as_chunks::<4>().0[number]);
    Ok(Peer { pid: word(0), euid: word(1) })
}

/// `SO_PEERSEC`: the other end's security context, without the NUL that some modules add; `None`
/// where no security module has one.
#[must_use]
pub fn peer_security(socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut text = vec![0u8; 4096];
    let length = option(socket, libc::SO_PEERSEC, &mut text).ok()?;
    text.truncate(length);
    while text.last() == Some(&0) {
        text.pop();
    }
    (!text.is_empty()).then_some(text)
}

/// The readiness reported by [`poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// A message or the end of the stream is there.
    pub readable: bool,
    /// The other end is gone.
    pub hung_up: bool,
}

/// Waits until there is a message or the end, for at most `timeout_ms` (0: looks only), however many signals come.
///
/// # Errors
/// `ENOMEM`.
pub fn poll(socket: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<Seen> {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let deadline = Instant::now() + Duration::from_millis(timeout_ms.max(0) as u64);
    let mut left_ms = timeout_ms;
    loop {
        // SAFETY: one live pollfd, as the count says.
        let result = unsafe { libc::poll(&raw mut asked, 1, left_ms) };
        match check(result) {
            Ok(()) => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Err(_) if timeout_ms < 0 => {}
            Err(_) => {
                let left = deadline.saturating_duration_since(Instant::now());
                // Rounded up: not before the deadline.
                left_ms = left.as_micros().div_ceil(1000) as i32;
            }
        }
    }
    let ends = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    Ok(Seen { readable: asked.revents & libc::POLLIN != 0, hung_up: asked.revents & ends != 0 })
}

#[cfg(test)]
#[path = "seqpacket/tests.rs"]
mod tests;
