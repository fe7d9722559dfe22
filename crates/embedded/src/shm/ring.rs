//! A ring of records in shared memory, from one producer to one consumer.
//! Not here: the records' contents (`rpc::protocol`), waking the consumer (`doorbell`).
//!
//! Layout: the producer's count at 0, the consumer's at 64, `starved` at 128 (each alone on its cache line),
//! the records from 256. Counts run freely and wrap; each side keeps its own privately and only checks the
//! other's.
//!
//! If the ring is full, the producer keeps its records and sets `starved`. The consumer, after draining the
//! ring, sees that and asks for more.

use sys::fixed_memory::FixedMemory;
use sys::sync::{AtomicU32, Ordering, full_fence};

use super::{Corrupt, Memory, holds};

/// Size of a record in bytes.
pub const RECORD: usize = crate::rpc::protocol::RECORD_SIZE;

/// Number of records in a shipping ring; a power of two.
pub const SLOTS: u32 = 64;

const HEAD: usize = 0;
const TAIL: usize = 64;
const STARVED: usize = 128;
const RECORDS: usize = 256;

/// Size of a shipping ring in bytes.
pub const SIZE: usize = size_of_ring(SLOTS);

/// Memory of a shipping ring.
pub type RingMemory = FixedMemory<SIZE>;

const fn size_of_ring(slots: u32) -> usize {
    RECORDS + slots as usize * RECORD
}

fn record_at(count: u32, slots: u32) -> usize {
    RECORDS + (count & (slots - 1)) as usize * RECORD
}

/// Whether a ring seems to hold a record, for threads without access to its consumer. A hint.
pub fn has_records<M: Memory>(memory: &M) -> bool {
    memory.word(HEAD).load(Ordering::Acquire) != memory.word(TAIL).load(Ordering::Relaxed)
}

/// The writing end of a ring.
#[derive(Debug)]
pub struct Producer<M, const N: u32 = SLOTS> {
    memory: M,
    head: u32,
    /// The consumer's count at the last look.
    tail: u32,
}

impl<M: Memory, const N: u32> Producer<M, N> {
    /// The producer of a fresh ring.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        const { assert!(N.is_power_of_two()) };
        holds(&memory, size_of_ring(N))?;
        Ok(Self { memory, head: 0, tail: 0 })
    }

    /// Appends a record, visible to the consumer on return. Returns false if the ring is full: the consumer
    /// was told (see [`Consumer::take_starved`]) and will ask for more.
    ///
    /// # Errors
    /// [`Corrupt::RingCount`]: the consumer claims to have read what was never written.
    pub fn push(&mut self, record: &[u8; RECORD]) -> Result<bool, Corrupt> {
        if !self.has_room()? && !self.has_room_after_all()? {
            return Ok(false);
        }
        self.memory.copy_in(record_at(self.head, N), record);
        self.head = self.head.wrapping_add(1);
        // Release: a consumer that sees the count sees the record's bytes.
        self.memory.word(HEAD).store(self.head, Ordering::Release);
        Ok(true)
    }

    /// Number of records that were ever appended, which wraps.
    pub fn pushed(&self) -> u32 {
        self.head
    }

    /// The records that the consumer has not taken, as far as it says. What they hold is only a hint: the
    /// consumer's process can write them.
    pub fn unread(&self) -> impl Iterator<Item = [u8; RECORD]> {
        let left = self.head.wrapping_sub(self.memory.word(TAIL).load(Ordering::Acquire));
        (1..=if left <= N { left } else { 0 }).rev().map(|back| {
            let mut record = [0; RECORD];
            self.memory.copy_out(record_at(self.head.wrapping_sub(back), N), &mut record);
            record
        })
    }

    fn has_room(&mut self) -> Result<bool, Corrupt> {
        if self.head.wrapping_sub(self.tail) < N {
            return Ok(true);
        }
        // Acquire: the consumer has copied the record out before its place is written again.
        self.tail = self.memory.word(TAIL).load(Ordering::Acquire);
        match self.head.wrapping_sub(self.tail) {
            used if used < N => Ok(true),
            used if used == N => Ok(false),
            _ => Err(Corrupt::RingCount),
        }
    }

    fn has_room_after_all(&mut self) -> Result<bool, Corrupt> {
        self.memory.word(STARVED).store(1, Ordering::Relaxed);
        // Pairs with the fence in `take_starved`: either this load sees the consumer's last count, or the
        // consumer sees `starved`. Guarded by loom_no_more_is_lost.
        full_fence();
        self.has_room()
    }
}

/// The reading end of a ring.
#[derive(Debug)]
pub struct Consumer<M, const N: u32 = SLOTS> {
    memory: M,
    tail: u32,
    /// The producer's count at the last look.
    head: u32,
    /// Whether records were taken since `starved` was last checked.
    took: bool,
}

impl<M: Memory, const N: u32> Consumer<M, N> {
    /// The consumer of a ring from which nothing was read yet.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        const { assert!(N.is_power_of_two()) };
        holds(&memory, size_of_ring(N))?;
        Ok(Self { memory, tail: 0, head: 0, took: false })
    }

    /// Takes the oldest record; false if there is none.
    ///
    /// # Errors
    /// [`Corrupt::RingCount`]: the producer claims more records than the ring holds.
    pub fn pop(&mut self, record: &mut [u8; RECORD]) -> Result<bool, Corrupt> {
        if self.head == self.tail {
            // Acquire: pairs with the Release in `push`.
            self.head = self.memory.word(HEAD).load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail) > N {
                self.head = self.tail;
                return Err(Corrupt::RingCount);
            }
            if self.head == self.tail {
                return Ok(false);
            }
        }
        self.memory.copy_out(record_at(self.tail, N), record);
        self.tail = self.tail.wrapping_add(1);
        // Release: the record is copied before the producer sees its place free.
        self.memory.word(TAIL).store(self.tail, Ordering::Release);
        self.took = true;
        Ok(true)
    }

    /// Returns whether the producer ran out of room and must be told that it has some again. Call it when
    /// [`pop`](Self::pop) found nothing; free if nothing was taken since.
    pub fn take_starved(&mut self) -> bool {
        if !std::mem::take(&mut self.took) {
            return false;
        }
        let starved: &AtomicU32 = self.memory.word(STARVED);
        // Pairs with the fence in `has_room_after_all`.
        full_fence();
        if starved.load(Ordering::Relaxed) == 0 {
            return false;
        }
        starved.store(0, Ordering::Relaxed);
        true
    }
}

#[cfg(all(test, loom))]
pub(super) mod models;
#[cfg(all(test, not(loom)))]
mod tests;
