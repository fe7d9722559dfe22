//! Memory shared by two processes through a descriptor (`memfd_create(2)`).
//! Not here: the protocol on it (`bench::measure::echo::shared`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use crate::mapping::{Mapping, memory_file};

/// A writable mapping shared between processes.
///
/// # Invariants
/// The mapping is read-write and shared. Its bytes are never behind a Rust reference, except single
/// words as atomics; plain bytes are touched through `&mut self` only.
#[derive(Debug)]
pub struct SharedMemory {
    mapping: Mapping,
    file: OwnedFd,
}

// SAFETY: through `&self` a thread gets the descriptor, the length, which does not change, and words as atomics; plain bytes
// need `&mut self` (Invariants).
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// New memory of `len` bytes, all 0.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`; `EINVAL` for `len` 0.
    pub fn create(len: usize) -> io::Result<Self> {
        Self::map(memory_file(len, 0)?.into())
    }

    /// Maps memory that another process created, whole.
    ///
    /// # Errors
    /// `EINVAL`: it is empty. `ENODEV`, `EACCES`: the descriptor is none of shared memory.
    pub fn map(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let len = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mapping = Mapping::new(file.as_fd(), len, protection, libc::MAP_SHARED)?;
        Ok(Self { mapping, file: file.into() })
    }

    /// The descriptor, to be handed to the other process.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Size in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The word at `offset`; `None` if it is not wholly inside or not aligned to 4.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.mapping.word(offset)?;
        // SAFETY: mapped for `&self`'s life (`word`), 4-aligned as base and offset are, and any
        // bits are a `u32`; `copy_in`, the only plain store, takes `&mut self` and so ends this borrow.
        Some(unsafe { word.as_ref() })
    }

    /// Copies `bytes` to `offset`. The other process must not use that range until told to.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    #[inline]
    pub fn copy_in(&mut self, offset: usize, bytes: &[u8]) {
        let to = self.range(offset, bytes.len());
        // SAFETY: `to` has room for all of `bytes` (`range`), and no reference points into the mapping
        // (Invariants, `&mut self`). Stores of another process are outside this program's memory
        // model; whatever they leave behind is valid bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies from `offset` into `bytes`. The other process must have finished writing that range.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    #[inline]
    pub fn copy_out(&mut self, offset: usize, bytes: &mut [u8]) {
        let from = self.range(offset, bytes.len());
        // SAFETY: as in `copy_in`, with the directions exchanged; any bits are a `u8`.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    fn range(&self, offset: usize, len: usize) -> *mut u8 {
        self.mapping.range(offset, len).expect("outside the shared memory").as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_see_the_same_bytes_and_words() {
        let mut here = SharedMemory::create(100).expect("memfd");
        let copy = here.descriptor().try_clone_to_owned().expect("dup");
        let mut there = SharedMemory::map(copy).expect("map");
        here.copy_in(10, b"payload");
        let mut got = [0; 7];
        there.copy_out(10, &mut got);
        assert_eq!(&got, b"payload");
        there.word(4).expect("inside").store(7, Ordering::Release);
        assert_eq!(here.word(4).expect("inside").load(Ordering::Acquire), 7);
    }

    #[test]
    fn only_whole_aligned_words_inside_are_given() {
        let memory = SharedMemory::create(100).expect("memfd");
        assert!(memory.word(96).is_some());
        for offset in [2, 97, 98, 100, usize::MAX - 3] {
            assert!(memory.word(offset).is_none(), "{offset}");
        }
    }

    #[test]
    #[should_panic(expected = "outside the shared memory")]
    fn a_range_beyond_the_end_is_refused() {
        SharedMemory::create(100).expect("memfd").copy_in(99, &[0; 2]);
    }
}
