//! Memory shared between processes: its layouts, and who may change what when.
//!
//! - [`ring`]: a process's inbox of records from the broker.
//! - [`doorbell`]: a process's doorbells: the thread to wake, the channels with calls.
//! - [`lease`]: lets the owner of a receiving area place buffers without the broker.
//! - [`call_slot`]: calls between two processes that bypass the broker.
//! - [`wait`]: spins or sleeps until an event.
//!
//! Not here: the records' contents (`super::rpc::protocol`), the memory itself (`sys::sealed_memory`).
//!
//! All code here works on borrowed words and bytes ([`Memory`]), so that loom runs the code that ships.
//! Shared memory holds no lock, because a process may be killed at any instruction. Each value is loaded once
//! and checked; an invalid value is [`Corrupt`], never a panic. A wrong hint of another process costs no more
//! than a late wake-up.
//!
//! Cache lines that move between CPUs in one round trip through a call slot, with a small payload and both
//! sides spinning: the request's and the reply's (there and back) and the callee's line of ready bits. A
//! sleeper adds its bell's line.

pub mod call_slot;
pub mod doorbell;
pub mod lease;
pub mod ring;
pub mod wait;

#[cfg(test)]
pub(crate) mod heap;
#[cfg(all(test, not(loom)))]
mod layouts;

use std::fmt;
use std::sync::Arc;

use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;
use sys::sync::AtomicU32;
use zerocopy::IntoBytes;

use crate::payload::shape::ShapeError;

/// Memory that another process may write at any time.
///
/// Offsets are those of the layouts in this module. The layout's size has been compared with
/// [`len`](Self::len) before any access.
pub trait Memory {
    /// Size in bytes.
    fn len(&self) -> usize;
    /// Whether the size is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The word at `offset`, a multiple of 4.
    ///
    /// # Panics
    /// If the word is not wholly inside.
    fn word(&self, offset: usize) -> &AtomicU32;
    /// Copies `bytes` to `offset`. Concurrent readers and writers may leave or see a mixture.
    ///
    /// # Panics
    /// If the range is not inside.
    fn copy_in(&self, offset: usize, bytes: &[u8]);
    /// Copies from `offset`. With a concurrent writer the result is a mixture.
    ///
    /// # Panics
    /// If the range is not inside.
    fn copy_out(&self, offset: usize, bytes: &mut [u8]);
    /// [`copy_in`](Self::copy_in) of words at a multiple of 4.
    fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
        self.copy_in(offset, words.as_bytes());
    }
    /// [`copy_out`](Self::copy_out) of words at a multiple of 4.
    fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
        let mut words = [0; N];
        self.copy_out(offset, words.as_mut_bytes());
        words
    }
}

#[cfg(not(loom))]
#[inline(always)] // as in `FixedMemory`, whose size the compiler then knows
fn sealed_word(memory: &SealedMemory, offset: usize) -> &AtomicU32 {
    // The layout's size was compared with the memory's length.
    memory.word_inside(offset)
}

#[cfg(loom)]
fn sealed_word(_memory: &SealedMemory, _offset: usize) -> &AtomicU32 {
    unreachable!("loom's words lie in no mapping; its models have memory of their own")
}

/// Implements [`Memory`] by the methods of another type.
macro_rules! forwarded {
    ([$($generics:tt)*] $memory:ty => $to:ty, $word:path) => {
        impl<$($generics)*> Memory for $memory {
            fn len(&self) -> usize {
                <$to>::len(self)
            }
            fn word(&self, offset: usize) -> &AtomicU32 {
                $word(self, offset)
            }
            fn copy_in(&self, offset: usize, bytes: &[u8]) {
                <$to>::copy_in(self, offset, bytes);
            }
            fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
                <$to>::copy_out(self, offset, bytes);
            }
            fn put_words<const N: usize>(&self, offset: usize, words: [u32; N]) {
                <$to>::put_words(self, offset, words);
            }
            fn words<const N: usize>(&self, offset: usize) -> [u32; N] {
                <$to>::words(self, offset)
            }
        }
    };
}
forwarded!([] SealedMemory => SealedMemory, sealed_word);
forwarded!([const LEN: usize] FixedMemory<LEN> => SealedMemory, sealed_word);
forwarded!([M: Memory] &M => M, M::word);
forwarded!([M: Memory] Arc<M> => M, M::word);

/// Invalid content that another process left in shared memory. It closes that channel, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corrupt {
    /// The memory is shorter than its layout.
    TooSmall,
    /// The producer's or consumer's count is impossible.
    RingCount,
    /// An unused call slot is not idle.
    SlotBusy,
    /// A word has a state that call slots do not have.
    SlotState,
    /// A size is beyond what a call slot holds.
    SlotSize,
    /// More waiting threads than a call carries.
    Lineage,
    /// Objects that no call slot carries, or scattered buffers that break a rule.
    Objects,
}

impl Corrupt {
    /// Number of this reason for [`call_slot::CallSlots::close_as`]; never 0.
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32 + 1
    }
}

impl From<ShapeError> for Corrupt {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::TooLarge => Self::SlotSize,
            ShapeError::Objects => Self::Objects,
        }
    }
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::TooSmall => "it is shorter than its layout",
            Self::RingCount => "an impossible count of records",
            Self::SlotBusy => "a free call slot that is not idle",
            Self::SlotState => "an unknown state of a call slot",
            Self::SlotSize => "a payload larger than a call slot holds",
            Self::Lineage => "more waiting threads than a call carries",
            Self::Objects => "objects that its sender should have refused",
        };
        write!(f, "memory shared with another process makes no sense ({what}); that channel is closed")
    }
}

impl std::error::Error for Corrupt {}

/// Checks that `memory` is large enough for a layout.
fn holds<M: Memory>(memory: &M, size: usize) -> Result<(), Corrupt> {
    if memory.len() < size { Err(Corrupt::TooSmall) } else { Ok(()) }
}
