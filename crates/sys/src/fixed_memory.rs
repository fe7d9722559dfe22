//! Sealed memory of a constant size, so that the compiler drops checks of constant offsets.
//! Not here: the memory itself, and every access to it (`sealed_memory`).

use std::io;
use std::ops::Deref;

use crate::sealed_memory::SealedMemory;

/// [`SealedMemory`] of `LEN` bytes.
///
/// # Invariants
/// The memory inside is that long.
#[derive(Debug)]
pub struct FixedMemory<const LEN: usize>(SealedMemory);

impl<const LEN: usize> FixedMemory<LEN> {
    /// Takes memory of exactly `LEN` bytes.
    ///
    /// # Errors
    /// `EINVAL`: another size.
    pub fn new(memory: SealedMemory) -> io::Result<Self> {
        if memory.len() == LEN { Ok(Self(memory)) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }
}

impl<const LEN: usize> Deref for FixedMemory<LEN> {
    type Target = SealedMemory;

    #[inline(always)] // only where it is compiled into does the compiler know the size
    fn deref(&self) -> &SealedMemory {
        // SAFETY: so it was when this was made (Invariants), and a mapping's size does not change.
        unsafe { std::hint::assert_unchecked(self.0.len() == LEN) };
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn its_size_is_the_one_that_it_says() {
        let memory = SealedMemory::create(4096).expect("memfd");
        let memory = FixedMemory::<4096>::new(memory).expect("the same");
        assert_eq!(memory.len(), 4096);
        memory.word(4092).expect("inside").store(7, Ordering::Relaxed);
        assert_eq!(memory.words::<1>(4092), [7]);
        assert!(memory.word(4096).is_none() && memory.word(usize::MAX - 3).is_none());
        let memory = SealedMemory::create(8192).expect("memfd");
        assert!(FixedMemory::<4096>::new(memory).is_err());
    }
}
