//! Room: the memory that all processes of a case share: steps at which they wait for each other, what
//! each is doing, and every sample it took, so that nothing is lost when one dies.
//! Not here: what happens at a step (`role`, `team`).
//!
//! Layout: words of all; a desk of 64 bytes for each process; room for each one's samples. A process
//! writes its own desk and samples only, and publishes a sample by counting it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sys::clock::monotonic_ns;
use sys::futex;
use sys::shared_memory::SharedMemory;

use super::tally::Part;

/// The step that was released last.
const RELEASED: usize = 0;
/// Counts what processes did that others wait for.
const CHANGES: usize = 64;
/// Whether to stop calling.
const STOP: usize = 128;
/// When the round began, in ns.
const BEGIN: usize = 192;
const DESKS: usize = 256;
const DESK: usize = 64;

/// Places within a desk: steps done; calls made; whom it calls, from 1; three long words.
const DONE: usize = 0;
const CALLS: usize = 4;
const CALLEE: usize = 8;
const BUSY: usize = 16;
const CPU: usize = 24;
const END: usize = 32;

const SAMPLE: usize = size_of::<u64>();
const PAGE: usize = 4096;

/// In place of steps done: it cannot go on.
pub(super) const FAILED: u32 = u32::MAX;

/// How large a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Processes.
    pub(super) members: u32,
    /// Samples of each.
    pub(super) samples: usize,
}

impl Size {
    fn samples_at(self, member: u32) -> usize {
        let first = (DESKS + DESK * self.members as usize).next_multiple_of(PAGE);
        first + (self.samples * SAMPLE).next_multiple_of(PAGE) * member as usize
    }
}

/// The memory, mapped by one process.
#[derive(Debug)]
pub(super) struct Board {
    memory: SharedMemory,
    size: Size,
}

impl Board {
    /// New memory. Its pages come to be as they are written.
    pub(super) fn create(size: Size) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::create(size.samples_at(size.members))?, size })
    }

    /// The same memory in another process.
    pub(super) fn open(place: &str, size: Size) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(place)?;
        let memory = SharedMemory::map(file.into())?;
        if memory.len() < size.samples_at(size.members) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { memory, size })
    }

    /// Where a child of this process finds it.
    pub(super) fn place(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.descriptor().as_raw_fd())
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word(offset).expect("every offset here is aligned and within the size")
    }

    fn desk(&self, member: u32, place: usize) -> &AtomicU32 {
        self.word(DESKS + DESK * member as usize + place)
    }

    fn long(&mut self, offset: usize) -> u64 {
        let mut bytes = [0; SAMPLE];
        self.memory.copy_out(offset, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn set_long(&mut self, offset: usize, value: u64) {
        self.memory.copy_in(offset, &value.to_ne_bytes());
    }

    /// Lets everybody begin a step, which is noted as begun at `now`.
    pub(super) fn release(&mut self, step: u32, now: u64) {
        self.set_long(BEGIN, now);
        let word = self.word(RELEASED);
        // Pairs with the load in `wait_for`.
        word.store(step, Ordering::Release);
        futex::wake_all(word);
    }

    /// Tells everybody to make no further call.
    pub(super) fn stop(&self) {
        self.word(STOP).store(1, Ordering::Relaxed);
    }

    /// A number that changes when somebody finishes a step.
    pub(super) fn changes(&self) -> u32 {
        self.word(CHANGES).load(Ordering::Acquire)
    }

    /// Sleeps until [`Self::changes`] is another than `seen`, a signal comes or the time is over.
    pub(super) fn wait_for_change(&self, seen: u32, time: Duration) {
        // The caller looks again, whatever ended it.
        let until = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let _ = futex::wait_until(self.word(CHANGES), seen, until);
    }

    /// The step that a process did last, or [`FAILED`].
    pub(super) fn done(&self, member: u32) -> u32 {
        // Pairs with the store in `finish`.
        self.desk(member, DONE).load(Ordering::Acquire)
    }

    /// How many calls came back to a process in this round.
    pub(super) fn calls(&self, member: u32) -> u32 {
        // Pairs with the store in `keep`.
        self.desk(member, CALLS).load(Ordering::Acquire)
    }

    /// Whom a process waits for; `None` between its calls.
    pub(super) fn callee(&self, member: u32) -> Option<u32> {
        self.desk(member, CALLEE).load(Ordering::Relaxed).checked_sub(1)
    }

    /// What a process measured in this round, which it has finished, or was ended in.
    pub(super) fn part(&mut self, member: u32) -> Part {
        let calls = self.calls(member);
        let kept = self.size.samples.min(calls as usize);
        let mut bytes = vec![0; kept * SAMPLE];
        let at = self.size.samples_at(member);
        self.memory.copy_out(at, &mut bytes);
        let (words, _) = bytes.as_chunks();
        let desk = DESKS + DESK * member as usize;
        Part {
            calls: calls.into(),
            busy: self.long(desk + BUSY),
            cpu: self.long(desk + CPU),
            end: self.long(desk + END),
            samples: words.iter().map(|word| u64::from_ne_bytes(*word)).collect(),
        }
    }
}

/// A board as one of its processes sees it.
#[derive(Debug)]
pub(super) struct Desk {
    board: Board,
    member: u32,
    busy: u64,
}

impl Desk {
    /// The place of this process.
    pub(super) fn at(board: Board, member: u32) -> Self {
        Self { board, member, busy: 0 }
    }

    /// Waits for a step to be released; returns when it was.
    pub(super) fn wait_for(&mut self, step: u32) -> u64 {
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
    pub(super) fn finish(&self, step: u32) {
        self.board.desk(self.member, DONE).store(step, Ordering::Release);
        let changes = self.board.word(CHANGES);
        changes.fetch_add(1, Ordering::Release);
        futex::wake_one(changes);
    }

    /// Writes all room for samples once, so that keeping one never waits for memory.
    pub(super) fn touch(&mut self) {
        let (start, end) =
            (self.board.size.samples_at(self.member), self.board.size.samples_at(self.member + 1));
        for page in (start..end).step_by(PAGE) {
            self.board.set_long(page, 0);
        }
    }

    /// Forgets the round before.
    pub(super) fn clear(&mut self) {
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
    pub(super) fn call(&self, callee: u32) {
        self.board.desk(self.member, CALLEE).store(callee + 1, Ordering::Relaxed);
    }

    /// Keeps a call that began and ended then, unless there is no more room for its sample; returns
    /// how many there are now.
    #[inline]
    pub(super) fn keep(&mut self, start: u64, end: u64) -> u32 {
        let calls = self.board.desk(self.member, CALLS).load(Ordering::Relaxed);
        if (calls as usize) < self.board.size.samples {
            let at = self.board.size.samples_at(self.member) + calls as usize * SAMPLE;
            self.board.set_long(at, end - start);
        }
        self.busy = self.busy.saturating_add(end - start);
        self.set(BUSY, self.busy);
        self.set(END, end);
        self.board.desk(self.member, CALLEE).store(0, Ordering::Relaxed);
        let calls = calls.saturating_add(1);
        self.board.desk(self.member, CALLS).store(calls, Ordering::Release);
        calls
    }

    /// Keeps the CPU time of the round.
    pub(super) fn keep_cpu(&mut self, ns: u64) {
        self.set(CPU, ns);
    }

    /// Whether to make no further call.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.board.word(STOP).load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { members: 3, samples: 600 };

    fn desk(board: &Board, member: u32) -> Desk {
        Desk::at(Board::open(&board.place(), SIZE).expect("the same memory"), member)
    }

    #[test]
    fn what_is_kept_at_one_desk_is_seen_from_outside_and_at_no_other() {
        let mut board = Board::create(SIZE).expect("memory");
        let mut second = desk(&board, 1);
        second.touch();
        second.call(2);
        assert_eq!(board.callee(1), Some(2));
        for call in 0..3 {
            second.keep(call * 10, call * 10 + call + 1);
        }
        second.keep_cpu(77);
        second.finish(4);
        let want = Part { calls: 3, busy: 6, cpu: 77, end: 23, samples: vec![1, 2, 3] };
        assert_eq!((board.part(1), board.done(1), board.callee(1)), (want, 4, None));
        for other in [0, 2] {
            assert_eq!((board.part(other), board.done(other)), (Part::default(), 0));
        }
        second.clear();
        assert_eq!(board.part(1), Part::default());
    }

    #[test]
    fn calls_beyond_the_room_for_samples_are_counted() {
        let mut board = Board::create(SIZE).expect("memory");
        let mut last = desk(&board, 2);
        for _ in 0..700 {
            last.keep(1, 3);
        }
        let part = board.part(2);
        assert_eq!((part.calls, part.busy, part.samples.len()), (700, 1400, 600));
        assert_eq!(board.part(1), Part::default());
    }

    #[test]
    fn all_wait_for_a_step_and_are_released_at_once() {
        let mut board = Board::create(SIZE).expect("memory");
        let waiters: Vec<_> = (0..3)
            .map(|member| {
                let mut desk = desk(&board, member);
                std::thread::spawn(move || {
                    let begun = desk.wait_for(2);
                    desk.finish(2);
                    (begun, desk.is_stopped())
                })
            })
            .collect();
        board.release(1, 5);
        std::thread::sleep(Duration::from_millis(20));
        assert!((0..3).all(|member| board.done(member) == 0), "nobody goes ahead");
        board.stop();
        board.release(2, 7);
        while (0..3).any(|member| board.done(member) != 2) {
            board.wait_for_change(board.changes(), Duration::from_millis(10));
        }
        for waiter in waiters {
            assert_eq!(waiter.join().expect("no panic"), (7, true));
        }
    }

    #[test]
    fn another_size_than_the_memory_has_is_refused() {
        let board = Board::create(SIZE).expect("memory");
        let larger = Size { members: 4, ..SIZE };
        assert!(Board::open(&board.place(), larger).is_err());
    }
}
