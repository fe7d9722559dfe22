//! An open binder device and the ioctls it understands, each one system call.
//! Not here: retries and their rules (`driver`), the streams inside `WRITE_READ` (`abi`).
//! Facts: `linux/android/binder.h`; contract sections 1 and 2.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use abi::codes::ioctl;
use abi::layout::{Version, WriteRead};
use zerocopy::{FromBytes, IntoBytes};

use crate::errno::check;
use crate::mapping::{Mapping, memory_file};

/// One open file description of a binder device: one *process* in the driver's sense.
#[derive(Debug)]
pub struct BinderFd {
    file: File,
}

impl AsFd for BinderFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<OwnedFd> for BinderFd {
    /// A descriptor that another process opened and handed over.
    fn from(fd: OwnedFd) -> Self {
        Self { file: fd.into() }
    }
}

impl BinderFd {
    /// `open(path, O_RDWR | O_CLOEXEC)`, optionally `O_NONBLOCK`.
    ///
    /// # Errors
    /// See `open(2)`: `ENOENT`, `EACCES`, `ENXIO` (no driver behind the node), ...
    pub fn open(path: &Path, nonblocking: bool) -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | if nonblocking { libc::O_NONBLOCK } else { 0 };
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        Ok(Self { file })
    }

    /// `BINDER_WRITE_READ` as its structure says.
    fn call(&self, argument: &mut WriteRead) -> io::Result<()> {
        let argument: *mut WriteRead = argument;
        // SAFETY: `argument` is valid for reads and writes of its size, which is the request's. The callers make sure
        // that the read buffer that it names is their own, and the driver only reads the write buffer.
        check(unsafe { libc::ioctl(self.file.as_raw_fd(), ioctl::WRITE_READ as _, argument) })
    }

    /// `BINDER_WRITE_READ`, once. The slices give the room; `consumed` counts are in and out
    /// (contract WR-01), and are updated also when the call fails (WR-02).
    ///
    /// # Errors
    /// `EINTR` (WR-06), `EAGAIN` (WR-04), `EINVAL`/`EFAULT` for bad commands (WR-11), `ENOMEM`.
    pub fn write_read(
        &self,
        write: &[u8],
        write_consumed: &mut usize,
        read: &mut [u8],
        read_consumed: &mut usize,
    ) -> io::Result<()> {
        let mut argument = WriteRead {
            write_size: write.len() as u64,
            write_consumed: *write_consumed as u64,
            write_buffer: write.as_ptr() as u64,
            read_size: read.len() as u64,
            read_consumed: *read_consumed as u64,
            read_buffer: read.as_mut_ptr() as u64,
        };
        // The driver reads `write` and stores into `read` within their sizes; both outlive the call.
        let result = self.call(&mut argument);
        *write_consumed = (argument.write_consumed as usize).min(write.len());
        *read_consumed = (argument.read_consumed as usize).min(read.len());
        result
    }

    /// `BINDER_WRITE_READ` with commands at any address, for tests of the driver's own checks. The
    /// driver only reads there; it stores nowhere but into `read`, whose address and size replace
    /// those in `argument`.
    ///
    /// # Errors
    /// Whatever the driver answers. `EINVAL` without a call: `read_consumed` is beyond `read`.
    pub fn write_read_from(&self, argument: &mut WriteRead, read: &mut [u8]) -> io::Result<()> {
        if argument.read_consumed > read.len() as u64 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        argument.read_buffer = read.as_mut_ptr() as u64;
        argument.read_size = read.len() as u64;
        self.call(argument)
    }

    /// `BINDER_VERSION`.
    ///
    /// # Errors
    /// `ENOTTY`/`EINVAL` where the file is no binder device.
    pub fn version(&self) -> io::Result<i32> {
        Ok(self.request(ioctl::VERSION, Version::default())?.protocol_version)
    }

    /// An ioctl of binder's other than `WRITE_READ`; returns its argument as the driver left it.
    ///
    /// # Errors
    /// Those of [`Self::raw`].
    pub fn request<T: FromBytes + IntoBytes>(&self, request: u32, mut argument: T) -> io::Result<T> {
        self.raw(request, Some(argument.as_mut_bytes()))?;
        Ok(argument)
    }

    /// An ioctl with an arbitrary argument word, for tests of the driver's own checks. The word is
    /// an address to the driver only; `None` is a null pointer.
    ///
    /// # Errors
    /// Whatever the driver answers. `InvalidInput` without a call: a request that is not binder's,
    /// an argument shorter than the request says, or a `WRITE_READ` with one, which names a further
    /// buffer for the driver to fill.
    pub fn raw(&self, request: u32, argument: Option<&mut [u8]>) -> io::Result<()> {
        let size = declared_size(request);
        if !is_binders(request) || size == 0 || request == ioctl::WRITE_READ && argument.is_some() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let pointer = match argument {
            Some(bytes) if bytes.len() >= size => bytes.as_mut_ptr(),
            Some(_) => return Err(io::ErrorKind::InvalidInput.into()),
            None => std::ptr::null_mut(),
        };
        // SAFETY: for requests of its own type a driver touches the `size` bytes at `pointer` that the
        // request declares and nothing else (`WRITE_READ`, which does, is refused above): a live
        // buffer of at least that size, or null, which is answered with an error (contract IOC-02).
        check(unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, pointer) })
    }

    /// An ioctl whose argument ends where the memory that this process may touch ends, or cannot be written, for tests of how much
    /// of it the driver reads, and of what becomes of an answer that cannot be stored.
    ///
    /// # Errors
    /// Whatever the driver answers. `InvalidInput` without a call: a request that is not binder's, an argument shorter than
    /// the request says, or a `WRITE_READ` that can be written or names buffers.
    pub fn raw_on_edge(&self, request: u32, argument: &[u8], access: Access) -> io::Result<()> {
        let could_fill = argument.iter().any(|byte| *byte != 0) || access == Access::ReadWrite;
        let is_short = argument.len() < declared_size(request);
        if !is_binders(request) || is_short || request == ioctl::WRITE_READ && could_fill {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let edge = Edge::of(argument, access)?;
        // SAFETY: a driver touches what is at the pointer through the kernel's checked copies, which answer `EFAULT` for the
        // page behind the argument and for a store into pages that cannot be written; the argument's own bytes are this
        // value's alone, and name no other memory.
        check(unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, edge.start()) })
    }

    /// `BINDER_WRITE_READ` that reads into a buffer of which only the first `writable` bytes can be written, for tests of
    /// what becomes of work that cannot be stored.
    ///
    /// # Errors
    /// `EFAULT` if there was work, or no room for the `NOOP` before it; else as [`Self::write_read`].
    pub fn read_at_end(&self, writable: usize) -> io::Result<()> {
        /// More than any one return.
        const CLAIMED: u64 = 512;
        let edge = Edge::of(&vec![0; writable], Access::ReadWrite)?;
        let mut argument =
            WriteRead { read_size: CLAIMED, read_buffer: edge.start() as u64, ..WriteRead::default() };
        // The driver stores into the edge's own bytes, and faults behind them.
        self.call(&mut argument)
    }

    /// `BINDER_WRITE_READ` of commands of which only the first `readable` bytes can be read, for tests of what becomes of a
    /// command that is cut. Returns the count of bytes that the driver says it took, too.
    ///
    /// # Errors
    /// `EFAULT` if a command reaches beyond; else as [`Self::write_read`].
    pub fn write_at_end(&self, commands: &[u8], readable: usize) -> (io::Result<()>, u64) {
        let edge = match Edge::of(&commands[..readable.min(commands.len())], Access::ReadWrite) {
            Ok(edge) => edge,
            Err(error) => return (Err(error), 0),
        };
        let mut argument = WriteRead {
            write_size: commands.len() as u64,
            write_buffer: edge.start() as u64,
            ..WriteRead::default()
        };
        let result = self.call(&mut argument);
        (result, argument.write_consumed)
    }

    /// Turns `O_NONBLOCK` of the open file on or off (the driver looks at it in each read).
    ///
    /// # Errors
    /// See `fcntl(2)`.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = libc::O_RDWR | if on { libc::O_NONBLOCK } else { 0 };
        // SAFETY: F_SETFL takes an integer and touches no memory of ours.
        check(unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFL, flags) })
    }

    /// Makes blocking reads of this device return early by closing a copy of its descriptor. The C
    /// driver interrupts every thread's current or next read, the Rust driver only current ones
    /// (contract EXT-07).
    ///
    /// # Errors
    /// See `fcntl(F_DUPFD_CLOEXEC)`.
    pub fn wake_readers(&self) -> io::Result<()> {
        self.file.try_clone().map(drop)
    }

    /// Waits until the calling thread may read (contract POL-01); `timeout_ms` < 0 waits for ever.
    /// Returns whether it may.
    ///
    /// # Errors
    /// `EINTR`, and `ENODEV`/`EBADF`-like conditions as `EIO` when the driver reports `POLLERR`.
    pub fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, valid for reads and writes during the call.
        let ready = unsafe { libc::poll(&raw mut entry, 1, timeout_ms) };
        match ready {
            ..0 => Err(io::Error::last_os_error()),
            0 => Ok(false),
            _ if entry.revents & libc::POLLIN != 0 => Ok(true),
            _ => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }
}

/// The size in bytes of a request's argument, by its number.
fn declared_size(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// Whether a request is of binder's type.
fn is_binders(request: u32) -> bool {
    request >> 8 & 0xff == ioctl::WRITE_READ >> 8 & 0xff
}

/// Access to an argument's memory, for the driver as for its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    ReadWrite,
    /// Reading only.
    ReadOnly,
}

/// Bytes that end at the end of a page, with nothing behind them: the file ends there, and touching more of its mapping is a
/// fault.
struct Edge {
    mapping: Mapping,
    /// Where the bytes begin.
    at: usize,
    len: usize,
}

impl Edge {
    fn of(bytes: &[u8], access: Access) -> io::Result<Self> {
        let page = crate::page::size();
        let at = page.checked_sub(bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
        let file = memory_file(page, 0)?;
        file.write_all_at(bytes, at as u64)?;
        let protection = match access {
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Access::ReadOnly => libc::PROT_READ,
        };
        let mapping = Mapping::new(file.as_fd(), 2 * page, protection, libc::MAP_SHARED)?;
        Ok(Self { mapping, at, len: bytes.len() })
    }

    fn start(&self) -> *mut u8 {
        self.mapping.place(self.at, self.len).as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_binder_device_is_refused() {
        let fd = BinderFd::open(Path::new("/dev/null"), false).expect("/dev/null");
        let error = fd.version().expect_err("/dev/null has no version");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_raw_request_that_could_store_elsewhere_is_not_made() {
        let fd = BinderFd::open(Path::new("/dev/null"), false).expect("/dev/null");
        let kind =
            |request, argument: &mut [u8]| fd.raw(request, Some(argument)).expect_err("refused").kind();
        let refused = io::ErrorKind::InvalidInput;
        // The size of what TCGETS stores is not in its number.
        assert_eq!(kind(libc::TCGETS as u32, &mut [0; 8]), refused);
        assert_eq!(kind(ioctl::WRITE_READ, &mut [0; 48]), refused);
        assert_eq!(kind(ioctl::VERSION, &mut [0; 3]), refused);
        for made in [fd.raw(ioctl::WRITE_READ, None), fd.raw(ioctl::VERSION, Some(&mut [0; 4]))] {
            assert_eq!(made.expect_err("no device").raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
