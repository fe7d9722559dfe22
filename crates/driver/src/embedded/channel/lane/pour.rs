//! Room: payloads in and out of a lane: small ones at once, large ones while the other side copies too.
//! Not here: where they lie (`place`).
//!
//! The sender of a large payload publishes first, then counts what it has copied in a word; the receiver
//! copies what is counted. Two CPUs so copy at the same time. Whoever spins meanwhile asks for the cache lines
//! that it will write next ([`Ahead`]), which the other side's CPU has had since it read them. A round trip of 64 KiB
//! between two CPUs (`hop`, spinning) took 22.2 us with plain copies, 16.7 us with both copying at the same time, 9.0 us with
//! lines that are there before they are written. On CPUs where lines that both have read are slow to write, whoever has copied a
//! payload out leaves its lines to be fetched from one cache only (`SealedMemory::take_over`). A receiver that waits for a slow sender
//! spins a little, then yields, then sleeps in short steps, and gives up when the sender is gone.

use std::time::Duration;

use sys::sync::{Ordering, spin_loop};

use super::{CLOSED, Corrupt, Lanes, Memory, Place, Source};

/// Payloads of this many bytes and more are poured.
pub const CUT_FROM: usize = 16 << 10;

/// Bytes between two counts.
pub(super) const STEP: usize = 16 << 10;

/// Bytes that are got ready between two looks for what has come.
const AT_ONCE: usize = 1024;

const SPINS: u32 = 2000;
const YIELDS: u32 = 100;
const NAP: Duration = Duration::from_micros(50);
/// About 5 s of naps: a sender that is alive has had its turn by then.
const NAPS: u32 = 50_000;

/// A part of a payload that may be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its offset in the payload.
    pub at: usize,
    /// Its offset in the channel's memory.
    pub from: usize,
    /// Its length.
    pub len: usize,
}

impl<M: Memory> Lanes<M> {
    /// Before publishing: a small payload's bytes; nothing counted yet of a large one.
    #[inline]
    pub(super) fn put(&self, place: &Place, data: &(impl Source + ?Sized)) {
        match place.written {
            None => {
                if self.poured.load(Ordering::Relaxed) != 0 {
                    self.poured.store(0, Ordering::Relaxed);
                }
                data.parts(|at, bytes| {
                    debug_assert!(at + bytes.len() <= place.len, "a part that its shape lacks");
                    self.memory.copy_in(place.at + at, bytes);
                });
            }
            Some(written) => self.memory.word(written).store(0, Ordering::Relaxed),
        }
    }

    /// After publishing: a large payload's bytes.
    #[inline]
    pub(super) fn pour(&self, place: impl Fn(usize) -> Place, data: &(impl Source + ?Sized)) {
        let Ok(shape) = data.shape() else { return };
        let place = place(shape.sent());
        let Some(written) = place.written else { return };
        self.poured.store(place.len as u32, Ordering::Relaxed);
        let written = self.memory.word(written);
        let mut counted = 0;
        data.parts(|at, bytes| {
            for (step, bytes) in bytes.chunks(STEP).enumerate() {
                let at = at + step * STEP;
                self.memory.copy_in(place.at + at, bytes);
                if at + bytes.len() - counted >= STEP {
                    counted = at + bytes.len();
                    // Release: bytes that are counted are there. Guarded by loom_a_large_call_arrives_whole.
                    written.store(counted as u32, Ordering::Release);
                }
            }
        });
        if counted < place.len {
            // Release: as above.
            written.store(place.len as u32, Ordering::Release);
        }
    }

    /// Gives the pieces of a payload in order, as they become readable; gets `ahead` ready where it has to wait.
    #[inline]
    pub(super) fn fetch(
        &self,
        place: &Place,
        ahead: impl FnOnce() -> Ahead,
        gone: impl FnMut() -> bool,
        mut copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        if let Some(piece) = place.whole() {
            copy(piece);
            return Ok(());
        }
        let Some(written) = place.written else { return Ok(()) };
        self.fetch_poured(place, written, ahead(), gone, copy)
    }

    #[inline(never)]
    fn fetch_poured(
        &self,
        place: &Place,
        written: usize,
        mut ahead: Ahead,
        mut gone: impl FnMut() -> bool,
        mut copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        let written = self.memory.word(written);
        let (mut done, mut waited) = (0, 0);
        while done < place.len {
            let upto = written.load(Ordering::Acquire) as usize;
            if upto > place.len || upto < done {
                return Err(Corrupt::Written);
            }
            if upto == done {
                if !ahead.step(self) {
                    self.wait_for_sender(waited, &mut gone)?;
                    waited += 1;
                }
                continue;
            }
            copy(Piece { at: done, from: place.at + done, len: upto - done });
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

/// What this side's next payload is expected to be written over, as far as it is not got ready yet. It only costs
/// time that a spinning thread has, and nothing depends on it.
#[derive(Debug)]
pub struct Ahead {
    at: usize,
    left: usize,
}

impl Ahead {
    /// Of a payload as long as the last one that was poured, if any was.
    #[inline]
    pub(super) fn of<M: Memory>(lanes: &Lanes<M>, place: impl Fn(usize) -> Place) -> Self {
        let Place { at, len, .. } = place(lanes.poured.load(Ordering::Relaxed) as usize);
        Self { at, left: len }
    }

    /// Gets the next part ready; `false` if there is none left.
    #[inline]
    pub fn step<M: Memory>(&mut self, lanes: &Lanes<M>) -> bool {
        if self.left == 0 {
            return false;
        }
        let part = self.left.min(AT_ONCE);
        lanes.memory.expect_writes(self.at, part);
        (self.at, self.left) = (self.at + part, self.left - part);
        true
    }
}
