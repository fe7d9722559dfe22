//! Shared memory of a worker group: the step barriers, each worker's progress and every sample. Samples
//! survive the death of a worker.
//! Not here: what happens at a step (`group`, and each role).
//!
//! Layout: words for all workers; a slot for each worker; the samples of the last `callers` workers. A worker
//! writes only its own slot and samples, and publishes a sample by counting it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;
use sys::futex;
use sys::shared_memory::SharedMemory;

/// Offset of the number of the latest released step.
const RELEASED: usize = 0;
/// Offset of the counter of finished steps; the parent sleeps on it.
const CHANGES: usize = 64;
/// Offset of the stop flag; not 0: workers make no further call.
const STOP: usize = 128;
/// Offset of the release time of the latest step, in ns.
const BEGIN: usize = 192;
/// Offset of the pause flag, beside the stop flag, which callers read anyway; not 0: callers rest.
const PAUSE: usize = STOP + 4;
const SLOTS: usize = 256;
const SLOT: usize = 256;

/// Offsets within a slot: latest step done; calls made; callee, counted from 1; three 64-bit words.
const DONE: usize = 0;
const CALLS: usize = 4;
const CALLEE: usize = 8;
/// Not 0: it rests.
const RESTS: usize = 12;
const BUSY: usize = 16;
const CPU: usize = 24;
const END: usize = 32;
/// The notes fill the rest of the slot.
const NOTES: usize = 64;
/// Number of notes of a worker.
pub const NOTE_COUNT: usize = (SLOT - NOTES) / WORD;

const WORD: usize = size_of::<u64>();
const PAGE: usize = 4096;

/// Value in place of a step number: the worker has failed.
pub const FAILED: u32 = u32::MAX;

/// Size of a block and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayout {
    /// Number of workers; each has a slot.
    pub workers: u32,
    /// Number of workers that take samples: the last ones.
    pub callers: u32,
    /// Capacity for samples of each caller.
    pub samples: usize,
    /// Size of a sample, in 64-bit words.
    pub words: usize,
}

/// Totals of one worker in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotTotals {
    /// Number of completed calls.
    pub calls: u64,
    /// Time spent in calls, in clock units.
    pub busy: u64,
    /// CPU time of the calling thread, in ns.
    pub cpu: u64,
    /// Time of the last completed call; 0 without any.
    pub end: u64,
}

impl BlockLayout {
    /// Byte range of a worker's samples; empty if the worker makes no calls.
    fn samples_range(self, worker: u32) -> Range<usize> {
        let first = (SLOTS + SLOT * self.workers as usize).next_multiple_of(PAGE);
        let bytes = self.samples * self.words * WORD;
        let each = bytes.next_multiple_of(PAGE);
        let silent = self.workers.saturating_sub(self.callers);
        let start = first + each * worker.saturating_sub(silent) as usize;
        if worker < silent { start..start } else { start..start + bytes }
    }

    fn bytes(self) -> usize {
        self.samples_range(self.workers).start
    }
}

/// The shared memory as its creator maps it.
#[derive(Debug)]
pub struct SharedBlock {
    memory: SharedMemory,
    layout: BlockLayout,
}

impl SharedBlock {
    /// Creates the memory. Its pages are allocated on the first write.
    ///
    /// # Errors
    /// The errors of `memfd_create(2)` and `mmap(2)`.
    pub fn create(layout: BlockLayout) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::create(layout.bytes())?, layout })
    }

    /// Maps the memory in another process.
    ///
    /// # Errors
    /// The path cannot be opened, or the memory is smaller than the layout.
    pub fn open(path: &str, layout: BlockLayout) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let memory = SharedMemory::map(file.into())?;
        if memory.len() < layout.bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { memory, layout })
    }

    /// Path through which a child of this process opens the memory.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.descriptor().as_raw_fd())
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(offset).expect("every offset here is aligned and within the layout")
    }

    fn slot(&self, worker: u32, place: usize) -> &AtomicU32 {
        self.word(SLOTS + SLOT * worker as usize + place)
    }

    fn long(&mut self, offset: usize) -> u64 {
        let mut bytes = [0; WORD];
        self.memory.copy_out(offset, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn set_long(&mut self, offset: usize, value: u64) {
        self.memory.copy_in(offset, &value.to_ne_bytes());
    }

    /// Releases a step, which began at `now` (ns), for all workers.
    pub fn release(&mut self, step: u32, now: u64) {
        self.set_long(BEGIN, now);
        let word = self.word(RELEASED);
        // Pairs with the load in `wait_for`.
        word.store(step, Ordering::Release);
        futex::wake_all(word);
    }

    /// Tells all workers to make no further call.
    pub fn stop(&self) {
        self.word(STOP).store(1, Ordering::Relaxed);
    }

    /// Returns true if a caller asked for a pause which was not ended yet.
    pub fn is_paused(&self) -> bool {
        self.word(PAUSE).load(Ordering::Acquire) != 0
    }

    /// Ends a pause.
    pub fn resume(&self) {
        let word = self.word(PAUSE);
        // Pairs with the load in `rest`.
        word.store(0, Ordering::Release);
        futex::wake_all(word);
    }

    /// Returns true if this worker makes no call until [`Self::resume`].
    pub fn rests(&self, worker: u32) -> bool {
        // Pairs with the store in `rest`.
        self.slot(worker, RESTS).load(Ordering::Acquire) != 0
    }

    /// Number that changes whenever a worker finishes a step.
    pub fn changes(&self) -> u32 {
        self.word(CHANGES).load(Ordering::Acquire)
    }

    /// Sleeps until [`Self::changes`] differs from `seen`, a signal comes or `time` has passed.
    pub fn wait_for_change(&self, seen: u32, time: Duration) {
        // The caller checks again, whatever ended the sleep.
        let until = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let _ = futex::wait_until(self.word(CHANGES), seen, until);
    }

    /// The latest step that a worker finished, or [`FAILED`].
    pub fn done(&self, worker: u32) -> u32 {
        // Pairs with the store in `finish`.
        self.slot(worker, DONE).load(Ordering::Acquire)
    }

    /// Number of calls that a worker completed in this round.
    pub fn calls(&self, worker: u32) -> u32 {
        // Pairs with the store in `keep`.
        self.slot(worker, CALLS).load(Ordering::Acquire)
    }

    /// Number of the worker that this one calls; `None` between calls.
    pub fn callee(&self, worker: u32) -> Option<u32> {
        self.slot(worker, CALLEE).load(Ordering::Relaxed).checked_sub(1)
    }

    /// Totals of a worker in this round, complete or not.
    pub fn totals(&mut self, worker: u32) -> SlotTotals {
        let slot = SLOTS + SLOT * worker as usize;
        SlotTotals {
            calls: self.calls(worker).into(),
            busy: self.long(slot + BUSY),
            cpu: self.long(slot + CPU),
            end: self.long(slot + END),
        }
    }

    /// The notes of a worker.
    pub fn notes(&mut self, worker: u32) -> [u64; NOTE_COUNT] {
        let start = SLOTS + SLOT * worker as usize + NOTES;
        std::array::from_fn(|number| self.long(start + number * WORD))
    }

    /// Sample words of these workers in this round, in the order given.
    pub fn samples(&mut self, workers: &[u32]) -> Vec<u64> {
        let each = self.layout.words * WORD;
        let kept = |worker: u32| {
            let range = self.layout.samples_range(worker);
            range.start..range.end.min(range.start + self.calls(worker) as usize * each)
        };
        let ranges: Vec<Range<usize>> = workers.iter().map(|&worker| kept(worker)).collect();
        let mut samples = Vec::with_capacity(ranges.iter().map(|range| range.len() / WORD).sum());
        let mut page = [0; PAGE];
        for range in ranges {
            for at in range.clone().step_by(PAGE) {
                let bytes = &mut page[..PAGE.min(range.end - at)];
                self.memory.copy_out(at, bytes);
                let (words, _) = bytes.as_chunks();
                samples.extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
            }
        }
        samples
    }
}

/// Address of a worker's slot, for the worker process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotAddress {
    path: String,
    layout: BlockLayout,
    /// Number of the worker in its group.
    pub number: u32,
}

impl SharedBlock {
    /// Returns the address of a worker's slot, for a child of this process.
    #[must_use]
    pub fn address(&self, number: u32) -> SlotAddress {
        SlotAddress { path: self.path(), layout: self.layout, number }
    }
}

impl SlotAddress {
    /// Maps the block.
    ///
    /// # Errors
    /// The parent has ended, or memory is exhausted.
    pub fn open(&self) -> Result<WorkerSlot, String> {
        let block = SharedBlock::open(&self.path, self.layout)
            .map_err(|error| format!("opening the shared memory: {}", sys::errno::describe(&error)))?;
        Ok(WorkerSlot::new(block, self.number))
    }

    /// Works in the slot, then waits to be killed, because other workers may still need this one. A failure
    /// goes to standard output and into the slot.
    ///
    /// # Errors
    /// The block cannot be opened.
    pub fn work(&self, work: impl FnOnce(&mut WorkerSlot) -> Result<(), String>) -> Result<(), String> {
        let mut slot = self.open()?;
        if let Err(why) = work(&mut slot) {
            crate::role::say(&why);
            slot.finish(FAILED);
        }
        loop {
            std::thread::park();
        }
    }
}

/// A worker's own slot, mapped by that worker.
#[derive(Debug)]
pub struct WorkerSlot {
    block: SharedBlock,
    worker: u32,
    /// Byte range of the worker's samples.
    samples_range: Range<usize>,
    busy: u64,
}

impl WorkerSlot {
    fn new(block: SharedBlock, worker: u32) -> Self {
        let samples_range = block.layout.samples_range(worker);
        Self { block, worker, samples_range, busy: 0 }
    }

    /// Waits until a step is released; returns its release time, in ns.
    pub fn wait_for(&mut self, step: u32) -> u64 {
        let word = self.block.word(RELEASED);
        loop {
            let released = word.load(Ordering::Acquire);
            if released >= step {
                break;
            }
            // Woken, by a signal or spuriously: check again.
            let _ = futex::wait(word, released);
        }
        self.block.long(BEGIN)
    }

    /// Reports that this step is done, or that this worker has [`FAILED`].
    pub fn finish(&self, step: u32) {
        self.block.slot(self.worker, DONE).store(step, Ordering::Release);
        let changes = self.block.word(CHANGES);
        changes.fetch_add(1, Ordering::Release);
        futex::wake_one(changes);
    }

    /// Touches the pages of the first `samples` samples, so that storing them causes no page fault.
    pub fn touch(&mut self, samples: usize) {
        let end = self.samples_range.end.min(
            self.samples_range.start.saturating_add(samples.saturating_mul(self.block.layout.words * WORD)),
        );
        for page in (self.samples_range.start..end).step_by(PAGE) {
            self.block.set_long(page, 0);
        }
    }

    /// Resets calls and totals for a new round.
    pub fn clear(&mut self) {
        self.busy = 0;
        self.block.slot(self.worker, CALLS).store(0, Ordering::Relaxed);
        for place in [BUSY, CPU, END] {
            self.set(place, 0);
        }
    }

    fn set(&mut self, place: usize, value: u64) {
        self.block.set_long(SLOTS + SLOT * self.worker as usize + place, value);
    }

    /// Records the callee of the next call.
    #[inline]
    pub fn call(&self, callee: u32) {
        self.block.slot(self.worker, CALLEE).store(callee + 1, Ordering::Relaxed);
    }

    /// Counts a call with these start and end times, and stores its duration if the slot has space for a
    /// sample. Returns the number of calls in this round.
    #[inline]
    pub fn keep(&mut self, start: u64, end: u64) -> u32 {
        self.keep_words(start, end, &[end - start])
    }

    /// Like [`Self::keep`], for a sample of several words.
    #[inline]
    pub fn keep_words(&mut self, start: u64, end: u64, words: &[u64]) -> u32 {
        let calls = self.block.slot(self.worker, CALLS).load(Ordering::Relaxed);
        let at = self.samples_range.start + calls as usize * self.block.layout.words * WORD;
        if at < self.samples_range.end {
            for (place, word) in words.iter().take(self.block.layout.words).enumerate() {
                self.block.set_long(at + place * WORD, *word);
            }
        }
        self.busy = self.busy.saturating_add(end - start);
        self.set(BUSY, self.busy);
        self.set(END, end);
        self.block.slot(self.worker, CALLEE).store(0, Ordering::Relaxed);
        let calls = calls.saturating_add(1);
        self.block.slot(self.worker, CALLS).store(calls, Ordering::Release);
        calls
    }

    /// Stores a note for the parent.
    ///
    /// # Panics
    /// The number is not below [`NOTE_COUNT`].
    pub fn note(&mut self, number: usize, value: u64) {
        assert!(number < NOTE_COUNT, "note {number} is beyond the slot");
        self.set(NOTES + number * WORD, value);
    }

    /// Stores the CPU time of the round, in ns.
    pub fn keep_cpu(&mut self, ns: u64) {
        self.set(CPU, ns);
    }

    /// Tells all workers to make no further call.
    pub fn stop_all(&self) {
        self.block.stop();
    }

    /// Asks the parent for a pause of all callers, and rests until it ends.
    pub fn pause_all(&self) {
        self.block.word(PAUSE).store(1, Ordering::Release);
        self.rest();
    }

    /// Returns once no pause is on.
    #[inline]
    pub fn rest_if_paused(&self) {
        if self.block.is_paused() {
            self.rest();
        }
    }

    #[cold]
    fn rest(&self) {
        self.set_rests(1);
        let pause = self.block.word(PAUSE);
        loop {
            let state = pause.load(Ordering::Acquire);
            if state == 0 {
                break;
            }
            // Woken, by a signal or spuriously: check again.
            let _ = futex::wait(pause, state);
        }
        self.set_rests(0);
    }

    fn set_rests(&self, state: u32) {
        self.block.slot(self.worker, RESTS).store(state, Ordering::Release);
        let changes = self.block.word(CHANGES);
        changes.fetch_add(1, Ordering::Release);
        futex::wake_one(changes);
    }

    /// Returns true if workers must make no further call.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.block.word(STOP).load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests;
