//! Memory files, and a file mapping, unmapped when dropped, with bounds-checked pointers into it.
//! Not here: access rules (`receive_map`, `shared_memory`).
//! Facts: `mmap(2)`, `memfd_create(2)`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::errno::{check, new_descriptor};

/// Creates a memory file of `len` bytes, all 0, closed on exec; `flags` as for `memfd_create(2)`.
pub(crate) fn memory_file(len: usize, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: the name is NUL-terminated and outlives the call.
    let fd = unsafe { libc::memfd_create(c"binderperf".as_ptr(), flags | libc::MFD_CLOEXEC) };
    // SAFETY: the result of memfd_create.
    let file = File::from(unsafe { new_descriptor(fd) }?);
    file.set_len(len as u64)?;
    Ok(file)
}

/// A mapped range.
///
/// # Invariants
/// `base..base + len` is mapped with the protection asked for, by this value alone, until drop;
/// `base` is page-aligned.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is valid on every thread; what may be done there is its users' to say.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file; `protection` and `flags` as for `mmap(2)`, the flags
    /// without `MAP_FIXED`, which is taken out.
    ///
    /// # Errors
    /// See `mmap(2)`; `EINVAL` for `len` 0.
    pub(crate) fn new(fd: BorrowedFd<'_>, len: usize, protection: i32, flags: i32) -> io::Result<Self> {
        let flags = flags & !libc::MAP_FIXED;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { base, len })
    }

    /// Leaves the range out of processes that are forked from now on (contract OPN-07).
    ///
    /// # Errors
    /// See `madvise(2)`, which knows no reason to refuse this for a whole mapping.
    pub(crate) fn keep_from_children(&self) -> io::Result<()> {
        // SAFETY: exactly the range this value owns (Invariants); the advice changes nothing in this
        // process.
        check(unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_DONTFORK) })
    }

    /// Its size in bytes; never 0.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Its first byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Whether `len` bytes from `offset` are wholly inside.
    #[inline]
    fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// The byte at `offset`; `None` unless `len` bytes from there are wholly inside.
    #[inline]
    pub(crate) fn range(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        // SAFETY: `offset <= self.len`, so the result stays inside the mapping (Invariants).
        self.holds(offset, len).then(|| unsafe { self.base.add(offset) })
    }

    /// The word at `offset`; `None` if it is not wholly inside or not aligned to 4.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> Option<NonNull<AtomicU32>> {
        if !offset.is_multiple_of(4) {
            return None;
        }
        self.range(offset, 4).map(NonNull::cast)
    }

    /// The byte at `offset`. Where the compiler knows the size nothing is left of this but the sum; of an option, which
    /// is a pointer, too, it would still look whether that is null.
    ///
    /// # Panics
    /// Unless `len` bytes from there are wholly inside.
    #[inline]
    pub(crate) fn place(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(self.holds(offset, len), "outside the shared memory");
        // SAFETY: `offset <= self.len`, so the result stays inside the mapping (Invariants).
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the range this value owns (Invariants); no borrow outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
