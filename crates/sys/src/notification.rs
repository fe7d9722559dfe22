//! System calls of supervised programs that wait for an answer of this process.
//! Not here: which calls ask (`seccomp`), the answers (crate `supervise`).
//! Facts: `seccomp_unotify(2)`; `SECCOMP_ADDFD_FLAG_SEND` is Linux 5.14.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::errno::{EINPROGRESS, EINVAL, ENOENT, check};

const fn request(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'!' as u32) << 8 | number
}

const RECEIVE: u32 = request(3, 0, size_of::<libc::seccomp_notif>());
const SEND: u32 = request(3, 1, size_of::<libc::seccomp_notif_resp>());
const IS_VALID: u32 = request(1, 2, size_of::<u64>());
const ADD_FD: u32 = request(1, 3, size_of::<libc::seccomp_notif_addfd>());
const SET_FLAGS: u32 = request(1, 4, size_of::<u64>());
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` (Linux 6.6).
const SYNC_WAKE_UP: u64 = 1;

/// A system call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its number, valid until it is answered or a signal takes its thread out of it.
    pub id: u64,
    /// The kernel thread id of its thread.
    pub thread: i32,
    /// The system call.
    pub call: libc::c_long,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Where a descriptor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number that it takes, in place of what has it; `None` for the lowest free one.
    pub number: Option<RawFd>,
    /// Closed on exec.
    pub close_on_exec: bool,
}

/// The receiving end for the calls of all programs under one filter.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl AsFd for Listener {
    /// Readable when a call waits to be received; hung up when no program is under the filter any more.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        let listener = Self(fd);
        // A kernel without it only takes longer to switch.
        let _ = listener.set_flags(SYNC_WAKE_UP);
        listener
    }

    fn set_flags(&self, flags: u64) -> io::Result<()> {
        // SAFETY: takes an integer.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), SET_FLAGS as _, flags) })
    }

    /// Whether the kernel can install a descriptor and answer with it in one step. Told by its version: without a
    /// listener the request cannot be tried.
    pub(crate) fn knows_atomic_install() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse().unwrap_or(0));
        // An unreadable one is left to the first call that needs it.
        numbers
            .next()
            .filter(|major| *major > 0)
            .is_none_or(|major: u32| (major, numbers.next().unwrap_or(0)) >= (5, 14))
    }

    /// Receives the next call; waits for one.
    ///
    /// # Errors
    /// `ENOENT`: its thread has left it meanwhile. `EINTR`.
    pub fn receive(&self) -> io::Result<Notification> {
        // SAFETY: integers only, for which all-zero bytes are a value; the kernel asks for zeros.
        let mut found: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: `found` is live to be written, and of the size that the request says.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &raw mut found) })?;
        let libc::seccomp_notif { id, pid, data, .. } = found;
        Ok(Notification { id, thread: pid as i32, call: data.nr.into(), arguments: data.args })
    }

    /// Whether a call's thread still waits in it.
    #[must_use]
    pub fn is_valid(&self, id: u64) -> bool {
        // SAFETY: `id` is live to be read.
        unsafe { libc::ioctl(self.0.as_raw_fd(), IS_VALID as _, &raw const id) == 0 }
    }

    /// Answers a call with a result, or an errno.
    ///
    /// # Errors
    /// `ENOENT`: its thread has left it.
    pub fn answer(&self, id: u64, result: Result<i64, i32>) -> io::Result<()> {
        let (val, error) = match result {
            Ok(value) => (value, 0),
            Err(errno) => (0, -errno),
        };
        self.send(libc::seccomp_notif_resp { id, val, error, flags: 0 })
    }

    /// Lets the kernel carry a call out.
    ///
    /// # Errors
    /// `ENOENT`: its thread has left it.
    pub fn go_on(&self, id: u64) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.send(libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
    }

    fn send(&self, answer: libc::seccomp_notif_resp) -> io::Result<()> {
        // SAFETY: `answer` is live to be read, and of the size that the request says.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw const answer) })
    }

    /// Gives a waiting call's process a copy of a descriptor; returns its number there.
    ///
    /// # Errors
    /// `ENOENT`: the thread has left its call. `EMFILE`, `EBADF`: the process may not have that number.
    pub fn install(&self, id: u64, fd: BorrowedFd<'_>, place: Place) -> io::Result<RawFd> {
        self.add(id, fd, place, 0)
    }

    /// [`Self::install`], and answers the call with the number, in one step.
    ///
    /// # Errors
    /// See [`Self::install`].
    pub fn answer_with(&self, id: u64, fd: BorrowedFd<'_>, place: Place) -> io::Result<RawFd> {
        self.add(id, fd, place, libc::SECCOMP_ADDFD_FLAG_SEND as u32)
    }

    fn add(&self, id: u64, fd: BorrowedFd<'_>, place: Place, flags: u32) -> io::Result<RawFd> {
        let Place { number, close_on_exec } = place;
        let set = if number.is_some() { libc::SECCOMP_ADDFD_FLAG_SETFD as u32 } else { 0 };
        let what = libc::seccomp_notif_addfd {
            id,
            flags: flags | set,
            srcfd: fd.as_raw_fd() as u32,
            newfd: number.unwrap_or(0) as u32,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        loop {
            // SAFETY: `what` is live to be read, and of the size that the request says; `fd` is open.
            let number = unsafe { libc::ioctl(self.0.as_raw_fd(), ADD_FD as _, &raw const what) };
            match check(number) {
                Ok(()) => return Ok(number),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The call is being taken back.
                Err(error)
                    if matches!(error.raw_os_error(), Some(EINPROGRESS | EINVAL)) && !self.is_valid(id) =>
                {
                    return Err(io::Error::from_raw_os_error(ENOENT));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::{self, Asks};
    use needs::{Need, need};
    use std::io::Read;
    use std::process::{Command, Stdio};

    /// `getpriority` is what `nice` asks the kernel first, and answers 20 less the nice value.
    #[test]
    fn calls_under_a_filter_are_answered_here_and_others_go_on() {
        need!(seccomp::obstacle().map_or(Ok(()), |why| Err(Need::Supervision.lacks(why))));
        let mut command = Command::new("nice");
        command.stdout(Stdio::piped());
        let rules = [(libc::SYS_getpriority, Asks::Always)];
        let (mut child, listener) = seccomp::spawn(command, &rules).expect("started");
        let asked = listener.receive().expect("it asks");
        assert_eq!((asked.call, asked.thread as u32), (libc::SYS_getpriority, child.id()));
        assert!(listener.is_valid(asked.id));
        listener.answer(asked.id, Ok(13)).expect("it waits");
        let mut text = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut text).expect("its output");
        assert_eq!(text, "7\n");
        assert!(child.wait().expect("ours").success());
        assert_eq!(listener.answer(asked.id, Ok(0)).expect_err("it is over").raw_os_error(), Some(ENOENT));
        assert!(crate::seqpacket::poll(listener.as_fd(), 1000).expect("poll").hung_up);
    }

    #[test]
    fn a_call_that_an_argument_lets_pass_does_not_ask() {
        need!(seccomp::obstacle().map_or(Ok(()), |why| Err(Need::Supervision.lacks(why))));
        let rules = [(libc::SYS_getpriority, Asks::Masked { argument: 0, mask: 0xff, value: 1 })];
        let mut command = Command::new("nice");
        command.stdout(Stdio::null());
        let (mut child, _listener) = seccomp::spawn(command, &rules).expect("started");
        assert!(child.wait().expect("ours").success());
    }
}
