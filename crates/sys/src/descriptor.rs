//! Making descriptors: duplicates by number, inherited ones, files and pipes that never block, event counters, placeholders.
//! Not here: sockets (`seqpacket`), timers (`clock`), waiting for readiness (`epoll`).
//! Facts: `fcntl(2)` `F_DUPFD_CLOEXEC`, `open(2)` `O_NONBLOCK`, `eventfd(2)`, `pipe2(2)`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::errno::{check, new_descriptor};

/// A new descriptor (closed on exec) of what `number` names at this moment. Asks the kernel itself: where the C library's
/// functions are replaced (crate `preload`), a copy of a device would be one more device.
///
/// # Errors
/// `EBADF`: it names nothing. `EMFILE`.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes integers; a number that names nothing is answered with an error.
    let copy = unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_DUPFD_CLOEXEC, 0) };
    // SAFETY: the result of F_DUPFD_CLOEXEC.
    unsafe { new_descriptor(copy) }
}

/// Descriptors that programs which this process runs inherit at present.
static LENT: Mutex<usize> = Mutex::new(0);

/// Has programs that `run` runs, also in this process's place, inherit a descriptor, and with it its number.
pub fn lend<T>(fd: BorrowedFd<'_>, run: impl FnOnce() -> T) -> T {
    let count = |by: isize, flags: libc::c_int| {
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        *lent = lent.saturating_add_signed(by);
        // SAFETY: F_SETFD takes an integer. It cannot fail for an open descriptor.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flags) };
    };
    count(1, 0);
    let result = run();
    count(-1, libc::FD_CLOEXEC);
    result
}

/// The descriptor with this number that this process has inherited, from now on closed on exec.
///
/// # Errors
/// `EBADF`: it names nothing, a standard stream, or a descriptor that this program opened or adopted itself; or this
/// process lends one at present.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    let lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: F_GETFD takes an integer; a number that names nothing is answered with an error.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if number <= libc::STDERR_FILENO || flags != 0 || *lent > 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: takes integers.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open. This program opens everything with the flag and takes it away in `lend` only, which the lock keeps
    // out: so a descriptor without it was there before, and nothing in this process owns it. It has the flag now, so nobody
    // adopts it again.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether the open file of a descriptor is non-blocking.
///
/// # Errors
/// None for an open descriptor.
pub fn is_nonblocking(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: F_GETFL takes no argument.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    check(flags)?;
    Ok(flags & libc::O_NONBLOCK != 0)
}

/// Makes the open file of a descriptor wait, or not.
///
/// # Errors
/// None for an open descriptor.
pub fn set_nonblocking(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: F_SETFL takes an integer; it changes only this flag of those that a pipe has.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, if on { libc::O_NONBLOCK } else { 0 }) })
}

/// Opens a file to be read; a read that would wait comes back with `EAGAIN`.
///
/// # Errors
/// See `open(2)`.
pub fn open_nonblocking(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Makes a pipe, closed on exec; reads and writes that would wait fail with `EAGAIN`. Returns the reading end, then
/// the writing end.
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn nonblocking_pipe() -> io::Result<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel stores two ints into `ends`, which is live.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    // SAFETY: pipe2 succeeded: both are new descriptors.
    let [reader, writer] = ends.map(|end| unsafe { new_descriptor(end) });
    Ok((reader?.into(), writer?.into()))
}

/// Makes an event counter at 0, closed on exec. As a `File`, 8 bytes at a time, a write adds; a read waits
/// until the count is above 0 and resets it.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub fn event_counter() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes two integers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    // SAFETY: the result of eventfd.
    unsafe { new_descriptor(fd) }
}

/// Makes a descriptor that is never readable or writable, to stand for an open file that is elsewhere. `O_NONBLOCK` can
/// be set on it and read back. `flags`: those of `open(2)`, of which `O_CLOEXEC` and `O_NONBLOCK` count.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub fn placeholder(flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 takes an integer.
    let fd = unsafe { libc::epoll_create1(flags & libc::O_CLOEXEC) };
    // SAFETY: the result of epoll_create1.
    let fd = unsafe { new_descriptor(fd) }?;
    // SAFETY: F_SETFL takes an integer.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags & libc::O_NONBLOCK) })?;
    Ok(fd)
}

/// Makes a file that can be looked at and neither read nor written (access mode 3 of `open(2)`), closed on exec.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`; `ENOENT`: there is no procfs.
pub fn path_only() -> io::Result<OwnedFd> {
    // SAFETY: a name and an integer.
    let memory = unsafe { libc::memfd_create(c"path only".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the result of memfd_create.
    let memory = unsafe { new_descriptor(memory) }?;
    let path = crate::path::terminated(format!("/proc/self/fd/{}", memory.as_raw_fd()).as_ref())?;
    // SAFETY: a path and an integer.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_ACCMODE | libc::O_CLOEXEC) };
    // SAFETY: the result of open.
    unsafe { new_descriptor(fd) }
}

/// Lets a descriptor name what another one names; what it named before is closed in this process. Closed on exec.
///
/// # Errors
/// None for two different open descriptors.
pub fn replace(fd: BorrowedFd<'_>, with: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes three integers. The owner of `fd` still owns an open descriptor of that number.
    check(unsafe { libc::dup3(with.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_without_access_is_only_looked_at() {
        let mut file = File::from(path_only().expect("made"));
        for result in [file.read(&mut [0]), file.write(&[0])] {
            assert_eq!(result.expect_err("no access").raw_os_error(), Some(libc::EBADF));
        }
        assert_eq!(file.metadata().expect("open").len(), 0);
    }

    #[test]
    fn a_number_is_duplicated_or_refused() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let copy = duplicate(file.as_raw_fd()).expect("open");
        assert_ne!(copy.as_raw_fd(), file.as_raw_fd());
        assert_eq!(duplicate(-1).expect_err("no descriptor").raw_os_error(), Some(crate::errno::EBADF));
    }

    #[test]
    fn only_an_inherited_descriptor_is_adopted_and_once() {
        let file = File::open("/dev/null").expect("/dev/null");
        let refused = |number| adopt(number).expect_err("adopted").raw_os_error();
        for number in [-1, libc::STDOUT_FILENO, file.as_raw_fd()] {
            assert_eq!(refused(number), Some(libc::EBADF), "{number}");
        }
        assert_eq!(lend(file.as_fd(), || refused(file.as_raw_fd())), Some(libc::EBADF), "lent");
        // SAFETY: takes an integer. Without the flag, and nobody's: as in a program that this one runs.
        let number = unsafe { libc::dup(file.as_raw_fd()) };
        let adopted = adopt(number).expect("inherited");
        assert_eq!(adopted.as_raw_fd(), number);
        assert_eq!(refused(number), Some(libc::EBADF), "twice");
    }

    #[test]
    fn a_read_does_not_wait() {
        let (read, _write) = io::pipe().expect("a pipe");
        let mut again =
            open_nonblocking(Path::new(&format!("/proc/self/fd/{}", read.as_raw_fd()))).expect("open");
        let error = again.read(&mut [0]).expect_err("nothing there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_was_added_is_taken_at_once() {
        let mut counter = File::from(event_counter().expect("eventfd"));
        for _ in 0..2 {
            counter.write_all(&3u64.to_ne_bytes()).expect("add");
        }
        let mut bytes = [0; 8];
        counter.read_exact(&mut bytes).expect("take");
        assert_eq!(u64::from_ne_bytes(bytes), 6);
    }
}
