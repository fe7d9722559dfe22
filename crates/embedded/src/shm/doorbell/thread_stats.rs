//! Statistics that a process publishes beside its bells, for the state files: its looper pool, the threads
//! that wait or serve, the number of commands and returns.
//! Not here: the text (`broker::core::dump`), waking (`super`).
//! Facts: contract DBG-01, DBG-03, DBG-05.
//!
//! A thread's statistics lie in its own block, which only its process writes. Only readers without time
//! limits read them: the broker, and a real-time caller that finds nobody asleep.

use super::{BELL, BELLS, Bell, COUNT, COUNTS, Doorbells, LOOPER};
use crate::shm::Memory;
use sys::sync::Ordering;

/// Counters per thread: one per `BC_*` command, then one per `BR_*` return.
pub const COUNTERS: usize = 56;

/// Index of the first counter of returns.
const RETURNS: usize = 32;

/// Most broker calls that a thread publishes as being served; more deeply nested ones are left out.
pub const SERVING: usize = 6;

/// Looper bits of a thread in the pool: registered or entered (contract DBG-01).
pub const JOINED: u32 = 1 | 2;
/// Looper bit of a thread that was polled for readability.
pub const POLLS: u32 = 0x20;
/// Looper bit beside the kernel's: the thread's next read returns at once.
pub const NEED_RETURN: u32 = 1 << 31;

/// State bits of a waiting thread: it waits; it would take the process's work.
const WAITS: u32 = 1;
const READY: u32 = 2;

// Offsets in the header line.
const REQUESTED: usize = 16;
const STARTED: usize = 20;
const UNTAKEN: usize = 24;

// Offsets in a block of counters.
const SERVES: usize = COUNTERS * 4;
const WAITING: usize = SERVES + SERVING * 4;
const DEPTH: usize = WAITING + 4;
const _: () = assert!(DEPTH + 4 <= COUNT);

/// Index of a `BC_*` command's counter.
#[must_use]
pub const fn of_command(word: u32) -> usize {
    (word & 0xff) as usize
}

/// Index of a `BR_*` return's counter.
#[must_use]
pub const fn of_return(word: u32) -> usize {
    RETURNS + (word & 0xff) as usize
}

impl<M: Memory> Doorbells<M> {
    /// Number of loopers requested but not started, and of those started.
    pub fn pool(&self) -> (u32, u32) {
        let word = |offset| self.memory.word(offset).load(Ordering::Relaxed);
        (word(REQUESTED), word(STARTED))
    }

    /// Sets both numbers.
    pub fn set_pool(&self, requested: u32, started: u32) {
        self.memory.word(REQUESTED).store(requested, Ordering::Relaxed);
        self.memory.word(STARTED).store(started, Ordering::Relaxed);
    }

    /// Number of waiting calls that the broker cannot count: oneway calls, and calls in call slots.
    pub fn untaken(&self) -> u32 {
        self.memory.word(UNTAKEN).load(Ordering::Relaxed)
    }

    /// Sets that number.
    pub fn set_untaken(&self, calls: u32) {
        self.memory.word(UNTAKEN).store(calls, Ordering::Relaxed);
    }

    /// Number of threads that the process ever had.
    pub fn threads_ever(&self) -> u64 {
        (0..self.used()).filter_map(|slot| self.slot(slot)).map(|bell| u64::from(bell.generation())).sum()
    }

    /// Sums of the counters over all threads that the process ever had.
    pub fn counts(&self) -> [u64; COUNTERS] {
        let used = self.used() as usize;
        let mut sums = [0; COUNTERS];
        for slot in 0..used {
            for (index, sum) in sums.iter_mut().enumerate() {
                let count = self.memory.word(BELLS + slot * BELL + COUNTS + index * 4);
                *sum += u64::from(count.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

impl<M: Memory> Bell<'_, M> {
    fn own(&self, offset: usize) -> &sys::sync::AtomicU32 {
        self.word(COUNTS + offset)
    }

    /// Counts one event of this thread; only the thread itself may call it. Ignores an index beyond
    /// [`COUNTERS`].
    pub fn count(&self, index: usize) {
        if index < COUNTERS {
            let count = self.own(index * 4);
            // No read-modify-write: the thread is the only writer.
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Length of the thread's transaction stack plus its unread replies.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.own(DEPTH).load(Ordering::Relaxed)
    }

    /// Sets the depth. Not in the bell's line, which the waking CPU has.
    pub fn set_depth(&self, depth: u32) {
        self.own(DEPTH).store(depth, Ordering::Relaxed);
    }

    /// Marks the thread as waiting for work; with `ready` also for the process's.
    pub fn begin_waiting(&self, ready: bool) {
        self.own(WAITING).store(if ready { WAITS | READY } else { WAITS }, Ordering::Relaxed);
    }

    /// Clears the mark.
    pub fn end_waiting(&self) {
        self.own(WAITING).store(0, Ordering::Relaxed);
    }

    /// Whether the thread waits for work.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.own(WAITING).load(Ordering::Relaxed) & WAITS != 0
    }

    /// Whether the thread was polled and does not wait in a read. A hint.
    #[must_use]
    pub fn only_polls(&self) -> bool {
        self.looper() & POLLS != 0 && !self.waits()
    }

    /// Whether the thread waits for the process's work.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.own(WAITING).load(Ordering::Relaxed) & READY != 0
    }

    /// The broker's calls that the thread serves, outermost first, 0 for none.
    #[must_use]
    pub fn serving(&self) -> [u32; SERVING] {
        std::array::from_fn(|index| self.own(SERVES + index * 4).load(Ordering::Relaxed))
    }

    /// Sets the served calls.
    pub fn set_serving(&self, calls: [u32; SERVING]) {
        for (index, call) in calls.into_iter().enumerate() {
            self.own(SERVES + index * 4).store(call, Ordering::Relaxed);
        }
    }

    /// Publishes whether the thread's next read returns at once. Any thread of the process may call it.
    pub fn show_need_return(&self, on: bool) {
        if on {
            self.word(LOOPER).fetch_or(NEED_RETURN, Ordering::Relaxed);
        } else {
            self.word(LOOPER).fetch_and(!NEED_RETURN, Ordering::Relaxed);
        }
    }
}
