//! Room: what a process shows of itself beside its bells, for the state files: its pool of loopers,
//! which of its threads wait or serve, how often each word passed.
//! Not here: the text (`broker::core::dump`), waking (`super`).
//! Facts: contract DBG-01, DBG-03, DBG-05.
//!
//! A thread's own things lie in its block of counters, which only it and its process write, and only who is in no hurry
//! reads: the broker, and a real-time caller that finds nobody asleep.

use super::{BELL, BELLS, Bell, COUNT, COUNTS, Doorbells, LOOPER};
use crate::embedded::channel::Memory;
use sys::sync::Ordering;

/// Counters of a thread: one per `BC_*` command, then one per `BR_*` return.
pub const COUNTERS: usize = 56;

/// Where the counters of returns begin.
const RETURNS: usize = 32;

/// Calls of the broker that a thread shows to be serving; those further in do not show.
pub const SERVING: usize = 6;

/// Looper bits of a thread that joined the pool: registered or entered (contract DBG-01).
pub const JOINED: u32 = 1 | 2;
/// Looper flag of a thread that was asked whether it is readable.
pub const POLLS: u32 = 0x20;
/// Looper bit beside those of the kernel's: the thread's next read returns at once.
pub const NEED_RETURN: u32 = 1 << 31;

/// What a thread that waits is waiting for, as bits: anything, the process's work.
const WAITS: u32 = 1;
const READY: u32 = 2;

// Of the header line.
const REQUESTED: usize = 16;
const STARTED: usize = 20;
const UNTAKEN: usize = 24;

// Of a block of counters.
const SERVES: usize = COUNTERS * 4;
const WAITING: usize = SERVES + SERVING * 4;
const DEPTH: usize = WAITING + 4;
const _: () = assert!(DEPTH + 4 <= COUNT);

/// The counter of a `BC_*` command.
#[must_use]
pub const fn of_command(word: u32) -> usize {
    (word & 0xff) as usize
}

/// The counter of a `BR_*` return.
#[must_use]
pub const fn of_return(word: u32) -> usize {
    RETURNS + (word & 0xff) as usize
}

impl<M: Memory> Doorbells<M> {
    /// Loopers that were asked for and have not come yet, and those that have.
    pub fn pool(&self) -> (u32, u32) {
        let word = |offset| self.memory.word(offset).load(Ordering::Relaxed);
        (word(REQUESTED), word(STARTED))
    }

    /// Sets them.
    pub fn set_pool(&self, requested: u32, started: u32) {
        self.memory.word(REQUESTED).store(requested, Ordering::Relaxed);
        self.memory.word(STARTED).store(started, Ordering::Relaxed);
    }

    /// How many calls wait for any thread that the broker cannot count: oneway calls, and calls in
    /// lanes.
    pub fn untaken(&self) -> u32 {
        self.memory.word(UNTAKEN).load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_untaken(&self, calls: u32) {
        self.memory.word(UNTAKEN).store(calls, Ordering::Relaxed);
    }

    /// How many threads the process ever had.
    pub fn threads_ever(&self) -> u64 {
        (0..self.used()).filter_map(|slot| self.slot(slot)).map(|bell| u64::from(bell.generation())).sum()
    }

    /// Sums of the counters of all threads that the process ever had.
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
    #[inline]
    fn own(&self, offset: usize) -> &sys::sync::AtomicU32 {
        self.word(COUNTS + offset)
    }

    /// Counts something that this thread did; only the thread itself may. An index beyond
    /// [`COUNTERS`] is ignored.
    #[inline]
    pub fn count(&self, index: usize) {
        if index < COUNTERS {
            let count = self.own(index * 4);
            // Not a read-modify-write: nobody else writes it.
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Length of the thread's transaction stack, with replies that it has not read.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.own(DEPTH).load(Ordering::Relaxed)
    }

    /// Sets it. Not in the bell's line, which whoever wakes the thread has had.
    #[inline]
    pub fn set_depth(&self, depth: u32) {
        self.own(DEPTH).store(depth, Ordering::Relaxed);
    }

    /// The thread begins to wait for work, also for the process's if it is `ready`.
    #[inline]
    pub fn begin_waiting(&self, ready: bool) {
        self.own(WAITING).store(if ready { WAITS | READY } else { WAITS }, Ordering::Relaxed);
    }

    /// It waits no more.
    #[inline]
    pub fn end_waiting(&self) {
        self.own(WAITING).store(0, Ordering::Relaxed);
    }

    /// Whether it waits for work.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.own(WAITING).load(Ordering::Relaxed) & WAITS != 0
    }

    /// Whether it waits for the process's work.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.own(WAITING).load(Ordering::Relaxed) & READY != 0
    }

    /// The calls of the broker that it serves, outermost first, 0 for none.
    #[must_use]
    pub fn serving(&self) -> [u32; SERVING] {
        std::array::from_fn(|index| self.own(SERVES + index * 4).load(Ordering::Relaxed))
    }

    /// Sets them.
    pub fn set_serving(&self, calls: [u32; SERVING]) {
        for (index, call) in calls.into_iter().enumerate() {
            self.own(SERVES + index * 4).store(call, Ordering::Relaxed);
        }
    }

    /// Shows whether its next read returns at once. May come from another thread of the process.
    pub fn show_need_return(&self, on: bool) {
        if on {
            self.word(LOOPER).fetch_or(NEED_RETURN, Ordering::Relaxed);
        } else {
            self.word(LOOPER).fetch_and(!NEED_RETURN, Ordering::Relaxed);
        }
    }
}
