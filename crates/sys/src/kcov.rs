//! Places of the kernel that the calling thread's system calls reach.
//! Not here: what follows from them (`fuzzer::corpus`).
//! Facts: `linux/kcov.h`, the kernel's documentation of KCOV.

use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::errno::check;
use crate::mapping::Mapping;

/// The kernel's file, which a kernel with `CONFIG_KCOV` has where debugfs is mounted.
const FILE: &str = "/sys/kernel/debug/kcov";
/// Places that are noted between two calls of [`Coverage::take`], and the word with their number; later ones are lost.
const WORDS: usize = 1 << 15;
/// `KCOV_INIT_TRACE`: `_IOR('c', 1, unsigned long)`.
const INIT_TRACE: u32 = 0x8008_6301;
/// `KCOV_ENABLE`: `_IO('c', 100)`.
const ENABLE: u32 = 0x6364;
/// `KCOV_TRACE_PC`.
const TRACE_PC: libc::c_ulong = 0;

/// Whether this machine's kernel has KCOV, and debugfs is mounted.
#[must_use]
pub fn is_there() -> bool {
    Path::new(FILE).exists()
}

/// Notes of one thread, which end with it.
#[derive(Debug)]
pub struct Coverage {
    memory: Mapping,
    _file: File,
    /// It stays with the thread that the kernel notes.
    _own: PhantomData<*const ()>,
}

impl Coverage {
    /// Begins to note places of the calling thread.
    ///
    /// # Errors
    /// `NotFound`: the kernel has no KCOV, or debugfs is not mounted. `EBUSY`: the thread is noted already.
    pub fn begin() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(FILE)?;
        // SAFETY: takes an integer, the number of words.
        check(unsafe { libc::ioctl(file.as_raw_fd(), INIT_TRACE as _, WORDS as libc::c_ulong) })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let memory = Mapping::new(file.as_fd(), 8 * WORDS, protection, libc::MAP_SHARED)?;
        // SAFETY: takes an integer, the kind of notes.
        check(unsafe { libc::ioctl(file.as_raw_fd(), ENABLE as _, TRACE_PC) })?;
        Ok(Self { memory, _file: file, _own: PhantomData })
    }

    /// Addresses of the places since the last call, in the order in which they were reached.
    pub fn take(&mut self) -> impl Iterator<Item = u64> {
        let count = (self.word(0).load(Relaxed) as usize).min(WORDS - 1);
        let places: Vec<u64> = (1..=count).map(|at| self.word(at).load(Relaxed)).collect();
        self.word(0).store(0, Relaxed);
        places.into_iter()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `place` checked that the word is inside, it is aligned because the mapping is, and it lives as long as `self`.
        // The kernel stores there only within system calls of this thread, which no reader of it runs in.
        unsafe { self.memory.place(8 * at, 8).cast().as_ref() }
    }
}
