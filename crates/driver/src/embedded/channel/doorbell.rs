//! Room: the doorbells of a process: which of its threads to wake, which channels have calls.
//! Not here: what is only there to be looked at (`shown`), waiting (`wait`), choosing a thread (`process`), the calls (`lane`).
//!
//! Layout, in cache lines of 64 bytes:
//! - 0: `listener`: slot + 1 of the thread to wake for new work, 0 for none; `inherit`: the mode of
//!   priority inheritance, set by the broker; `used`: slots that ever had a thread;
//!   `queued`: calls that no thread has taken; then what `shown` keeps there.
//! - 1 to 3: `summary`, one bit per word of ready bits; 32 words of 32 ready bits, one bit per
//!   channel. The first 480 channels share the summary's line.
//! - from 256: 1024 blocks of six lines: a bell, a line that nobody uses, since CPUs fetch lines in pairs, and
//!   64 words, counters and more (`shown`), which no other process writes. So a process of up to ten threads
//!   has all of it in one page: with many processes on a CPU each page costs a walk of the page tables.
//!
//! All of it is hints. Whoever is misled wakes late: sleepers look again every second.
//!
//! The rule of wake-ups: who has published something passes a full fence and then looks for
//! sleepers; who wants to sleep says so, passes a full fence and then looks for something
//! published. One of the two sees the other.

mod shown;

use std::io;

use sys::fixed_memory::FixedMemory;
use sys::futex::Waited;
use sys::sync::{AtomicU32, Ordering, full_fence, set_bits_and_fence};

use super::{Corrupt, Memory, holds};
pub use shown::{COUNTERS, JOINED, NEED_RETURN, POLLS, SERVING, of_command, of_return};

/// Threads that a process may have at a time.
pub const SLOTS: u32 = 1024;

/// Channels that may lead to a process at a time.
pub const CHANNELS: u32 = 1024;

const LISTENER: usize = 0;
const INHERIT: usize = 4;
const USED: usize = 8;
const QUEUED: usize = 12;
const SUMMARY: usize = 64;
const READY: usize = 68;
const BELLS: usize = 256;
/// Bytes of a bell's block.
const BELL: usize = COUNTS + COUNT;
/// Where its counters begin.
const COUNTS: usize = 128;
const COUNT: usize = 256;

/// Bytes of the doorbells' memory: whole pages.
pub const SIZE: usize = (BELLS + SLOTS as usize * BELL).next_multiple_of(4096);

// Of a bell.
/// 1 while its thread sleeps or is about to; the futex that it sleeps on.
const SLEEPING: usize = 0;
const TID: usize = 8;
const GENERATION: usize = 12;
const LOOPER: usize = 16;

/// Where they lie.
pub type BellMemory = FixedMemory<SIZE>;

/// All doorbells of a process.
#[derive(Clone, Debug)]
pub struct Doorbells<M> {
    memory: M,
}

impl<M: Memory> Doorbells<M> {
    /// In memory that is all 0 at first.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        holds(&memory, SIZE)?;
        Ok(Self { memory })
    }

    /// The bell of a thread's slot; `None` beyond [`SLOTS`].
    #[inline]
    pub fn slot(&self, slot: u32) -> Option<Bell<'_, M>> {
        (slot < SLOTS).then(|| Bell { memory: &self.memory, base: BELLS + slot as usize * BELL, slot })
    }

    /// The slot of the thread to wake for new work.
    #[inline]
    pub fn listener(&self) -> Option<u32> {
        self.memory.word(LISTENER).load(Ordering::Relaxed).checked_sub(1)
    }

    /// A thread offers to be woken for new work, before it announces its sleep and looks for work.
    pub fn set_listener(&self, slot: Option<u32>) {
        self.memory.word(LISTENER).store(slot.map_or(0, |slot| slot.wrapping_add(1)), Ordering::Relaxed);
    }

    /// The listener steps back, or whoever chooses names another: sets the next one, then looks
    /// whether something came for which nobody was woken because of that. Returns the bell to
    /// [`wake`](Bell::wake), if so.
    ///
    /// `anything` says whether there is work that a listener should do (ready channels, inbox).
    pub fn hand_over(&self, next: Option<u32>, anything: impl FnOnce() -> bool) -> Option<Bell<'_, M>> {
        self.set_listener(next);
        // Pairs with the fence of whoever published (`post`, `ring_listener`): either they see the
        // next listener, or `anything` sees what they published. Guarded by
        // loom_a_stale_listener_loses_nothing.
        full_fence();
        let bell = self.slot(next?)?;
        (anything() && bell.needs_wake()).then_some(bell)
    }

    /// Marks a channel as having calls, and ends in the fence of the rule of wake-ups: the caller then
    /// looks at what else depends on having published (the gate), and for sleepers with
    /// [`listener_to_wake`](Self::listener_to_wake) or [`Bell::needs_wake`]. A channel beyond
    /// [`CHANNELS`] is ignored.
    pub fn post(&self, channel: u32) {
        if channel < CHANNELS {
            let word = channel / 32;
            // Release each: who finds the summary finds the bit, who finds the bit finds the call.
            self.ready_word(word).fetch_or(1 << (channel % 32), Ordering::Release);
            // Its fence pairs with those in `announce_sleep` and `hand_over`, and with that of `Lanes::shut`.
            // Guarded by loom_a_call_wakes_a_sleeper, loom_the_gate_or_the_caller.
            set_bits_and_fence(self.memory.word(SUMMARY), 1 << word);
        } else {
            full_fence();
        }
    }

    /// Whether any channel seems to have calls: one load.
    #[inline]
    pub fn anything_ready(&self) -> bool {
        self.memory.word(SUMMARY).load(Ordering::Acquire) != 0
    }

    /// Takes the marks of all channels that have some, ascending. Whoever takes a mark looks through
    /// that channel, and marks it again if it leaves calls behind. Marks that the iterator has not
    /// given when it is dropped are put back; then others may have looked meanwhile in vain, and
    /// [`hand_over`](Self::hand_over) or [`ring_listener`](Self::ring_listener) must follow.
    pub fn take_ready(&self) -> Ready<'_, M> {
        // An idle look only reads.
        let summary = self.memory.word(SUMMARY);
        let words = if summary.load(Ordering::Relaxed) == 0 { 0 } else { summary.swap(0, Ordering::Acquire) };
        Ready { bells: self, words, word: 0, bits: 0 }
    }

    /// After something was published for any thread: the listener's bell, to [`wake`](Bell::wake), if
    /// it sleeps.
    pub fn ring_listener(&self) -> Option<Bell<'_, M>> {
        // As the fence in `post`. Guarded by loom_a_record_wakes_a_sleeper.
        full_fence();
        self.listener_to_wake()
    }

    /// [`ring_listener`](Self::ring_listener) without its fence: after [`post`](Self::post).
    #[inline]
    pub fn listener_to_wake(&self) -> Option<Bell<'_, M>> {
        let bell = self.slot(self.listener()?)?;
        bell.needs_wake().then_some(bell)
    }

    /// After something was published for any thread and nobody sleeps: the listener's bell if that is a looper
    /// without a call, which has answered its last one and comes back for work, or serves a oneway call that
    /// whoever is urgent waits for. It may be raised. Not one that polls: that has other things to do. A hint.
    pub fn listener_on_its_way(&self) -> Option<Bell<'_, M>> {
        let bell = self.slot(self.listener()?)?;
        (bell.depth() == 0 && bell.looper() & JOINED != 0 && bell.looper() & POLLS == 0).then_some(bell)
    }

    /// The mode of priority inheritance, a number of the broker's.
    #[inline]
    pub fn inherit(&self) -> u32 {
        self.memory.word(INHERIT).load(Ordering::Relaxed)
    }

    /// Sets it (the broker).
    pub fn set_inherit(&self, mode: u32) {
        self.memory.word(INHERIT).store(mode, Ordering::Relaxed);
    }

    /// Slots that ever had a thread: those below this number.
    pub fn used(&self) -> u32 {
        self.memory.word(USED).load(Ordering::Acquire).min(SLOTS)
    }

    /// How many calls wait for any thread.
    pub fn queued(&self) -> u32 {
        self.memory.word(QUEUED).load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_queued(&self, calls: u32) {
        self.memory.word(QUEUED).store(calls, Ordering::Relaxed);
    }

    /// `word` is below 32.
    #[inline]
    fn ready_word(&self, word: u32) -> &AtomicU32 {
        self.memory.word(READY + word as usize * 4)
    }
}

/// Channels whose marks were taken: [`Doorbells::take_ready`].
#[derive(Debug)]
pub struct Ready<'d, M: Memory> {
    bells: &'d Doorbells<M>,
    /// Words still to be looked at, as bits of the summary.
    words: u32,
    /// The word that `bits` came from.
    word: u32,
    bits: u32,
}

impl<M: Memory> Iterator for Ready<'_, M> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.bits == 0 {
            if self.words == 0 {
                return None;
            }
            self.word = self.words.trailing_zeros();
            self.words &= self.words - 1;
            // Acquire: pairs with the Release in `post`; what was published before is seen.
            self.bits = self.bells.ready_word(self.word).swap(0, Ordering::Acquire);
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(self.word * 32 + bit)
    }
}

impl<M: Memory> Drop for Ready<'_, M> {
    fn drop(&mut self) {
        let mut words = self.words;
        if self.bits != 0 {
            self.bells.ready_word(self.word).fetch_or(self.bits, Ordering::Release);
            words |= 1 << self.word;
        }
        if words != 0 {
            self.bells.memory.word(SUMMARY).fetch_or(words, Ordering::Release);
        }
    }
}

/// The bell of one thread.
#[derive(Debug)]
pub struct Bell<'d, M> {
    memory: &'d M,
    base: usize,
    slot: u32,
}

impl<M> Clone for Bell<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Bell<'_, M> {}

impl<M: Memory> Bell<'_, M> {
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(self.base + offset)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.slot
    }

    /// A thread moves into the slot; its new generation.
    #[must_use]
    pub fn move_in(&self, tid: u32) -> u32 {
        let generation = self.generation().wrapping_add(1);
        self.word(SLEEPING).store(0, Ordering::Relaxed);
        self.word(LOOPER).store(0, Ordering::Relaxed);
        self.set_depth(0);
        self.word(TID).store(tid, Ordering::Relaxed);
        self.word(GENERATION).store(generation, Ordering::Relaxed);
        self.memory.word(USED).fetch_max(self.slot + 1, Ordering::Release);
        generation
    }

    /// The thread is gone.
    pub fn move_out(&self) {
        self.word(TID).store(0, Ordering::Relaxed);
        self.word(SLEEPING).store(0, Ordering::Relaxed);
        self.end_waiting();
        self.set_serving([0; SERVING]);
    }

    /// The thread will [`sleep`](Self::sleep) unless it finds something now.
    #[inline]
    pub fn announce_sleep(&self) {
        self.word(SLEEPING).store(1, Ordering::Relaxed);
        // Pairs with the fences in `post`, `ring_listener` and `ring`: either the thread finds what was
        // published, or who published finds it sleeping. Guarded by loom_a_call_wakes_a_sleeper,
        // loom_a_record_wakes_a_sleeper, loom_a_reply_wakes_its_caller.
        full_fence();
    }

    /// Sleeps until somebody rings, if nobody did since [`announce_sleep`](Self::announce_sleep); no
    /// longer than until `until_ns` on the monotonic clock (or `FOREVER`). May return for no reason.
    ///
    /// # Errors
    /// `EINTR`: a signal came.
    pub fn sleep(&self, until_ns: u64) -> io::Result<Waited> {
        sys::sync::sleep_on(self.word(SLEEPING), 1, until_ns)
    }

    /// The thread looks for itself again.
    #[inline]
    pub fn awake(&self) {
        // Most often the waker has done it; then the line need not be written. Acquire: pairs with the
        // Release in `needs_wake`.
        if self.word(SLEEPING).load(Ordering::Acquire) != 0 {
            self.word(SLEEPING).store(0, Ordering::Relaxed);
        }
    }

    /// After something was published for this thread: whether it must be woken, by [`wake`](Self::wake).
    #[inline]
    #[must_use]
    pub fn ring(&self) -> bool {
        // As the fence in `post`. Guarded by loom_a_reply_wakes_its_caller.
        full_fence();
        self.needs_wake()
    }

    /// [`ring`](Self::ring) without its fence: after [`Doorbells::post`].
    #[inline]
    #[must_use]
    pub fn needs_wake(&self) -> bool {
        let sleeping = self.word(SLEEPING);
        // One of those who ring at the same time wakes. Should it be killed before it does, the
        // sleeper looks by itself after a while.
        // From then on nobody falls asleep on the word, so the wake-up may come late but not be missed.
        // Release: who was woken sees what was published. Guarded by loom_a_call_wakes_a_sleeper.
        sleeping.load(Ordering::Relaxed) != 0 && sleeping.swap(0, Ordering::Release) != 0
    }

    /// Wakes the thread: one system call.
    pub fn wake(&self) {
        sys::sync::wake_one(self.word(SLEEPING));
    }

    /// Whether the thread sleeps or is about to. A hint.
    #[inline]
    #[must_use]
    pub fn is_sleeping(&self) -> bool {
        self.word(SLEEPING).load(Ordering::Relaxed) != 0
    }

    /// Kernel number of the thread in the slot; 0 for none. A hint.
    #[inline]
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.word(TID).load(Ordering::Relaxed)
    }

    /// How many threads have had the slot.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.word(GENERATION).load(Ordering::Relaxed)
    }

    /// The thread's looper state, as bits of the state file.
    #[inline]
    #[must_use]
    pub fn looper(&self) -> u32 {
        self.word(LOOPER).load(Ordering::Relaxed)
    }

    /// Sets it; [`NEED_RETURN`] is set and cleared apart.
    pub fn set_looper(&self, bits: u32) {
        let kept = self.looper() & NEED_RETURN;
        self.word(LOOPER).store(bits | kept, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
pub(super) mod models;
#[cfg(all(test, not(loom)))]
mod tests;
