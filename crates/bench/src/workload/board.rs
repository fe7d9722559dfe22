//! Memory that all processes of a load share: its phase, and counters of what each process did.
//! Not here: who counts what (`actor`, `service`, `conductor`).
//! Facts: one process waits at a time for a counter, the measuring one; it writes down how far it waits, and who reaches that wakes it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use sys::clock::monotonic_ns;
use sys::futex;
use sys::shared_memory::SharedMemory;

use crate::call_error::CallError;

/// Words before those of the processes.
const COMMON: usize = 8;
/// Words of each process.
const EACH: usize = 12;
/// Longest sleep without a look around, in ns.
const LOOK_NS: u64 = 1_000_000_000;

/// A word of the whole load.
#[derive(Clone, Copy, Debug)]
enum Common {
    Phase,
    /// Processes that have found those that they call.
    Found,
    /// Not 0 when a process ended that should not.
    Broken,
    /// The first such process: its index, from 1.
    Blamed,
    /// Oneway calls that came out of order.
    Disorder,
    /// When the load began, two halves.
    Begin,
    BeginHigh,
    /// Processes whose threads have made all of their turns.
    Done,
}

/// A counter of a process. The word behind it is how far the measuring process waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    /// Oneway calls served by all of its copies, and calls that they hold.
    Served = 0,
    /// Notices of deaths and registrations that came to them.
    Notified = 2,
    /// Threads that made their steps after a release.
    Finished = 4,
    /// Releases.
    Released = 6,
    /// Calls that they served.
    Calls = 8,
    /// Steps that their threads made.
    Steps = 10,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Processes, which have registered what they serve, look up what they call.
    Finding = 1,
    /// Threads make their steps.
    Running,
    /// All is done; processes report and end.
    Over,
}

/// The shared memory.
#[derive(Debug)]
pub(super) struct Board {
    memory: SharedMemory,
    words: usize,
}

impl Board {
    /// New memory for a load of this many processes.
    ///
    /// # Errors
    /// Those of [`SharedMemory::create`].
    pub(super) fn create(processes: usize) -> io::Result<Self> {
        let words = COMMON + EACH * processes;
        Ok(Self { memory: SharedMemory::create(words * size_of::<u32>())?, words })
    }

    /// The memory that another process made, by a path to its descriptor.
    ///
    /// # Errors
    /// Those of opening and mapping it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let memory = SharedMemory::map(file.into())?;
        let words = memory.len() / size_of::<u32>();
        Ok(Self { memory, words })
    }

    /// The memory itself, to be handed to other processes.
    pub(super) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        self.memory.word(index * size_of::<u32>()).expect("each process has its words (`create`)")
    }

    fn common(&self, word: Common) -> &AtomicU32 {
        self.word(word as usize)
    }

    fn counter(&self, process: usize, counter: Counter) -> &AtomicU32 {
        self.word(COMMON + EACH * process + counter as usize)
    }

    fn wanted(&self, process: usize, counter: Counter) -> &AtomicU32 {
        self.word(COMMON + EACH * process + counter as usize + 1)
    }

    /// Sleeps until a word holds what is wanted.
    ///
    /// # Errors
    /// A process of the load ended, or a signal asks for the end.
    fn wait(&self, word: &AtomicU32, is_so: impl Fn(u32) -> bool) -> Result<(), CallError> {
        loop {
            let seen = word.load(SeqCst);
            if is_so(seen) {
                return Ok(());
            }
            if self.is_broken() || sys::stop_signal::received().is_some() {
                return Err(CallError::Closed);
            }
            // An interruption is a look around.
            let _ = futex::wait_until(word, seen, monotonic_ns() + LOOK_NS);
        }
    }

    /// Begins a phase.
    pub(super) fn enter(&self, phase: Phase) {
        if phase == Phase::Running {
            let now = monotonic_ns();
            self.common(Common::Begin).store(now as u32, SeqCst);
            self.common(Common::BeginHigh).store((now >> 32) as u32, SeqCst);
        }
        self.common(Common::Phase).store(phase as u32, SeqCst);
        futex::wake_all(self.common(Common::Phase));
    }

    /// Waits until this phase has begun.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn await_phase(&self, phase: Phase) -> Result<(), CallError> {
        self.wait(self.common(Common::Phase), |seen| seen >= phase as u32)
    }

    /// When the load began, in ns of the monotonic clock.
    pub(super) fn begin_ns(&self) -> u64 {
        let half = |word| u64::from(self.common(word).load(SeqCst));
        half(Common::Begin) | half(Common::BeginHigh) << 32
    }

    /// Reports that a process has found all that it calls.
    pub(super) fn found(&self) {
        self.common(Common::Found).fetch_add(1, SeqCst);
        futex::wake_all(self.common(Common::Found));
    }

    /// Waits until this many have.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn await_found(&self, processes: u32) -> Result<(), CallError> {
        self.wait(self.common(Common::Found), |seen| seen >= processes)
    }

    /// Marks the load as broken by this process, if it is the first, and wakes all that wait.
    pub(super) fn break_off(&self, process: usize) {
        let blamed = process as u32 + 1;
        let _ = self.common(Common::Blamed).compare_exchange(0, blamed, SeqCst, SeqCst);
        self.common(Common::Broken).store(1, SeqCst);
        (0..self.words).for_each(|index| futex::wake_all(self.word(index)));
    }

    /// The process that broke the load.
    pub(super) fn blamed(&self) -> Option<usize> {
        (self.common(Common::Blamed).load(SeqCst) as usize).checked_sub(1)
    }

    /// Whether a process ended that should not.
    pub(super) fn is_broken(&self) -> bool {
        self.common(Common::Broken).load(SeqCst) != 0
    }

    /// Reports a oneway call that overtook another of its thread.
    pub(super) fn report_disorder(&self) {
        self.common(Common::Disorder).fetch_add(1, SeqCst);
    }

    /// Oneway calls that came out of order.
    pub(super) fn disorder(&self) -> u32 {
        self.common(Common::Disorder).load(SeqCst)
    }

    /// Reports a process whose threads made all of their turns.
    pub(super) fn done(&self) {
        self.common(Common::Done).fetch_add(1, SeqCst);
    }

    /// Processes that have reported it.
    pub(super) fn done_processes(&self) -> u32 {
        self.common(Common::Done).load(SeqCst)
    }

    /// Counts something that a process did.
    pub(super) fn count(&self, process: usize, counter: Counter) {
        let word = self.counter(process, counter);
        let now = word.fetch_add(1, SeqCst).wrapping_add(1);
        if now == self.wanted(process, counter).load(SeqCst) {
            futex::wake_all(word);
        }
    }

    /// Value of a counter.
    pub(super) fn value(&self, process: usize, counter: Counter) -> u32 {
        self.counter(process, counter).load(SeqCst)
    }

    /// Waits until a counter has reached this value. Counters wrap.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn await_count(&self, process: usize, counter: Counter, value: u32) -> Result<(), CallError> {
        self.wanted(process, counter).store(value, SeqCst);
        self.wait(self.counter(process, counter), |seen| seen.wrapping_sub(value).cast_signed() >= 0)
    }

    /// Lets the threads of a process that wait for it make their steps.
    pub(super) fn release(&self, process: usize) {
        let word = self.counter(process, Counter::Released);
        word.fetch_add(1, SeqCst);
        futex::wake_all(word);
    }

    /// Waits for a release after `seen` of them; returns how many there were.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn await_release(&self, process: usize, seen: u32) -> Result<u32, CallError> {
        let word = self.counter(process, Counter::Released);
        self.wait(word, |now| now != seen)?;
        Ok(word.load(SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reaches_the_wanted_count_wakes_the_one_that_waits() {
        let board = Board::create(2).expect("memory");
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| (0..100).for_each(|_| board.count(1, Counter::Served)));
            board.await_count(1, Counter::Served, 100).expect("counted");
            counting.join().expect("it ends");
        });
        assert_eq!((board.value(1, Counter::Served), board.value(0, Counter::Served)), (100, 0));
    }

    #[test]
    fn a_broken_load_ends_every_wait() {
        let board = Board::create(1).expect("memory");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| board.await_count(0, Counter::Notified, 1));
            board.break_off(0);
            assert!(matches!(waiting.join().expect("it ends"), Err(CallError::Closed)));
        });
        assert!(board.await_phase(Phase::Running).is_err());
    }

    #[test]
    fn another_mapping_sees_the_begin() {
        let board = Board::create(1).expect("memory");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&board.memory().descriptor());
        let there = Board::open(Path::new(&format!("/proc/self/fd/{fd}"))).expect("mapped");
        board.enter(Phase::Running);
        there.await_phase(Phase::Running).expect("begun");
        assert!(there.begin_ns() > 0 && there.begin_ns() == board.begin_ns());
    }
}
