//! Notes of the workers of a pair in their slots: facts about their threads, and the miss that stopped
//! tracing.
//! Not here: samples (`super::sample`), the slot (`procgroup::block`).

use record::{Class, Miss, Sched};

use super::sample::Timed;
use crate::scheduling::{pack, unpack};
use host::realtime;
use procgroup::WorkerSlot;
use procgroup::block::NOTE_COUNT;

/// Facts of a thread about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadFacts {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) cpu: u32,
    pub(super) sched: Sched,
}

/// A thread with a note: the process's first thread, and a client's two callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotedThread {
    Main,
    Fifo,
    Other,
}

const WORDS_OF_ONE: usize = 2;
const MISS: usize = 3 * WORDS_OF_ONE;
const SLOW: usize = MISS + 5;

impl ThreadFacts {
    /// Facts about the calling thread.
    pub(super) fn own() -> Self {
        let answer = super::service::look();
        Self { pid: std::process::id(), tid: answer.tid, cpu: answer.cpu, sched: realtime::own() }
    }

    pub(super) fn note(self, slot: &mut WorkerSlot, who: NotedThread) {
        let place = who as usize * WORDS_OF_ONE;
        slot.note(place, u64::from(self.pid) << 32 | u64::from(self.tid));
        slot.note(place + 1, u64::from(self.cpu) << 32 | pack(self.sched));
    }

    /// Reads the noted facts of a thread; `None` without a note.
    pub(super) fn read(notes: &[u64; NOTE_COUNT], who: NotedThread) -> Option<Self> {
        let place = who as usize * WORDS_OF_ONE;
        let [ids, rest] = [notes[place], notes[place + 1]];
        let (pid, tid) = ((ids >> 32) as u32, ids as u32);
        (pid != 0).then(|| Self { pid, tid, cpu: (rest >> 32) as u32, sched: unpack(rest) })
    }
}

/// Stores the miss at which tracing was stopped.
pub(super) fn note_miss(slot: &mut WorkerSlot, class: Class, iteration: u64, timed: &Timed) {
    slot.note(MISS + 3, timed.end);
    slot.note(MISS + 4, timed.marked.into());
    note_call(slot, MISS, class, iteration, timed.sample.took);
}

/// Stores a slow call for the flight recorder, until [`forget_slow`].
pub(super) fn note_slow(slot: &mut WorkerSlot, class: Class, iteration: u64, took: u64) {
    note_call(slot, SLOW, class, iteration, took);
}

/// Removes the call of [`note_slow`].
pub(super) fn forget_slow(slot: &mut WorkerSlot) {
    slot.note(SLOW, 0);
}

fn note_call(slot: &mut WorkerSlot, place: usize, class: Class, iteration: u64, took: u64) {
    slot.note(place + 1, iteration);
    slot.note(place + 2, took);
    slot.note(place, if class == Class::Fifo { 2 } else { 1 });
}

/// The miss at which tracing was stopped. Misses that the trace contains rank before those whose reply came
/// after another pair's miss had stopped tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoppingMiss {
    pub(super) miss: Miss,
    pub(super) rank: (bool, u64),
}

/// Returns the miss of this pair that stopped tracing, if any.
pub(super) fn miss(notes: &[u64; NOTE_COUNT], pair: u32) -> Option<StoppingMiss> {
    let miss = call(notes, MISS, pair)?;
    Some(StoppingMiss { miss, rank: (notes[MISS + 4] == 0, notes[MISS + 3]) })
}

/// Returns the call of this pair that the flight recorder is to save, if any.
pub(super) fn slow_call(notes: &[u64; NOTE_COUNT], pair: u32) -> Option<Miss> {
    call(notes, SLOW, pair)
}

fn call(notes: &[u64; NOTE_COUNT], place: usize, pair: u32) -> Option<Miss> {
    let class = match notes[place] {
        1 => Class::Other,
        2 => Class::Fifo,
        _ => return None,
    };
    Some(Miss { pair, class, iteration: notes[place + 1], took: notes[place + 2] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::sample::Sample;
    use procgroup::{BlockLayout, SharedBlock};

    #[test]
    fn notes_are_read_as_written() {
        let layout = BlockLayout { workers: 1, callers: 1, samples: 1, words: 1 };
        let mut block = SharedBlock::create(layout).expect("memory");
        let mut slot = block.address(0).open().expect("the same memory");
        let sched = Sched { policy: 1, priority: 99, nice: -3 };
        let seen = ThreadFacts { pid: 5, tid: u32::MAX, cpu: 700, sched };
        seen.note(&mut slot, NotedThread::Other);
        let sample = Sample::of(&[1 << 40, 1 << 40, 0, 0, 0, 0]);
        let timed = Timed { start: 3, end: 1 << 41, sample, stopped_tracing: true, marked: true };
        note_miss(&mut slot, Class::Fifo, 9, &timed);
        let notes = block.notes(0);
        assert_eq!(
            (ThreadFacts::read(&notes, NotedThread::Other), ThreadFacts::read(&notes, NotedThread::Fifo)),
            (Some(seen), None)
        );
        let noted = miss(&notes, 3).expect("noted");
        assert_eq!(noted.miss, Miss { pair: 3, class: Class::Fifo, iteration: 9, took: 1 << 40 });
        assert_eq!(noted.rank, (false, 1 << 41));
        assert_eq!((miss(&[0; NOTE_COUNT], 3), slow_call(&notes, 3)), (None, None));
        note_slow(&mut slot, Class::Other, 4, 77);
        let slow = Miss { pair: 3, class: Class::Other, iteration: 4, took: 77 };
        assert_eq!(slow_call(&block.notes(0), 3), Some(slow));
        forget_slow(&mut slot);
        assert_eq!(slow_call(&block.notes(0), 3), None);
    }

    #[test]
    fn one_sees_itself() {
        let seen = ThreadFacts::own();
        assert_eq!((seen.pid, seen.sched), (std::process::id(), realtime::own()));
    }
}
