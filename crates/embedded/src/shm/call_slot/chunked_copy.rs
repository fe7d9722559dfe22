//! Copies payloads into and out of a call slot: small ones at once, large ones in chunks on both sides at the
//! same time.
//! Not here: where payloads lie (`payload_range`).
//!
//! The sender of a large payload publishes the call first, then counts in a word what it has copied; the
//! receiver copies what is counted. So two CPUs copy at the same time. A spinning thread meanwhile prefetches
//! the cache lines that it will write next ([`Ahead`]), which the other CPU has owned since it read them. A
//! round trip of 64 KiB between two spinning CPUs took 22.2 us with plain copies, 16.7 us with both sides
//! copying at the same time, and 9.0 us with prefetched lines. On CPUs where shared lines are slow to write,
//! the receiver takes over the lines of a payload that it has copied, so that the next writer fetches them
//! from one cache only (`SealedMemory::take_over`). A receiver that waits for a slow sender spins a little,
//! then yields, then sleeps in short steps, and gives up when the sender is gone.

use std::time::Duration;

use sys::sync::{Ordering, spin_loop};

use super::payload_range::{PayloadRange, Piece};
use super::{CLOSED, CallSlots, Corrupt, Memory, Source};

/// Bytes between two updates of the count.
pub(super) const STEP: usize = 16 << 10;

/// Bytes prefetched between two checks.
const AT_ONCE: usize = 1024;

const SPINS: u32 = 2000;
const YIELDS: u32 = 100;
const NAP: Duration = Duration::from_micros(50);
/// Naps before giving up, about 5 s: a live sender has run by then.
const NAPS: u32 = 50_000;

impl<M: Memory> CallSlots<M> {
    /// Step before publishing: copies a small payload; sets the count of a large one to 0.
    #[inline]
    pub(super) fn put(&self, range: &PayloadRange, data: &(impl Source + ?Sized)) {
        match range.written {
            None => {
                if self.last_large.load(Ordering::Relaxed) != 0 {
                    self.last_large.store(0, Ordering::Relaxed);
                }
                data.parts(|at, bytes| {
                    debug_assert!(at + bytes.len() <= range.len, "a part that its shape lacks");
                    self.memory.copy_in(range.at + at, bytes);
                });
            }
            Some(written) => self.memory.word(written).store(0, Ordering::Relaxed),
        }
    }

    /// Step after publishing: copies a large payload in chunks.
    #[inline]
    pub(super) fn copy_in_chunks(
        &self,
        range: impl Fn(usize) -> PayloadRange,
        data: &(impl Source + ?Sized),
    ) {
        let Ok(shape) = data.shape() else { return };
        let range = range(shape.sent());
        let Some(written) = range.written else { return };
        self.last_large.store(range.len as u32, Ordering::Relaxed);
        let written = self.memory.word(written);
        let mut counted = 0;
        data.parts(|at, bytes| {
            for (step, bytes) in bytes.chunks(STEP).enumerate() {
                let at = at + step * STEP;
                self.memory.copy_in(range.at + at, bytes);
                if at + bytes.len() - counted >= STEP {
                    counted = at + bytes.len();
                    // Release: a receiver that sees the count sees the bytes. Guarded by
                    // loom_a_large_call_arrives_whole.
                    written.store(counted as u32, Ordering::Release);
                }
            }
        });
        if counted < range.len {
            // Release: as above.
            written.store(range.len as u32, Ordering::Release);
        }
    }

    /// Yields the pieces of a payload in order, as they become readable; prefetches `ahead` while waiting.
    #[inline]
    pub(super) fn fetch(
        &self,
        range: &PayloadRange,
        ahead: impl FnOnce() -> Ahead,
        gone: impl FnMut() -> bool,
        mut copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        if let Some(piece) = range.whole() {
            copy(piece);
            return Ok(());
        }
        let Some(written) = range.written else { return Ok(()) };
        self.fetch_chunks(range, written, ahead(), gone, copy)
    }

    #[inline(never)]
    fn fetch_chunks(
        &self,
        range: &PayloadRange,
        written: usize,
        mut ahead: Ahead,
        mut gone: impl FnMut() -> bool,
        mut copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        let written = self.memory.word(written);
        let (mut done, mut waited) = (0, 0);
        while done < range.len {
            let upto = written.load(Ordering::Acquire) as usize;
            if upto > range.len || upto < done {
                return Err(Corrupt::Written);
            }
            if upto == done {
                if !ahead.step(self) {
                    self.wait_for_sender(waited, &mut gone)?;
                    waited += 1;
                }
                continue;
            }
            copy(Piece { at: done, from: range.at + done, len: upto - done });
            (done, waited) = (upto, 0);
        }
        Ok(())
    }

    fn wait_for_sender(&self, waited: u32, gone: &mut impl FnMut() -> bool) -> Result<(), Corrupt> {
        if waited < SPINS {
            spin_loop();
            return Ok(());
        }
        if self.gate() & CLOSED != 0 || gone() || waited > SPINS + YIELDS + NAPS {
            return Err(Corrupt::Stalled);
        }
        if waited < SPINS + YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        Ok(())
    }
}

/// The memory that this side's next payload will probably occupy, as far as it is not prefetched yet.
/// Prefetching uses only the time of a spinning thread, and nothing depends on it.
#[derive(Debug)]
pub struct Ahead {
    at: usize,
    left: usize,
}

impl Ahead {
    /// Expects a payload as long as the last large one, if any.
    #[inline]
    pub(super) fn of<M: Memory>(call_slots: &CallSlots<M>, range: impl Fn(usize) -> PayloadRange) -> Self {
        let PayloadRange { at, len, .. } = range(call_slots.last_large.load(Ordering::Relaxed) as usize);
        Self { at, left: len }
    }

    /// Prefetches the next part; false if none is left.
    #[inline]
    pub fn step<M: Memory>(&mut self, call_slots: &CallSlots<M>) -> bool {
        if self.left == 0 {
            return false;
        }
        let part = self.left.min(AT_ONCE);
        call_slots.memory.expect_writes(self.at, part);
        (self.at, self.left) = (self.at + part, self.left - part);
        true
    }
}
