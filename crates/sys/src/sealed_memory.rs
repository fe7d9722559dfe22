//! Shared memory of sealed size, and copies that tolerate concurrent writers.
//! Not here: who may write when (`embedded`), memory among trusted processes (`shared_memory`), the copying
//! itself (`racing_copy`).
//! Facts: `memfd_create(2)`, file sealing in `fcntl(2)` (Linux 3.17).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::errno::check;
use crate::mapping::{Mapping, memory_file};
use crate::racing_copy;

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A writable mapping of sealed memory. The other processes that map it need not be trusted: whatever they
/// write, and whenever, causes neither a crash nor undefined behaviour here. A forked child does not have the
/// mapping.
///
/// # Invariants
/// The mapping is read-write and shared, and its file cannot shrink. Its bytes are never behind a Rust
/// reference except single words as atomics, and this process accesses them only through those and through
/// `racing_copy`.
#[derive(Debug)]
pub struct SealedMemory {
    mapping: Mapping,
    file: OwnedFd,
}

// SAFETY: every method of `&SealedMemory` accesses the bytes as atomics do (Invariants), which any number of
// threads may do at once.
unsafe impl Sync for SealedMemory {}

impl SealedMemory {
    /// Creates memory of `len` bytes, all 0. Untouched pages use no memory.
    ///
    /// # Errors
    /// `ENOSYS`: a kernel before 3.17. `EMFILE`, `ENFILE`, `ENOMEM`; `EINVAL` for `len` 0.
    pub fn create(len: usize) -> io::Result<Self> {
        let file = memory_file(len, libc::MFD_ALLOW_SEALING)?;
        // SAFETY: F_ADD_SEALS takes an integer.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Self::mapped(file, len)
    }

    /// Maps memory from another process, if it is sealed and exactly `len` bytes long.
    ///
    /// # Errors
    /// `EINVAL`: not a memory file, not sealed, or of another size. `ENOMEM`.
    pub fn map(fd: OwnedFd, len: usize) -> io::Result<Self> {
        let file = File::from(fd);
        // SAFETY: F_GET_SEALS takes no argument.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // The seals are checked first: without them the size may change.
        if seals < 0 || seals & SEALS != SEALS || file.metadata()?.len() != len as u64 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        Self::mapped(file, len)
    }

    fn mapped(file: File, len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mapping = Mapping::new(file.as_fd(), len, protection, libc::MAP_SHARED)?;
        mapping.keep_from_children()?;
        Ok(Self { mapping, file: file.into() })
    }

    /// The descriptor, for passing to another process.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Size in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The word at `offset`; `None` if it is not wholly inside or not aligned to 4.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.mapping.word(offset)?;
        // SAFETY: mapped for `&self`'s life (`word`), 4-aligned as base and offset are, any bits are a
        // `u32`, and this process accesses it only atomically (Invariants).
        Some(unsafe { word.as_ref() })
    }

    /// [`word`](Self::word) at an offset that is known to be inside.
    ///
    /// # Panics
    /// If the word is not wholly inside or not aligned to 4.
    #[must_use]
    #[inline]
    pub fn word_inside(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let word = self.mapping.place(offset, 4).cast::<AtomicU32>();
        // SAFETY: as in `word`.
        unsafe { word.as_ref() }
    }

    /// Copies `bytes` to `offset`. A concurrent reader may see any mixture of old and new bytes.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    #[inline]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let to = self.range(offset, bytes.len());
        // SAFETY: the whole range is mapped read-write for `&self`'s life, and is accessed only as
        // `racing_copy` and atomics do (Invariants).
        unsafe { racing_copy::copy_in(to, bytes) };
    }

    /// Copies from `offset` into `bytes`. A concurrent write may arrive in part.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    #[inline]
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.range(offset, bytes.len());
        // SAFETY: as in `copy_in`.
        unsafe { racing_copy::copy_out(from, bytes) };
    }

    /// Stores words at `offset`, each atomically. A concurrent reader may see any mixture of old and new
    /// words.
    ///
    /// # Panics
    /// If the range is not inside the memory or not aligned to 4.
    #[inline]
    pub fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let to = self.range(offset, 4 * N);
        // SAFETY: as in `copy_in`; aligned, as the mapping's start is.
        unsafe { racing_copy::put_words(to, words) };
    }

    /// Loads words from `offset`, each atomically. A concurrent write may arrive in part.
    ///
    /// # Panics
    /// See [`Self::put_words`].
    #[inline]
    #[must_use]
    pub fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let from = self.range(offset, 4 * N);
        // SAFETY: as in `put_words`.
        unsafe { racing_copy::words(from) }
    }

    /// Sets `len` bytes at `offset` to 0.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn zero(&self, offset: usize, len: usize) {
        const ZEROS: [u8; 4096] = [0; 4096];
        self.range(offset, len);
        let mut done = 0;
        while done < len {
            let part = (len - done).min(ZEROS.len());
            self.copy_in(offset + done, &ZEROS[..part]);
            done += part;
        }
    }

    #[inline]
    fn range(&self, offset: usize, len: usize) -> NonNull<u8> {
        self.mapping.place(offset, len)
    }

    /// Copies `len` bytes from `from` in another memory to `offset`. A concurrent write may arrive in part.
    ///
    /// # Panics
    /// If a range is not inside its memory.
    #[inline]
    pub fn copy_from(&self, offset: usize, source: &Self, from: usize, len: usize) {
        let from = source.range(from, len);
        let to = self.range(offset, len);
        // SAFETY: both ranges are mapped read-write for the call, belong to two mappings and so do not
        // overlap, and are accessed only as `racing_copy` and atomics do (Invariants).
        unsafe { racing_copy::copy_across(to, from, len) };
    }

    /// Maps the first `len` bytes a second time, read-only, for reading deliveries.
    ///
    /// # Errors
    /// `ENOMEM`; `EINVAL`: `len` is 0 or beyond the memory's size.
    pub fn lend(&self, len: usize) -> io::Result<LentMemory> {
        if len > self.len() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mapping = Mapping::new(self.file.as_fd(), len, libc::PROT_READ, libc::MAP_SHARED)?;
        mapping.keep_from_children()?;
        Ok(LentMemory { mapping })
    }
}

/// A read-only mapping of sealed memory in which a driver delivers buffers.
///
/// # Invariants
/// The mapping is `PROT_READ` and its file cannot shrink.
#[derive(Debug)]
pub struct LentMemory {
    mapping: Mapping,
}

// SAFETY: no method of `&LentMemory` writes.
unsafe impl Sync for LentMemory {}

impl LentMemory {
    /// First address of the mapping, in the terms of the driver's buffer addresses.
    #[must_use]
    #[inline]
    pub fn base(&self) -> u64 {
        self.mapping.base().as_ptr() as u64
    }

    /// Size in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The bytes delivered at `offset`; `None` unless the range is wholly inside.
    ///
    /// Only for a range that a delivery named and that was not given back: until then the driver's two halves
    /// (the broker, and the library that delivers what came through a channel) write nothing there; the
    /// holder of the delivery keeps that order. Also for the library itself, on a range that it has filled
    /// and is about to deliver, as long as it writes nothing there.
    #[must_use]
    #[inline]
    pub fn lent(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        let start = self.mapping.range(offset, len)?;
        // SAFETY: the range is mapped for `&self`'s life (`range`), the file cannot shrink, so that no page
        // of it faults (Invariants), any bits are a `u8`, and the driver stores into a delivered range only
        // after the receiver gave it back (contract BUF-05).
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    fn twice(len: usize) -> (SealedMemory, SealedMemory) {
        let here = SealedMemory::create(len).expect("memfd");
        let fd = here.descriptor().try_clone_to_owned().expect("dup");
        let there = SealedMemory::map(fd, len).expect("the same memory");
        (here, there)
    }

    #[test]
    fn both_mappings_see_the_same_bytes_and_words() {
        let (here, there) = twice(10_000);
        let bytes: Vec<u8> = (0..9_000u32).map(|n| (n * 7) as u8).collect();
        let mut got = vec![0; 9_001];
        let lens = (0..300).map(|len| (len % 11, len));
        for (offset, len) in lens.chain([(0, 0), (1, 1), (3, 9), (8, 64), (7, 300), (1000, 9_000)]) {
            here.copy_in(offset, &bytes[..len]);
            there.copy_out(offset, &mut got[..len]);
            assert!(got[..len] == bytes[..len], "{len} bytes at {offset}");
            // A destination with another alignment.
            let (other, _) = twice(10_000);
            other.copy_from(offset / 2, &there, offset, len);
            other.copy_out(offset / 2, &mut got[..len + 1]);
            assert!(got[..len] == bytes[..len] && got[len] == 0, "{len} bytes across from {offset}");
        }
        there.word(4).expect("inside").store(7, Ordering::Release);
        assert_eq!(here.word(4).expect("inside").load(Ordering::Acquire), 7);
        here.zero(2000, 5000);
        there.copy_out(1999, &mut got[..5002]);
        assert!(got[0] != 0 && got[5001] != 0 && got[1..5001].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let (here, _) = twice(100);
        for outside in [
            (|memory| memory.copy_in(99, &[0; 2])) as fn(&SealedMemory),
            |memory| memory.copy_out(usize::MAX, &mut [0; 2]),
            |memory| memory.zero(50, 51),
        ] {
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outside(&here))).is_err());
        }
        assert!(here.word(98).is_none() && here.word(100).is_none() && here.word(usize::MAX - 3).is_none());
    }

    #[test]
    fn a_delivered_range_is_read_through_the_second_view() {
        let (here, there) = twice(100);
        let view = here.lend(here.len()).expect("second mapping");
        there.copy_in(8, b"delivered");
        assert_eq!(view.lent(8, 9).expect("inside"), b"delivered");
        for (offset, len) in [(0, 101), (100, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(view.lent(offset, len).is_none(), "{offset}+{len}");
        }
        assert_eq!(view.len(), 100);
        assert_ne!(view.base(), 0);
    }

    #[test]
    fn what_could_shrink_under_us_is_not_mapped() {
        let (here, _) = twice(4096);
        let file = File::from(here.descriptor().try_clone_to_owned().expect("dup"));
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err(), "sealed");
        let copy = || here.descriptor().try_clone_to_owned().expect("dup");
        for len in [4095, 4097, 0, usize::MAX] {
            assert!(SealedMemory::map(copy(), len).is_err(), "{len}");
        }
        let open = crate::shared_memory::SharedMemory::create(4096).expect("memfd");
        let unsealed = open.descriptor().try_clone_to_owned().expect("dup");
        assert!(SealedMemory::map(unsealed, 4096).is_err(), "not sealed");
        let plain = File::open("/proc/self/exe").expect("own executable");
        let len = plain.metadata().expect("size").len() as usize;
        assert!(SealedMemory::map(plain.as_fd().try_clone_to_owned().expect("dup"), len).is_err());
    }
}
