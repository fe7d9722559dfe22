//! Room: an open binder device and the ioctls it understands, each one system call.
//! Not here: retries and their rules (`driver`), the streams inside `WRITE_READ` (`abi`).
//! Facts: `linux/android/binder.h`; contract sections 1 and 2.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use abi::codes::ioctl;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef, Version,
    WriteRead,
};
use zerocopy::{FromBytes, IntoBytes};

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
    /// As `open(2)`: `ENOENT`, `EACCES`, `ENXIO` (no driver behind the node), ...
    pub fn open(path: &Path, nonblocking: bool) -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | if nonblocking { libc::O_NONBLOCK } else { 0 };
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        Ok(Self { file })
    }

    /// One ioctl whose argument is a structure that the driver may read and write.
    fn call<T: FromBytes + IntoBytes>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        // The request's size field says how much the driver touches; it must be this very type.
        assert_eq!((request >> 16 & 0x3fff) as usize, size_of::<T>(), "ioctl argument of another size");
        let argument: *mut T = argument;
        // SAFETY: `argument` is valid for reads and writes of `size_of::<T>()` bytes, which is what
        // the request's size field allows the driver to touch (asserted), and `T` accepts any bytes.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        let result = self.call(ioctl::WRITE_READ, &mut argument);
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
        self.call(ioctl::WRITE_READ, argument)
    }

    /// `BINDER_VERSION`.
    ///
    /// # Errors
    /// `ENOTTY`/`EINVAL` where the file is no binder device.
    pub fn version(&self) -> io::Result<i32> {
        let mut version = Version::default();
        self.call(ioctl::VERSION, &mut version)?;
        Ok(version.protocol_version)
    }

    /// `BINDER_SET_MAX_THREADS`: how many loopers the driver may ask for (contract LP-04).
    ///
    /// # Errors
    /// None in normal work.
    pub fn set_max_threads(&self, mut threads: u32) -> io::Result<()> {
        self.call(ioctl::SET_MAX_THREADS, &mut threads)
    }

    /// `BINDER_SET_CONTEXT_MGR_EXT`: become the context manager with a node of these flags.
    ///
    /// # Errors
    /// `EBUSY`: there is one (CTX-01). `EPERM`: another uid was first (CTX-02). `EINVAL`: before 5.1.
    pub fn set_context_manager_ext(&self, mut node: FlatBinderObject) -> io::Result<()> {
        self.call(ioctl::SET_CONTEXT_MGR_EXT, &mut node)
    }

    /// `BINDER_SET_CONTEXT_MGR`: the same with ptr, cookie and flags 0 (refuses file descriptors).
    ///
    /// # Errors
    /// As [`Self::set_context_manager_ext`].
    pub fn set_context_manager(&self) -> io::Result<()> {
        self.call(ioctl::SET_CONTEXT_MGR, &mut 0i32)
    }

    /// `BINDER_THREAD_EXIT`: the driver forgets the calling thread.
    ///
    /// # Errors
    /// None in normal work (contract IOC-09).
    pub fn thread_exit(&self) -> io::Result<()> {
        self.call(ioctl::THREAD_EXIT, &mut 0i32)
    }

    /// `BINDER_ENABLE_ONEWAY_SPAM_DETECTION`, per process (Linux 5.13 and later).
    ///
    /// # Errors
    /// `EINVAL` on older kernels.
    pub fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.call(ioctl::ENABLE_ONEWAY_SPAM_DETECTION, &mut u32::from(enable))
    }

    /// `BINDER_GET_EXTENDED_ERROR`: reads and clears the calling thread's record (Linux 5.19).
    ///
    /// # Errors
    /// `EINVAL` on older kernels.
    pub fn extended_error(&self) -> io::Result<ExtendedError> {
        let mut error = ExtendedError::default();
        self.call(ioctl::GET_EXTENDED_ERROR, &mut error)?;
        Ok(error)
    }

    /// `BINDER_GET_NODE_DEBUG_INFO`: the caller's next node above `info.ptr` (contract IOC-05).
    ///
    /// # Errors
    /// None in normal work.
    pub fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        let mut info = NodeDebugInfo { ptr: above, ..Default::default() };
        self.call(ioctl::GET_NODE_DEBUG_INFO, &mut info)?;
        Ok(info)
    }

    /// `BINDER_GET_NODE_INFO_FOR_REF` (contract IOC-04).
    ///
    /// # Errors
    /// `EPERM`: the caller is not the context manager. `EINVAL`/`ENOENT`: unknown handle.
    pub fn node_info_for_ref(&self, mut info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.call(ioctl::GET_NODE_INFO_FOR_REF, &mut info)?;
        Ok(info)
    }

    /// `BINDER_FREEZE` (Linux 5.13; contract FRZ-01..04).
    ///
    /// # Errors
    /// `EAGAIN`: still pending after the timeout. `EINVAL`: no such process.
    pub fn freeze(&self, mut info: FreezeInfo) -> io::Result<()> {
        self.call(ioctl::FREEZE, &mut info)
    }

    /// `BINDER_GET_FROZEN_INFO` (contract FRZ-05).
    ///
    /// # Errors
    /// `EINVAL`: no such process.
    pub fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        let mut info = FrozenStatusInfo { pid, ..Default::default() };
        self.call(ioctl::GET_FROZEN_INFO, &mut info)?;
        Ok(info)
    }

    /// An ioctl with an arbitrary argument word, for tests of the driver's own checks. The word is
    /// an address to the driver only; `None` is a null pointer.
    ///
    /// # Errors
    /// Whatever the driver answers. `InvalidInput` without a call: a request that is not binder's,
    /// an argument shorter than the request says, or a `WRITE_READ` with one, which names a further
    /// buffer for the driver to fill.
    pub fn raw(&self, request: u32, argument: Option<&mut [u8]>) -> io::Result<()> {
        let size = (request >> 16 & 0x3fff) as usize;
        let is_binder_s = request >> 8 & 0xff == ioctl::WRITE_READ >> 8 & 0xff && size > 0;
        if !is_binder_s || request == ioctl::WRITE_READ && argument.is_some() {
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
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, pointer) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Turns `O_NONBLOCK` of the open file on or off (the driver looks at it in each read).
    ///
    /// # Errors
    /// As `fcntl(2)`.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = libc::O_RDWR | if on { libc::O_NONBLOCK } else { 0 };
        // SAFETY: F_SETFL takes an integer and touches no memory of ours.
        let result = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFL, flags) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Makes blocking reads of this device return early by closing a copy of its descriptor. The C
    /// driver interrupts every thread's current or next read, the Rust driver only current ones
    /// (contract EXT-07).
    ///
    /// # Errors
    /// As `fcntl(F_DUPFD_CLOEXEC)`.
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
