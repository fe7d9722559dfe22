//! Room: what the processes of a pair note about themselves, in words of their desk.
//! Not here: samples (`super::sample`), the desk (`crate::board`).

use record::{Class, Miss, Sched};

use super::caller::Timed;
use super::sample::{pack, unpack};
use crate::board::{Desk, NOTE_COUNT};
use crate::realtime;

/// Somebody, as seen by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) cpu: u32,
    pub(super) sched: Sched,
}

/// Who has a note: the process's first thread, and a client's two callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Main,
    Fifo,
    Other,
}

const WORDS_OF_ONE: usize = 2;
const MISS: usize = 3 * WORDS_OF_ONE;

impl Seen {
    /// The calling thread.
    pub(super) fn own() -> Self {
        let answer = super::service::look();
        Self { pid: std::process::id(), tid: answer.tid, cpu: answer.cpu, sched: realtime::own() }
    }

    pub(super) fn note(self, desk: &mut Desk, who: Who) {
        let place = who as usize * WORDS_OF_ONE;
        desk.note(place, u64::from(self.pid) << 32 | u64::from(self.tid));
        desk.note(place + 1, u64::from(self.cpu) << 32 | pack(self.sched));
    }

    /// What was noted, if anything was.
    pub(super) fn read(notes: &[u64; NOTE_COUNT], who: Who) -> Option<Self> {
        let place = who as usize * WORDS_OF_ONE;
        let [ids, rest] = [notes[place], notes[place + 1]];
        let (pid, tid) = ((ids >> 32) as u32, ids as u32);
        (pid != 0).then(|| Self { pid, tid, cpu: (rest >> 32) as u32, sched: unpack(rest) })
    }
}

/// Notes the miss at which tracing was stopped.
pub(super) fn note_miss(desk: &mut Desk, class: Class, iteration: u64, timed: &Timed) {
    desk.note(MISS + 1, iteration);
    desk.note(MISS + 2, timed.sample.took);
    desk.note(MISS + 3, timed.end);
    desk.note(MISS + 4, timed.marked.into());
    desk.note(MISS, if class == Class::Fifo { 2 } else { 1 });
}

/// A miss, and how soon it was: those that the trace tells of come before those whose reply came when tracing had
/// been stopped by another pair's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) miss: Miss,
    pub(super) rank: (bool, u64),
}

/// That miss, if there was one in this pair.
pub(super) fn miss(notes: &[u64; NOTE_COUNT], pair: u32) -> Option<Noted> {
    let class = match notes[MISS] {
        1 => Class::Other,
        2 => Class::Fifo,
        _ => return None,
    };
    let miss = Miss { pair, class, iteration: notes[MISS + 1], took: notes[MISS + 2] };
    Some(Noted { miss, rank: (notes[MISS + 4] == 0, notes[MISS + 3]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, Size};
    use crate::latency::sample::Sample;

    #[test]
    fn notes_are_read_as_written() {
        let size = Size { members: 1, callers: 1, samples: 1, words: 1 };
        let mut board = Board::create(size).expect("memory");
        let mut desk = Desk::at(Board::open(&board.place(), size).expect("the same memory"), 0);
        let sched = Sched { policy: 1, priority: 99, nice: -3 };
        let seen = Seen { pid: 5, tid: u32::MAX, cpu: 700, sched };
        seen.note(&mut desk, Who::Other);
        let sample = Sample::of(&[1 << 40, 1 << 40, 0, 0, 0, 0]);
        let timed = Timed { start: 3, end: 1 << 41, sample, stopped_tracing: true, marked: true };
        note_miss(&mut desk, Class::Fifo, 9, &timed);
        let notes = board.notes(0);
        assert_eq!((Seen::read(&notes, Who::Other), Seen::read(&notes, Who::Fifo)), (Some(seen), None));
        let noted = miss(&notes, 3).expect("noted");
        assert_eq!(noted.miss, Miss { pair: 3, class: Class::Fifo, iteration: 9, took: 1 << 40 });
        assert_eq!(noted.rank, (false, 1 << 41));
        assert_eq!(miss(&[0; NOTE_COUNT], 3), None);
    }

    #[test]
    fn one_sees_itself() {
        let seen = Seen::own();
        assert_eq!((seen.pid, seen.sched), (std::process::id(), realtime::own()));
    }
}
