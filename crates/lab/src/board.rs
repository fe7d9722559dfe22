//! Room: the memory that all processes of a case share: steps at which they wait for each other, what
//! each is doing, and every sample it took, so that nothing is lost when one dies.
//! Not here: what happens at a step (`crate::workers`, `crate::latency`).
//!
//! Layout: words of all; a desk for each process; room for the samples of each that calls: the last of
//! them. A process writes its own desk and samples only, and publishes a sample by counting it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sys::clock::monotonic_ns;
use sys::futex;
use sys::shared_memory::SharedMemory;

/// The step that was released last.
const RELEASED: usize = 0;
/// Counts what processes did that others wait for.
const CHANGES: usize = 64;
/// Whether to stop calling.
const STOP: usize = 128;
/// When the round began, in ns.
const BEGIN: usize = 192;
const DESKS: usize = 256;
const DESK: usize = 256;

/// Places within a desk: steps done; calls made; whom it calls, from 1; three long words.
const DONE: usize = 0;
const CALLS: usize = 4;
const CALLEE: usize = 8;
const BUSY: usize = 16;
const CPU: usize = 24;
const END: usize = 32;
/// Notes begin here, and fill the desk.
const NOTES: usize = 64;
/// Notes of a process.
pub(crate) const NOTE_COUNT: usize = (DESK - NOTES) / WORD;

const WORD: usize = size_of::<u64>();
const PAGE: usize = 4096;

/// In place of steps done: it cannot go on.
pub(crate) const FAILED: u32 = u32::MAX;

/// How large a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Processes.
    pub(crate) members: u32,
    /// How many of them call: the last ones.
    pub(crate) callers: u32,
    /// Samples of each that calls.
    pub(crate) samples: usize,
    /// Words of each sample.
    pub(crate) words: usize,
}

/// One client's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Calls that came back.
    pub(crate) calls: u64,
    /// Time spent in them, in clock units.
    pub(crate) busy: u64,
    /// CPU time of the calling thread, in ns.
    pub(crate) cpu: u64,
    /// When the last one came back; 0 if none did.
    pub(crate) end: u64,
}

impl Size {
    /// Where the samples of a process are; empty if it does not call.
    fn room(self, member: u32) -> Range<usize> {
        let first = (DESKS + DESK * self.members as usize).next_multiple_of(PAGE);
        let bytes = self.samples * self.words * WORD;
        let each = bytes.next_multiple_of(PAGE);
        let silent = self.members.saturating_sub(self.callers);
        let start = first + each * member.saturating_sub(silent) as usize;
        if member < silent { start..start } else { start..start + bytes }
    }

    fn bytes(self) -> usize {
        self.room(self.members).start
    }
}

/// The memory, mapped by one process.
#[derive(Debug)]
pub(crate) struct Board {
    memory: SharedMemory,
    size: Size,
}

impl Board {
    /// New memory. Its pages come to be as they are written.
    pub(crate) fn create(size: Size) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::create(size.bytes())?, size })
    }

    /// The same memory in another process.
    pub(crate) fn open(place: &str, size: Size) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(place)?;
        let memory = SharedMemory::map(file.into())?;
        if memory.len() < size.bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { memory, size })
    }

    /// Where a child of this process finds it.
    pub(crate) fn place(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.descriptor().as_raw_fd())
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(offset).expect("every offset here is aligned and within the size")
    }

    fn desk(&self, member: u32, place: usize) -> &AtomicU32 {
        self.word(DESKS + DESK * member as usize + place)
    }

    fn long(&mut self, offset: usize) -> u64 {
        let mut bytes = [0; WORD];
        self.memory.copy_out(offset, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn set_long(&mut self, offset: usize, value: u64) {
        self.memory.copy_in(offset, &value.to_ne_bytes());
    }

    /// Lets everybody begin a step, which is noted as begun at `now`.
    pub(crate) fn release(&mut self, step: u32, now: u64) {
        self.set_long(BEGIN, now);
        let word = self.word(RELEASED);
        // Pairs with the load in `wait_for`.
        word.store(step, Ordering::Release);
        futex::wake_all(word);
    }

    /// Tells everybody to make no further call.
    pub(crate) fn stop(&self) {
        self.word(STOP).store(1, Ordering::Relaxed);
    }

    /// A number that changes when somebody finishes a step.
    pub(crate) fn changes(&self) -> u32 {
        self.word(CHANGES).load(Ordering::Acquire)
    }

    /// Sleeps until [`Self::changes`] is another than `seen`, a signal comes or the time is over.
    pub(crate) fn wait_for_change(&self, seen: u32, time: Duration) {
        // The caller looks again, whatever ended it.
        let until = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let _ = futex::wait_until(self.word(CHANGES), seen, until);
    }

    /// The step that a process did last, or [`FAILED`].
    pub(crate) fn done(&self, member: u32) -> u32 {
        // Pairs with the store in `finish`.
        self.desk(member, DONE).load(Ordering::Acquire)
    }

    /// How many calls came back to a process in this round.
    pub(crate) fn calls(&self, member: u32) -> u32 {
        // Pairs with the store in `keep`.
        self.desk(member, CALLS).load(Ordering::Acquire)
    }

    /// Whom a process waits for; `None` between its calls.
    pub(crate) fn callee(&self, member: u32) -> Option<u32> {
        self.desk(member, CALLEE).load(Ordering::Relaxed).checked_sub(1)
    }

    /// What a process measured in this round, which it has finished, or was ended in.
    pub(crate) fn part(&mut self, member: u32) -> Part {
        let desk = DESKS + DESK * member as usize;
        Part {
            calls: self.calls(member).into(),
            busy: self.long(desk + BUSY),
            cpu: self.long(desk + CPU),
            end: self.long(desk + END),
        }
    }

    /// The notes of a process.
    pub(crate) fn notes(&mut self, member: u32) -> [u64; NOTE_COUNT] {
        let start = DESKS + DESK * member as usize + NOTES;
        std::array::from_fn(|number| self.long(start + number * WORD))
    }

    /// The words of the samples of these processes in this round, one after the other's.
    pub(crate) fn samples(&mut self, members: &[u32]) -> Vec<u64> {
        let each = self.size.words * WORD;
        let kept = |room: Range<usize>, calls: u32| room.end.min(room.start + calls as usize * each);
        let rooms: Vec<Range<usize>> = members
            .iter()
            .map(|&member| {
                let room = self.size.room(member);
                room.start..kept(room, self.calls(member))
            })
            .collect();
        let mut samples = Vec::with_capacity(rooms.iter().map(|room| room.len() / WORD).sum());
        let mut page = [0; PAGE];
        for room in rooms {
            for at in room.clone().step_by(PAGE) {
                let bytes = &mut page[..PAGE.min(room.end - at)];
                self.memory.copy_out(at, bytes);
                let (words, _) = bytes.as_chunks();
                samples.extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
            }
        }
        samples
    }
}

/// A board as one of its processes sees it.
#[derive(Debug)]
pub(crate) struct Desk {
    board: Board,
    member: u32,
    /// Where its samples go.
    room: Range<usize>,
    busy: u64,
}

impl Desk {
    /// The place of this process.
    pub(crate) fn at(board: Board, member: u32) -> Self {
        let room = board.size.room(member);
        Self { board, member, room, busy: 0 }
    }

    /// Waits for a step to be released; returns when it was.
    pub(crate) fn wait_for(&mut self, step: u32) -> u64 {
        let word = self.board.word(RELEASED);
        loop {
            let released = word.load(Ordering::Acquire);
            if released >= step {
                break;
            }
            // Woken, or a signal came, or for no reason: looked at again.
            let _ = futex::wait(word, released);
        }
        self.board.long(BEGIN)
    }

    /// Tells that this step is done, or that this process [`FAILED`].
    pub(crate) fn finish(&self, step: u32) {
        self.board.desk(self.member, DONE).store(step, Ordering::Release);
        let changes = self.board.word(CHANGES);
        changes.fetch_add(1, Ordering::Release);
        futex::wake_one(changes);
    }

    /// Writes the room for so many samples once, so that keeping one of them never waits for memory.
    pub(crate) fn touch(&mut self, samples: usize) {
        let end = self
            .room
            .end
            .min(self.room.start.saturating_add(samples.saturating_mul(self.board.size.words * WORD)));
        for page in (self.room.start..end).step_by(PAGE) {
            self.board.set_long(page, 0);
        }
    }

    /// Forgets the round before.
    pub(crate) fn clear(&mut self) {
        self.busy = 0;
        self.board.desk(self.member, CALLS).store(0, Ordering::Relaxed);
        for place in [BUSY, CPU, END] {
            self.set(place, 0);
        }
    }

    fn set(&mut self, place: usize, value: u64) {
        self.board.set_long(DESKS + DESK * self.member as usize + place, value);
    }

    /// Notes who is called next.
    #[inline]
    pub(crate) fn call(&self, callee: u32) {
        self.board.desk(self.member, CALLEE).store(callee + 1, Ordering::Relaxed);
    }

    /// Keeps a call that began and ended then, unless there is no more room for its sample; returns
    /// how many there are now.
    #[inline]
    pub(crate) fn keep(&mut self, start: u64, end: u64) -> u32 {
        self.keep_words(start, end, &[end - start])
    }

    /// The same for a sample of so many words.
    #[inline]
    pub(crate) fn keep_words(&mut self, start: u64, end: u64, words: &[u64]) -> u32 {
        let calls = self.board.desk(self.member, CALLS).load(Ordering::Relaxed);
        let at = self.room.start + calls as usize * self.board.size.words * WORD;
        if at < self.room.end {
            for (place, word) in words.iter().take(self.board.size.words).enumerate() {
                self.board.set_long(at + place * WORD, *word);
            }
        }
        self.busy = self.busy.saturating_add(end - start);
        self.set(BUSY, self.busy);
        self.set(END, end);
        self.board.desk(self.member, CALLEE).store(0, Ordering::Relaxed);
        let calls = calls.saturating_add(1);
        self.board.desk(self.member, CALLS).store(calls, Ordering::Release);
        calls
    }

    /// Leaves a note, which the one that leads reads.
    ///
    /// # Panics
    /// There is no note of this number; there are [`NOTE_COUNT`].
    pub(crate) fn note(&mut self, number: usize, value: u64) {
        assert!(number < NOTE_COUNT, "note {number} is beyond the desk");
        self.set(NOTES + number * WORD, value);
    }

    /// Keeps the CPU time of the round.
    pub(crate) fn keep_cpu(&mut self, ns: u64) {
        self.set(CPU, ns);
    }

    /// Tells everybody to make no further call.
    pub(crate) fn stop_all(&self) {
        self.board.stop();
    }

    /// Whether to make no further call.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.board.word(STOP).load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests;
