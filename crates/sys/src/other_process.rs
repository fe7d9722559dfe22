//! Another process: its memory, its descriptors, whether it lives; signals to it.
//! Not here: this process's memory (`own_memory`), children (`child`).
//! Facts: `pidfd_open(2)` (Linux 5.3), `pidfd_send_signal(2)` (5.1), `pidfd_getfd(2)` (5.6), `process_vm_readv(2)`; the
//! last two need the right to trace the process (`ptrace(2)`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use crate::errno::{EBADF, EFAULT, EPERM, new_descriptor};

/// A process that was alive when this value was made.
#[derive(Debug)]
pub struct OtherProcess {
    pid: u32,
    pidfd: OwnedFd,
}

impl AsFd for OtherProcess {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl OtherProcess {
    /// The process with this number now.
    ///
    /// # Errors
    /// `ESRCH`: there is none. `EMFILE`; `ENOSYS`: a kernel before 5.3.
    pub fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: pidfd_open takes integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: the result of pidfd_open.
        Ok(Self { pid, pidfd: unsafe { new_descriptor(fd) }? })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, live to be read and written.
        unsafe { libc::poll(&raw mut entry, 1, 0) == 0 }
    }

    /// Sends it a signal; never to another process that has its number by now.
    ///
    /// # Errors
    /// `ESRCH`: it ended. `EPERM`. `EINVAL`: no such signal.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        // SAFETY: pidfd_send_signal takes integers and, for the usual information, a null pointer.
        let sent = unsafe {
            let (fd, none) = (self.pidfd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
            libc::syscall(libc::SYS_pidfd_send_signal, fd, number, none, 0)
        };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// A copy of its descriptor `number`, closed on exec: the same open file.
    ///
    /// # Errors
    /// `EBADF`: it has none. `EPERM`: this process may not trace it. `ESRCH`: it ended. `EMFILE`.
    pub fn descriptor(&self, number: RawFd) -> io::Result<OwnedFd> {
        if number < 0 {
            return Err(io::Error::from_raw_os_error(EBADF));
        }
        // SAFETY: pidfd_getfd takes integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, self.pidfd.as_raw_fd(), number, 0) };
        // SAFETY: the result of pidfd_getfd.
        unsafe { new_descriptor(fd) }
    }

    /// Copies from its memory until the first byte that cannot be read; returns how many bytes.
    ///
    /// # Errors
    /// `EFAULT`: not even one. `EPERM`: this process may not trace it. `ESRCH`: it ended.
    pub fn read_some(&self, address: u64, bytes: &mut [u8]) -> io::Result<usize> {
        read_some(self.pid, address, bytes)
    }

    /// Copies `bytes.len()` bytes from its memory.
    ///
    /// # Errors
    /// `EFAULT`: not all of them can be read. Else as [`Self::read_some`].
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.read_some(address.wrapping_add(done as u64), &mut bytes[done..])? {
                0 => return Err(io::Error::from_raw_os_error(EFAULT)),
                more => done += more,
            }
        }
        Ok(())
    }

    /// Copies bytes into its memory, where the process itself may write.
    ///
    /// # Errors
    /// `EFAULT`: not all of it can be written; a part may be. Else as [`Self::read_some`].
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let local = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
            let remote = far(address.wrapping_add(done as u64), rest.len());
            // SAFETY: `local` is live and only read by this call; `remote` is checked by the kernel, and is the other
            // process's memory, of which nothing is behind a reference here.
            let count = unsafe {
                libc::process_vm_writev(self.pid as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0)
            };
            match usize::try_from(count).map_err(|_| io::Error::last_os_error()) {
                Ok(0) => return Err(io::Error::from_raw_os_error(EFAULT)),
                Ok(more) => done += more,
                Err(error) if is_refused(&error) => {
                    return self.memory()?.write_all_at(bytes, address).map_err(fault);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn memory(&self) -> io::Result<File> {
        File::options().write(true).open(format!("/proc/{}/mem", self.pid))
    }
}

/// Signals by their names without `SIG`.
const SIGNALS: [(&str, i32); 11] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ABRT", libc::SIGABRT),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("TERM", libc::SIGTERM),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TRAP", libc::SIGTRAP),
];

/// The number of a signal that is named with or without `SIG`, or numbered from 1 to 64.
#[must_use]
pub fn signal_number(word: &str) -> Option<i32> {
    let name = word.strip_prefix("SIG").unwrap_or(word);
    let named = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    named.or_else(|| word.parse().ok().filter(|number| (1..=64).contains(number)))
}

/// Whether a thread with this number exists.
#[must_use]
pub fn exists(id: i32) -> bool {
    // SAFETY: tkill takes integers; signal 0 is not sent, only its target looked for.
    id > 0 && unsafe { libc::syscall(libc::SYS_tkill, id, 0) } == 0
}

/// [`OtherProcess::read_some`] of the process that a process or thread id stands for now.
///
/// # Errors
/// See [`OtherProcess::read_some`].
pub fn read_some(id: u32, address: u64, bytes: &mut [u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = far(address, bytes.len());
    // SAFETY: `local` is a live exclusive buffer of its length; `remote` is checked by the kernel.
    let count =
        unsafe { libc::process_vm_readv(id as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error());
    match count {
        Err(error) if is_refused(&error) => {
            File::open(format!("/proc/{id}/mem"))?.read_at(bytes, address).map_err(fault)
        }
        other => other,
    }
}

fn far(address: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: len }
}

/// Whether a sandbox forbids the call, or the kernel has none.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EPERM | libc::ENOSYS))
}

fn fault(_: io::Error) -> io::Error {
    io::Error::from_raw_os_error(EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn memory_and_descriptors_of_a_child_are_reached_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let other = OtherProcess::open(child.id()).expect("it lives");
        let pipe = other.descriptor(0).expect("its input");
        let target = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).expect("open");
        assert_eq!(target(pipe.as_raw_fd()), target(child.stdin.as_ref().expect("piped").as_raw_fd()));
        for number in [-1, 999] {
            assert_eq!(other.descriptor(number).expect_err("none").raw_os_error(), Some(EBADF));
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).expect("maps");
        let stack = maps.lines().find(|line| line.ends_with("[stack]")).expect("a stack");
        let (start, end) =
            stack.split_once(' ').and_then(|(range, _)| range.split_once('-')).expect("a range");
        let [start, end] = [start, end].map(|word| u64::from_str_radix(word, 16).expect("an address"));
        let mut bytes = [0; 64];
        other.read(end - 64, &mut bytes).expect("mapped");
        other.write(start, b"binder").expect("writable");
        other.read(start, &mut bytes[..6]).expect("mapped");
        assert_eq!(&bytes[..6], b"binder");
        let wrong =
            |result: io::Result<()>| assert_eq!(result.expect_err("wrong").raw_os_error(), Some(EFAULT));
        wrong(other.read(0, &mut bytes));
        wrong(other.write(0, &bytes));
        wrong(other.read(u64::MAX - 8, &mut bytes));
        assert!(other.is_alive());
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert!(!other.is_alive() && other.descriptor(0).is_err() && other.read(start, &mut bytes).is_err());
    }
}
