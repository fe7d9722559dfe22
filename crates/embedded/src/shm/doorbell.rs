//! The doorbells of a process: which of its threads to wake, and which channels have calls.
//! Not here: statistics beside the bells (`thread_stats`), waiting (`wait`), choosing a thread
//! (`client::core`), the calls (`call_slot`).
//!
//! Layout, in cache lines of 64 bytes:
//! - 0: `listener`: slot + 1 of the thread to wake for new work, 0 for none; `inherit`: the mode of priority
//!   inheritance, set by the broker; `used`: slots that ever had a thread; `queued`: calls that no thread has
//!   taken; the header words of `thread_stats`; `room`: largest payload that fits, in bytes; `records`: records that
//!   the broker has put into the process's inbox.
//! - 1 to 3: `summary`, one bit per word of ready bits; 32 words of 32 ready bits, one bit per channel. The
//!   first 480 channels share the summary's line.
//! - from 256: 1024 blocks of six lines: a bell, an unused line, since CPUs fetch lines in pairs, and 64
//!   words of counters and more (`thread_stats`), which no other process writes. A process of up to ten
//!   threads has all of it in one page: with many processes on a CPU each page costs a page table walk.
//!
//! All of it is hints. A misled thread wakes late: sleepers look again every second.
//!
//! Wake-up rule: a thread that has published something passes a full fence, then looks for sleepers. A thread
//! that wants to sleep announces that, passes a full fence, then looks for something published. One of the
//! two sees the other.

mod thread_stats;

use std::io;

use sys::fixed_memory::FixedMemory;
use sys::futex::Waited;
use sys::sync::{AtomicU32, Ordering, full_fence, set_bits_and_fence};

use super::{Corrupt, Memory, holds};
pub use thread_stats::{COUNTERS, JOINED, NEED_RETURN, POLLS, SERVING, of_command, of_return};

/// Most threads of a process at a time.
pub const SLOTS: u32 = 1024;

/// Most channels that lead to a process at a time.
pub const CHANNELS: u32 = 1024;

const LISTENER: usize = 0;
const INHERIT: usize = 4;
const USED: usize = 8;
const QUEUED: usize = 12;
/// Offset of `room`, after the words of `thread_stats`.
const ROOM: usize = 28;
const RECORDS: usize = 32;
const SUMMARY: usize = 64;
const READY: usize = 68;
const BELLS: usize = 256;
/// Size of a bell's block in bytes.
const BELL: usize = COUNTS + COUNT;
/// Offset of the counters in a block.
const COUNTS: usize = 128;
const COUNT: usize = 256;

/// Size of the doorbells' memory in bytes: whole pages.
pub const SIZE: usize = (BELLS + SLOTS as usize * BELL).next_multiple_of(4096);

// Offsets in a bell.
/// Futex word: 1 while the thread sleeps or is about to.
const SLEEPING: usize = 0;
const TID: usize = 8;
const GENERATION: usize = 12;
const LOOPER: usize = 16;

/// Memory of the doorbells.
pub type BellMemory = FixedMemory<SIZE>;

/// All doorbells of a process.
#[derive(Clone, Debug)]
pub struct Doorbells<M> {
    memory: M,
}

impl<M: Memory> Doorbells<M> {
    /// Opens the doorbells in memory that is initially all 0.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        holds(&memory, SIZE)?;
        Ok(Self { memory })
    }

    /// The bell of a thread's slot; `None` beyond [`SLOTS`].
    pub fn slot(&self, slot: u32) -> Option<Bell<'_, M>> {
        (slot < SLOTS).then(|| Bell { memory: &self.memory, base: BELLS + slot as usize * BELL, slot })
    }

    /// The slot of the thread to wake for new work.
    pub fn listener(&self) -> Option<u32> {
        self.memory.word(LISTENER).load(Ordering::Relaxed).checked_sub(1)
    }

    /// Offers a thread for wake-ups, before it announces its sleep and looks for work.
    pub fn set_listener(&self, slot: Option<u32>) {
        self.memory.word(LISTENER).store(slot.map_or(0, |slot| slot.wrapping_add(1)), Ordering::Relaxed);
    }

    /// Replaces the listener, then checks for events whose sender may have found the old one. Returns the
    /// bell to [`wake`](Bell::wake), if any.
    ///
    /// `anything` tells whether a listener has work to do (ready channels, inbox).
    pub fn hand_over(&self, next: Option<u32>, anything: impl FnOnce() -> bool) -> Option<Bell<'_, M>> {
        self.set_listener(next);
        // Pairs with the publisher's fence (`post`, `ring_listener`): either the publisher sees the next
        // listener, or `anything` sees what was published. Guarded by loom_a_stale_listener_loses_nothing.
        full_fence();
        let bell = self.slot(next?)?;
        (anything() && bell.needs_wake()).then_some(bell)
    }

    /// Marks a channel as having calls, and ends with the full fence of the wake-up rule. The caller then
    /// checks what depends on having published: the gate, and sleepers, by
    /// [`listener_to_wake`](Self::listener_to_wake) or [`Bell::needs_wake`]. A channel beyond [`CHANNELS`] is
    /// ignored.
    pub fn post(&self, channel: u32) {
        if channel < CHANNELS {
            let word = channel / 32;
            // Release, twice: a reader that sees the summary sees the bit; a reader that sees the bit sees
            // the call.
            self.ready_word(word).fetch_or(1 << (channel % 32), Ordering::Release);
            // The fence pairs with those in `announce_sleep` and `hand_over`, and with that of
            // `CallSlots::shut`. Guarded by loom_a_call_wakes_a_sleeper, loom_the_gate_or_the_caller.
            set_bits_and_fence(self.memory.word(SUMMARY), 1 << word);
        } else {
            full_fence();
        }
    }

    /// Whether any channel seems to have calls: one load.
    pub fn anything_ready(&self) -> bool {
        self.memory.word(SUMMARY).load(Ordering::Acquire) != 0
    }

    /// Takes the marks of all channels that have some, in ascending order. The taker of a mark looks through
    /// that channel, and marks it again if it leaves calls behind. Marks not yet yielded when the iterator is
    /// dropped are put back; others may have looked in vain meanwhile, so [`hand_over`](Self::hand_over) or
    /// [`ring_listener`](Self::ring_listener) must follow.
    pub fn take_ready(&self) -> Ready<'_, M> {
        // Read-only when idle.
        let summary = self.memory.word(SUMMARY);
        let words = if summary.load(Ordering::Relaxed) == 0 { 0 } else { summary.swap(0, Ordering::Acquire) };
        Ready { bells: self, words, word: 0, bits: 0 }
    }

    /// Returns the listener's bell to [`wake`](Bell::wake), if it sleeps; called after publishing something
    /// for any thread.
    pub fn ring_listener(&self) -> Option<Bell<'_, M>> {
        // Like the fence in `post`. Guarded by loom_a_record_wakes_a_sleeper.
        full_fence();
        self.listener_to_wake()
    }

    /// [`ring_listener`](Self::ring_listener) without its fence, for use after [`post`](Self::post).
    pub fn listener_to_wake(&self) -> Option<Bell<'_, M>> {
        let bell = self.slot(self.listener()?)?;
        bell.needs_wake().then_some(bell)
    }

    /// Returns the listener's bell if it may be boosted: called after publishing something for any thread
    /// while nobody sleeps. The listener is a looper without a call, which returns for work after its last
    /// reply, or it serves a oneway call that an urgent thread waits for. Never a polling thread, which has
    /// other things to do. A hint.
    pub fn listener_on_its_way(&self) -> Option<Bell<'_, M>> {
        let bell = self.slot(self.listener()?)?;
        (bell.depth() == 0 && bell.looper() & JOINED != 0 && bell.looper() & POLLS == 0).then_some(bell)
    }

    /// Mode of priority inheritance, a number of the broker's.
    pub fn inherit(&self) -> u32 {
        self.memory.word(INHERIT).load(Ordering::Relaxed)
    }

    /// Sets the inheritance mode (broker only).
    pub fn set_inherit(&self, mode: u32) {
        self.memory.word(INHERIT).store(mode, Ordering::Relaxed);
    }

    /// Largest payload of a call or reply, in bytes, that fits the receiving area. A hint; values above a
    /// call slot's limit are not published.
    pub fn room(&self) -> u32 {
        self.memory.word(ROOM).load(Ordering::Relaxed)
    }

    /// Sets the room (the area's owner and the broker).
    pub fn set_room(&self, bytes: u32) {
        self.memory.word(ROOM).store(bytes, Ordering::Relaxed);
    }

    /// Number of records that the process's inbox has been given, which wraps. A caller reads it before it publishes a
    /// call (contract LP-08).
    pub fn records(&self) -> u32 {
        // Acquire: pairs with the Release in `set_records`. A callee that sees the call finds these records in its
        // inbox. Guarded by loom_a_call_comes_behind_the_records_that_it_counts.
        self.memory.word(RECORDS).load(Ordering::Acquire)
    }

    /// Sets that number (broker only), once the record is in the inbox and before its sender goes on.
    pub fn set_records(&self, count: u32) {
        self.memory.word(RECORDS).store(count, Ordering::Release);
    }

    /// Bound of the slots that ever had a thread.
    pub fn used(&self) -> u32 {
        self.memory.word(USED).load(Ordering::Acquire).min(SLOTS)
    }

    /// Number of calls that wait for any thread.
    pub fn queued(&self) -> u32 {
        self.memory.word(QUEUED).load(Ordering::Relaxed)
    }

    /// Sets the number of waiting calls.
    pub fn set_queued(&self, calls: u32) {
        self.memory.word(QUEUED).store(calls, Ordering::Relaxed);
    }

    /// A word of ready bits; `word` is below 32.
    fn ready_word(&self, word: u32) -> &AtomicU32 {
        self.memory.word(READY + word as usize * 4)
    }
}

/// Iterator over the channels whose marks were taken: [`Doorbells::take_ready`].
#[derive(Debug)]
pub struct Ready<'d, M: Memory> {
    bells: &'d Doorbells<M>,
    /// Words not yet visited, as bits of the summary.
    words: u32,
    /// Index of the word that `bits` came from.
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
            // Acquire: pairs with the Release in `post`, so that what was published before is seen.
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
    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(self.base + offset)
    }

    /// The slot number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.slot
    }

    /// Assigns the slot to a thread; returns the new generation.
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

    /// Whether the thread of this generation still has the slot.
    #[must_use]
    pub fn belongs_to(&self, generation: u32) -> bool {
        self.generation() == generation && self.tid() != 0
    }

    /// Frees the slot of a thread that is gone.
    pub fn move_out(&self) {
        self.word(TID).store(0, Ordering::Relaxed);
        self.word(SLEEPING).store(0, Ordering::Relaxed);
        self.end_waiting();
        self.set_serving([0; SERVING]);
    }

    /// Announces that the thread will [`sleep`](Self::sleep) unless it finds something now.
    pub fn announce_sleep(&self) {
        self.word(SLEEPING).store(1, Ordering::Relaxed);
        // Pairs with the fences in `post`, `ring_listener` and `ring`: either this thread finds what was
        // published, or the publisher finds it sleeping. Guarded by loom_a_call_wakes_a_sleeper,
        // loom_a_record_wakes_a_sleeper, loom_a_reply_wakes_its_caller.
        full_fence();
    }

    /// Sleeps until the bell is rung, unless it was since [`announce_sleep`](Self::announce_sleep); until
    /// `until_ns` on the monotonic clock at most (or `FOREVER`). May return without a reason.
    ///
    /// # Errors
    /// `EINTR`: a signal arrived.
    pub fn sleep(&self, until_ns: u64) -> io::Result<Waited> {
        sys::sync::sleep_on(self.word(SLEEPING), 1, until_ns)
    }

    /// Ends the announced sleep: the thread looks for work itself again.
    pub fn awake(&self) {
        // Most often the waker has cleared the word; then the line is not written. Acquire: pairs with the
        // Release in `needs_wake`.
        if self.word(SLEEPING).load(Ordering::Acquire) != 0 {
            self.word(SLEEPING).store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether the thread must be woken by [`wake`](Self::wake); called after publishing something
    /// for it.
    #[must_use]
    pub fn ring(&self) -> bool {
        // Like the fence in `post`. Guarded by loom_a_reply_wakes_its_caller.
        full_fence();
        self.needs_wake()
    }

    /// [`ring`](Self::ring) without its fence, for use after [`Doorbells::post`].
    #[must_use]
    pub fn needs_wake(&self) -> bool {
        let sleeping = self.word(SLEEPING);
        // One of several concurrent ringers wakes. If it is killed before it does, the sleeper looks by
        // itself after a while. After the swap nobody falls asleep on the word, so the wake-up may be late
        // but is not missed. Release: the woken thread sees what was published. Guarded by
        // loom_a_call_wakes_a_sleeper.
        sleeping.load(Ordering::Relaxed) != 0 && sleeping.swap(0, Ordering::Release) != 0
    }

    /// Wakes the thread, in one system call.
    pub fn wake(&self) {
        sys::sync::wake_one(self.word(SLEEPING));
    }

    /// Whether the thread sleeps or is about to. A hint.
    #[must_use]
    pub fn is_sleeping(&self) -> bool {
        self.word(SLEEPING).load(Ordering::Relaxed) != 0
    }

    /// Kernel thread id of the slot's thread; 0 for none. A hint.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.word(TID).load(Ordering::Relaxed)
    }

    /// Number of threads that have had the slot.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.word(GENERATION).load(Ordering::Relaxed)
    }

    /// Looper state of the thread, as the state file's bits.
    #[must_use]
    pub fn looper(&self) -> u32 {
        self.word(LOOPER).load(Ordering::Relaxed)
    }

    /// Sets the looper state, except [`NEED_RETURN`], which is changed separately.
    pub fn set_looper(&self, bits: u32) {
        let kept = self.looper() & NEED_RETURN;
        self.word(LOOPER).store(bits | kept, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
pub(super) mod models;
#[cfg(all(test, not(loom)))]
mod tests;
