//! The mapping into which the driver delivers buffers.
//! Not here: the lifetime of buffers in it (`ipc::Received`).
//! Facts: contract OPN-03, OPN-06, OPN-08; `mmap` of a binder device.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use abi::codes::object;
use abi::layout::FdObject;
use zerocopy::FromBytes;

use crate::errno::check;
use crate::mapping::Mapping;

const FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_NORESERVE;

/// A read-only mapping of a binder device.
///
/// # Invariants
/// The mapping is `PROT_READ` and private.
#[derive(Debug)]
pub struct ReceiveMap {
    mapping: Mapping,
}

// SAFETY: the mapping is plain read-only memory; no method of `&ReceiveMap` writes.
unsafe impl Sync for ReceiveMap {}

impl ReceiveMap {
    /// Maps `len` bytes of the device (the driver uses at most 4 MiB of them).
    ///
    /// # Errors
    /// `EBUSY`: this open file is mapped already. `EINVAL`: opened by another process, or `len` is 0.
    /// `ENOMEM`.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::new(fd, len, libc::PROT_READ, FLAGS)? })
    }

    /// Asks for what no driver grants: a mapping that this process may write to. For tests of the
    /// driver's own checks; a mapping that was granted all the same is dropped at once.
    ///
    /// # Errors
    /// `EPERM` from a binder device.
    pub fn try_writable(fd: BorrowedFd<'_>, len: usize) -> io::Result<()> {
        Mapping::new(fd, len, libc::PROT_READ | libc::PROT_WRITE, FLAGS).map(drop)
    }

    /// Asks to make this mapping writable, which no driver grants. If it is granted all the same,
    /// the mapping is made read-only again before anything can use the right.
    ///
    /// # Errors
    /// `EACCES` from a binder device.
    pub fn try_protect_writable(&self) -> io::Result<()> {
        let (base, len) = (self.mapping.base().as_ptr().cast(), self.mapping.len());
        // SAFETY: the range is this value's own (Invariants); more rights break no reader.
        check(unsafe { libc::mprotect(base, len, libc::PROT_READ | libc::PROT_WRITE) })?;
        // SAFETY: back to the protection that the Invariants state; nobody wrote in between.
        check(unsafe { libc::mprotect(base, len, libc::PROT_READ) })
    }

    /// Size of the mapping in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The first address of the mapping, as the driver reports buffer addresses.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.mapping.base().as_ptr() as u64
    }

    /// The bytes that the driver lent at `address`; `None` if they are not wholly inside the mapping.
    ///
    /// Only a range that a return delivered may be asked for: a page that never held a buffer has
    /// nothing behind it and touching it raises `SIGBUS` (contract OPN-08). The driver leaves the
    /// range alone until its `BC_FREE_BUFFER`; the holder of the delivery keeps that order.
    #[must_use]
    pub fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(self.base())?).ok()?;
        let len = usize::try_from(len).ok()?;
        let start = self.mapping.range(offset, len)?;
        // SAFETY: `offset + len` bytes are mapped for `&self`'s life (`range`), any bits are a
        // `u8`, no process can write through this mapping, and the driver stores into a delivered
        // range only after the receiver gave it back (contract BUF-05).
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// Takes over the descriptor that the driver installed in this process for the file descriptor
    /// object at `address`; `None` if no such object stands there.
    ///
    /// Only for an object that a delivered buffer lists in its offsets, once per delivery: the
    /// driver closes none of them (contract OBJ-13), so the holder of the delivery owns each.
    #[must_use]
    pub fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        let object = FdObject::read_from_bytes(self.lent(address, size_of::<FdObject>() as u64)?).ok()?;
        let number = RawFd::try_from(object.fd).ok().filter(|_| object.kind == object::FD)?;
        // SAFETY: the object lies in memory that only the driver writes (Invariants), and for a
        // listed object the driver stored the number of a descriptor that it opened in this process
        // for nobody else (contract OBJ-11); the caller takes each listed object once.
        Some(unsafe { OwnedFd::from_raw_fd(number) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn the_right_to_write_is_not_kept() {
        let file = File::open("/proc/self/exe").expect("own executable");
        let map = ReceiveMap::new(file.as_fd(), 4096).expect("map a plain file");
        map.try_protect_writable().expect("a private mapping of a plain file may be made writable");
        ReceiveMap::try_writable(file.as_fd(), 4096).expect("likewise");
        assert_eq!(map.lent(map.base(), 4).expect("inside"), b"\x7fELF");
    }

    #[test]
    fn what_is_no_descriptor_object_is_not_taken() {
        let file = File::open("/proc/self/exe").expect("own executable");
        let map = ReceiveMap::new(file.as_fd(), 4096).expect("map a plain file");
        for address in [map.base(), map.base() + 4090, 0] {
            assert!(map.take_fd(address).is_none(), "{address:#x}");
        }
    }

    #[test]
    fn only_ranges_inside_the_mapping_are_lent() {
        let file = File::open("/proc/self/exe").expect("own executable");
        let map = ReceiveMap::new(file.as_fd(), 4096).expect("map a plain file");
        let base = map.base();
        assert_eq!(map.lent(base, 4).expect("inside"), b"\x7fELF");
        assert!(map.lent(base, 4096).is_some());
        for (address, len) in [(base - 1, 1), (base, 4097), (base + 4096, 1), (base, u64::MAX), (u64::MAX, 1)]
        {
            assert!(map.lent(address, len).is_none(), "{address:#x}+{len}");
        }
    }
}
