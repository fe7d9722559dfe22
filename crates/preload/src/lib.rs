//! Embedded driver behind the C library's calls, for unmodified programs: `open("/dev/binder")`, then `ioctl`, `mmap`,
//! `poll` and the like on the descriptor. Preloaded into a program as `libbinderperf.so`.
//!
//! - [`context`]: the context behind a device. [`lookup`]: which paths lead to one.
//! - [`file`](mod@file): an open device. [`table`]: the descriptors that name one, and what became of them in a forked child.
//!   [`owner`]: which process that is. [`members`]: sets of descriptors. [`watches`]: devices in epoll sets.
//! - [`calls`]: the calls on descriptors and mappings. [`ioctl`], [`write_read`]: ioctls.
//! - [`polling`], [`select`], [`epoll`]: waiting.
//! - `next`, `exports` (feature `exports`): the C library's own functions, and those that take their place. `interface`:
//!   functions of this library's own, declared in `include/binderperf.h`.
//!
//! A call that is not about a device passes through without a lock or new memory. The driver's own calls of the
//! C library take this way too. No lock is held while the driver is called.
//!
//! Not here: the driver (`embedded`), starting a program with the library (the command `shim`), programs that make
//! system calls without the C library.
#![deny(unsafe_code)]

pub mod calls;
pub mod context;
pub mod epoll;
#[cfg(feature = "exports")]
#[allow(unsafe_code, reason = "the C library's interface")]
pub mod exports;
pub mod file;
#[cfg(feature = "exports")]
#[allow(unsafe_code, reason = "this library's own functions in C")]
pub mod interface;
pub mod ioctl;
pub mod lookup;
pub mod members;
#[cfg(feature = "exports")]
#[allow(unsafe_code, reason = "the C library's interface")]
mod next;
pub mod owner;
pub mod polling;
pub mod select;
pub mod table;
pub mod watches;
pub mod write_read;
