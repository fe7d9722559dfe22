//! Room: what lies in memory that processes share, and who may change it when.
//!
//! - [`ring`]: a process's inbox: records from the broker.
//! - [`doorbell`]: a process's doorbells: which thread to wake, where there is something new.
//! - [`lookout`]: what looks after threads that sleep often.
//! - [`lane`]: the calls of one process to another that the broker never sees.
//! - [`wait`]: spinning or sleeping until there is something.
//!
//! Not here: what the records say (`super::protocol`), the memory itself (`sys::sealed_memory`).
//!
//! Everything works on borrowed words and bytes ([`Memory`]), so that loom runs the code that ships.
//! No lock lies in shared memory: a process may be killed at any instruction. What is read from
//! there is loaded once and checked; what makes no sense is [`Corrupt`], never a panic. The reader of
//! another process's words believes them no further than that: a wrong hint costs a late wake-up.
//!
//! Cache lines that change hands in a round trip through a lane, small payload, both sides spinning:
//! the request's and the reply's (there and back) and the callee's line of ready bits. A sleeper
//! adds its bell's line.

pub mod doorbell;
pub mod lane;
pub mod lookout;
pub mod ring;
pub mod wait;

#[cfg(test)]
mod heap;
#[cfg(all(test, not(loom)))]
mod layouts;

use std::fmt;
use std::sync::Arc;

use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;
use sys::sync::AtomicU32;
use zerocopy::IntoBytes;

/// Memory that another process may write at any time.
///
/// Offsets are those of the layouts in this module, whose size was compared with
/// [`len`](Self::len) before.
pub trait Memory {
    /// Size in bytes.
    fn len(&self) -> usize;
    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The word at `offset`, a multiple of 4.
    ///
    /// # Panics
    /// If it is not wholly inside.
    fn word(&self, offset: usize) -> &AtomicU32;
    /// Copies `bytes` to `offset`. Others may read or write there meanwhile and see a mixture.
    ///
    /// # Panics
    /// If the range is not inside.
    fn copy_in(&self, offset: usize, bytes: &[u8]);
    /// Copies from `offset`. Others may write there meanwhile; the result is then a mixture.
    ///
    /// # Panics
    /// If the range is not inside.
    fn copy_out(&self, offset: usize, bytes: &mut [u8]);
    /// Says that `len` bytes from `offset` will soon be written. Nothing need come of it.
    ///
    /// # Panics
    /// If the range is not inside.
    fn expect_writes(&self, offset: usize, len: usize);
    /// As [`copy_in`](Self::copy_in), of words at a multiple of 4.
    fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
        self.copy_in(offset, words.as_bytes());
    }
    /// As [`copy_out`](Self::copy_out), of words at a multiple of 4.
    fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
        let mut words = [0; N];
        self.copy_out(offset, words.as_mut_bytes());
        words
    }
}

macro_rules! sealed {
    ([$($size:tt)*] $memory:ty) => {
        impl<$($size)*> Memory for $memory {
            #[inline]
            fn len(&self) -> usize {
                SealedMemory::len(self)
            }

            #[cfg(not(loom))]
            #[inline]
            fn word(&self, offset: usize) -> &AtomicU32 {
                // A layout was compared with the memory's length.
                SealedMemory::word_inside(self, offset)
            }

            #[cfg(loom)]
            fn word(&self, _offset: usize) -> &AtomicU32 {
                unreachable!("loom's words lie in no mapping; its models have memory of their own")
            }

            #[inline]
            fn copy_in(&self, offset: usize, bytes: &[u8]) {
                SealedMemory::copy_in(self, offset, bytes);
            }

            #[inline]
            fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
                SealedMemory::copy_out(self, offset, bytes);
            }

            #[inline]
            fn expect_writes(&self, offset: usize, len: usize) {
                SealedMemory::expect_writes(self, offset, len);
            }

            #[inline]
            fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
                SealedMemory::put_words(self, offset, words);
            }

            #[inline]
            fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
                SealedMemory::words(self, offset)
            }
        }
    };
}
sealed!([] SealedMemory);
sealed!([const LEN: usize] FixedMemory<LEN>);

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        impl<M: Memory> Memory for $pointer {
            #[inline]
            fn len(&self) -> usize {
                M::len(self)
            }
            #[inline]
            fn word(&self, offset: usize) -> &AtomicU32 {
                M::word(self, offset)
            }
            #[inline]
            fn copy_in(&self, offset: usize, bytes: &[u8]) {
                M::copy_in(self, offset, bytes);
            }
            #[inline]
            fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
                M::copy_out(self, offset, bytes);
            }
            #[inline]
            fn expect_writes(&self, offset: usize, len: usize) {
                M::expect_writes(self, offset, len);
            }
            #[inline]
            fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
                M::put_words(self, offset, words);
            }
            #[inline]
            fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
                M::words(self, offset)
            }
        }
    )*};
}
pointers!(&M Arc<M>);

/// What another process left in shared memory makes no sense: its channel is closed, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corrupt {
    /// The memory is shorter than its layout.
    TooSmall,
    /// The producer's or consumer's count is impossible.
    RingCount,
    /// A lane that nobody uses is not idle.
    LaneBusy,
    /// A state that no lane has.
    LaneState,
    /// A size beyond what a lane holds.
    LaneSize,
    /// More waiting threads than a call carries.
    Lineage,
    /// More or fewer bytes copied than announced.
    Written,
    /// The sender stopped in the middle of its copy, or is gone.
    Stalled,
    /// Objects that no lane carries, or scattered buffers that break a rule.
    Objects,
}

impl Corrupt {
    /// A number for [`lane::Lanes::close_as`]; never 0.
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32 + 1
    }
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::TooSmall => "it is shorter than its layout",
            Self::RingCount => "an impossible count of records",
            Self::LaneBusy => "a free lane that is not idle",
            Self::LaneState => "an unknown state of a lane",
            Self::LaneSize => "a payload larger than a lane holds",
            Self::Lineage => "more waiting threads than a call carries",
            Self::Written => "more payload than announced",
            Self::Stalled => "a sender that stopped in the middle of a payload",
            Self::Objects => "objects that its sender should have refused",
        };
        write!(f, "memory shared with another process makes no sense ({what}); that channel is closed")
    }
}

impl std::error::Error for Corrupt {}

/// Whether `memory` has room for a layout.
fn holds<M: Memory>(memory: &M, size: usize) -> Result<(), Corrupt> {
    if memory.len() < size { Err(Corrupt::TooSmall) } else { Ok(()) }
}
