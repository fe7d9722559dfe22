//! A program whose driver calls another process makes for it: its memory and descriptors, as the driver needs them.
//! Not here: one that supervises programs (crate `supervise`), the threads that calls are made for
//! (`client::identity`).

use std::fmt::Debug;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use sys::errno::EINVAL;

/// A program in another process. `thread` is the kernel thread id for which the present call is made.
pub trait Program: Debug + Send + Sync {
    /// The process that opened the context.
    fn pid(&self) -> u32;

    /// Copies `bytes.len()` bytes at an address of the calling thread.
    ///
    /// # Errors
    /// `EFAULT`: not all of it can be read.
    fn read(&self, thread: i32, address: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// A copy of the calling thread's descriptor.
    ///
    /// # Errors
    /// `EBADF`: the number names nothing. `EINVAL`: it stands for something that no other process can use.
    fn descriptor(&self, thread: i32, number: i32) -> io::Result<OwnedFd>;

    /// Gives the calling thread's process a descriptor, which belongs to it from now on; returns its number there.
    ///
    /// # Errors
    /// `EMFILE`: the process has no room. `ENOENT`: the thread has left its call.
    fn install(&self, thread: i32, descriptor: BorrowedFd<'_>) -> io::Result<i32>;

    /// Closes the file behind a number of the calling thread's process.
    fn close(&self, thread: i32, number: i32);

    /// The driver has taken the commands up to here (contract WR-01); what follows may wait.
    fn written(&self, thread: i32, consumed: usize);

    /// Whether the thread is still in its call, and no signal has taken it out (contract WR-06).
    fn waits(&self, thread: i32) -> bool;
}

/// How a program of this process that reads the numbers of its descriptors itself treats them.
#[derive(Clone, Copy, Debug)]
pub struct OwnNumbers {
    /// Whether a number stands for something that only this process can use: a call that carries it fails with `EINVAL`.
    pub is_bound: fn(i32) -> bool,
}

/// The memory and the descriptors of the thread for which a call is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller<'p> {
    /// A thread of this process.
    Here(&'p OnceLock<OwnNumbers>),
    /// A thread of a supervised program.
    There(&'p dyn Program, i32),
}

impl Caller<'_> {
    /// Copies the bytes at an address.
    ///
    /// # Errors
    /// `EFAULT`.
    pub(crate) fn read(self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Here(_) => sys::own_memory::read(address, bytes),
            Self::There(program, thread) => program.read(thread, address, bytes),
        }
    }

    /// A copy of the descriptor with a number.
    ///
    /// # Errors
    /// `EBADF`, `EMFILE`. `EINVAL`: no other process can use it.
    pub(crate) fn descriptor(self, number: i32) -> io::Result<OwnedFd> {
        match self {
            Self::Here(numbers) if numbers.get().is_some_and(|own| (own.is_bound)(number)) => {
                Err(io::Error::from_raw_os_error(EINVAL))
            }
            Self::Here(_) => sys::descriptor::duplicate(number),
            Self::There(program, thread) => program.descriptor(thread, number),
        }
    }
}
