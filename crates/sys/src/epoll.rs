//! Waiting for any of many descriptors.
//! Not here: what their readiness means (`embedded::broker`).
//! Facts: `epoll(7)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::errno::{check, new_descriptor};

/// A set of descriptors, each with a number of the caller's choice.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes an integer.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the result of epoll_create1.
        unsafe { new_descriptor(fd) }.map(Self)
    }

    /// Adds one, to be told when it can be read or its other end is gone. It leaves the set when it
    /// is closed.
    ///
    /// # Errors
    /// `EEXIST`: it is in the set. `ENOMEM`, `ENOSPC`; `EPERM`: nothing that can be waited for.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        self.add_as(fd, number, libc::EPOLLIN)
    }

    fn add_as(&self, fd: BorrowedFd<'_>, number: u64, events: libc::c_int) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        // SAFETY: `event` is live; the call only reads it.
        check(unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
        })
    }

    /// [`Self::add`], to be told once each time when something new can be read, not as long as it can be.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub fn add_for_news(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        self.add_as(fd, number, libc::EPOLLIN | libc::EPOLLET)
    }

    /// [`Self::add`], for the news alone that its other end is gone.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub fn add_for_end(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        self.add_as(fd, number, 0)
    }

    /// Takes one out of the set.
    ///
    /// # Errors
    /// `ENOENT`: it is not in the set.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: EPOLL_CTL_DEL reads no event.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), none) })
    }

    /// Waits for at most `timeout_ms` (< 0: for ever) and gives the numbers of those that are ready
    /// in place of what `ready` held.
    ///
    /// # Errors
    /// `EINTR`: a signal came.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout_ms: i32) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        ready.clear();
        let room = events.len() as libc::c_int;
        // SAFETY: `events` has room for as many as the call is told.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        ready.extend(events.iter().take(count).map(|event| event.u64));
        Ok(())
    }
}

/// Takes a descriptor out of a set, both given by their numbers.
///
/// # Errors
/// `EBADF`, `EINVAL`: no set has this number. `ENOENT`: the descriptor is not in the set.
pub fn take_out(set: RawFd, fd: RawFd) -> io::Result<()> {
    // SAFETY: EPOLL_CTL_DEL reads no event; numbers that name something else are answered with an error.
    check(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::time::Duration;

    #[test]
    fn those_that_are_ready_are_named() {
        let epoll = Epoll::new().expect("epoll");
        let (here, there) = crate::seqpacket::pair().expect("pair");
        epoll.add(here.as_fd(), 7).expect("added");
        epoll.add(there.as_fd(), u64::MAX).expect("added");
        let mut ready = vec![1];
        epoll.wait(&mut ready, 0).expect("nothing");
        assert_eq!(ready, []);
        crate::seqpacket::send(here.as_fd(), b"x", &[], crate::seqpacket::Wait::No).expect("sent");
        epoll.wait(&mut ready, -1).expect("one");
        assert_eq!(ready, [u64::MAX]);
        drop(there);
        // A child of another test that has not begun its program yet has a copy.
        let has_ended = || epoll.wait(&mut ready, -1).is_ok() && ready == [7];
        assert!(crate::patience::until(Duration::from_secs(20), has_ended));
        epoll.remove(here.as_fd()).expect("in the set");
        epoll.wait(&mut ready, 0).expect("nothing");
        assert_eq!(ready, []);
        assert!(epoll.remove(here.as_fd()).is_err());
    }
}
