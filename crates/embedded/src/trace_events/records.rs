//! Events of calls in memory that a recorder gives to processes: a ring of the newest events for each, readable after
//! the process is gone.
//! Not here: the form of an event (`record`), what a recorder makes of them (crate `ftrace`).
//! Facts: `Documentation/trace/ftrace.rst`, `trace_clock`: `boot` and `mono` are the clocks of `clock_gettime(2)`.
//!
//! Memory: a switch, the number of rings that are given out and the clock; then the rings, each a count of all events
//! that were begun in it, and the events' places. A process takes one ring when it opens its context, and its threads
//! reserve places by the count. Nobody waits for anybody: what is not whole when it is read counts as lost.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sys::interrupt::ThreadId;
use sys::sealed_memory::SealedMemory;

use super::record::{Record, WORDS};
use super::{CallEvent, TaskId};

/// Rings, and events in each. A call has two events in each of its processes.
const RINGS: u32 = 64;
const PLACES: u32 = 8192;

const RECORD_BYTES: usize = 4 * WORDS;
/// Bytes of the head of the memory, and of a ring: its own line of the cache.
const HEAD_BYTES: usize = 64;
const RING_BYTES: usize = HEAD_BYTES + PLACES as usize * RECORD_BYTES;
const BYTES: usize = HEAD_BYTES + RINGS as usize * RING_BYTES;

/// Offsets in the head of the memory.
const SWITCH: usize = 0;
const GIVEN: usize = 4;
const CLOCK: usize = 8;

/// Clocks that a process can read, with their numbers in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Boot = 1,
    Monotonic = 2,
}

impl Clock {
    fn of_number(number: u32) -> Option<Self> {
        [Self::Boot, Self::Monotonic].into_iter().find(|clock| *clock as u32 == number)
    }

    fn now(self) -> u64 {
        match self {
            Self::Boot => sys::clock::boottime_ns(),
            Self::Monotonic => sys::clock::monotonic_ns(),
        }
    }
}

fn ring_at(ring: u32) -> usize {
    HEAD_BYTES + ring as usize * RING_BYTES
}

fn place_at(ring: usize, place: u32) -> usize {
    ring + HEAD_BYTES + (place % PLACES) as usize * RECORD_BYTES
}

/// A recorder's memory for the events of calls, of 24 MiB at most. It takes none until [`Self::start`].
#[derive(Debug)]
pub struct CallRecords {
    memory: SealedMemory,
    clock: Clock,
    /// When the memory was made.
    made: u64,
    /// Events of each ring that were taken, or that were lost before.
    taken: Vec<u32>,
}

/// Events that [`CallRecords::take`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The events, oldest first.
    pub events: Vec<RecordedCall>,
    /// Events that are missing.
    pub gaps: Vec<Gap>,
}

/// An event of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Nanoseconds of the recorder's clock.
    pub ts: u64,
    /// CPU that the thread ran on.
    pub cpu: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The event, as a mark has it: one line.
    pub text: String,
}

/// Events of one process that were overwritten, or were not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Time of the oldest event behind the gap; if there is none, when the events were taken.
    pub ts: u64,
    /// CPU of that event; 0 without one.
    pub cpu: u32,
    /// How many are missing.
    pub count: u64,
}

impl CallRecords {
    /// Makes the memory, for stamps of the clock of this name in `trace_clock`; `None` for a clock that processes
    /// cannot read.
    ///
    /// # Errors
    /// See [`SealedMemory::create`].
    pub fn create(clock: &str) -> io::Result<Option<Self>> {
        let clock = match clock {
            "boot" => Clock::Boot,
            "mono" => Clock::Monotonic,
            _ => return Ok(None),
        };
        let memory = SealedMemory::create(BYTES)?;
        memory.word_inside(CLOCK).store(clock as u32, Relaxed);
        Ok(Some(Self { memory, clock, made: clock.now(), taken: vec![0; RINGS as usize] }))
    }

    /// Path of the memory for processes of this user, while this value lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let number = self.memory.descriptor().as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()))
    }

    /// Starts taking events.
    pub fn start(&self) {
        self.memory.word_inside(SWITCH).store(1, Release);
    }

    /// Stops taking events. A thread that is just writing one still ends that.
    pub fn stop(&self) {
        self.memory.word_inside(SWITCH).store(0, Release);
    }

    /// Takes the newest events out of all rings. While events are being written, some of them may count as lost.
    pub fn take(&mut self) -> Taken {
        let given = self.memory.word_inside(GIVEN).load(Acquire).min(RINGS);
        let mut found = Taken::default();
        for (ring, taken) in (0..given).zip(&mut self.taken) {
            let times = self.made..=self.clock.now();
            take_ring(&self.memory, ring_at(ring), times, taken, &mut found);
        }
        found.events.sort_by_key(|event| event.ts);
        found.gaps.sort_by_key(|gap| gap.ts);
        found
    }
}

/// Takes a ring's events of these times.
fn take_ring(
    memory: &SealedMemory,
    ring: usize,
    times: RangeInclusive<u64>,
    taken: &mut u32,
    found: &mut Taken,
) {
    let begun = memory.word_inside(ring).load(Acquire);
    let new = begun.wrapping_sub(*taken);
    let kept = new.min(PLACES);
    let (before, mut lost) = (found.events.len(), new - kept);
    for back in (1..=kept).rev() {
        let place = begun.wrapping_sub(back);
        let record = Record::decode(place, memory.words(place_at(ring, place)));
        match record.filter(|record| times.contains(&record.ts)) {
            Some(Record { ts, cpu, writer: TaskId { pid, tid }, event }) => {
                found.events.push(RecordedCall { ts, cpu, pid, tid, text: event.to_string() });
            }
            None => lost += 1,
        }
    }
    *taken = begun;
    if lost > 0 {
        let oldest = found.events.get(before).map(|event| (event.ts, event.cpu));
        let (ts, cpu) = oldest.unwrap_or((*times.end(), 0));
        found.gaps.push(Gap { ts, cpu, count: lost.into() });
    }
}

/// One process's ring.
#[derive(Debug)]
pub(super) struct RecordWriter {
    memory: SealedMemory,
    /// Offset of the ring.
    ring: usize,
    clock: Clock,
    pid: u32,
}

impl RecordWriter {
    /// Takes a ring of the memory at this path ([`CallRecords::path`]); `None` if all are given out.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().read(true).write(true).open(path)?;
        let memory = SealedMemory::map(file.into(), BYTES)?;
        let clock =
            Clock::of_number(memory.word_inside(CLOCK).load(Relaxed)).ok_or(ErrorKind::InvalidData)?;
        let next = |given| (given < RINGS).then_some(given + 1);
        let given = memory.word_inside(GIVEN).fetch_update(Release, Relaxed, next);
        Ok(given.ok().map(|ring| Self { memory, ring: ring_at(ring), clock, pid: std::process::id() }))
    }

    /// Writes an event of the calling thread, unless the recorder has stopped.
    pub(super) fn write(&self, event: &CallEvent) {
        let Self { memory, ring, clock, pid } = self;
        if memory.word_inside(SWITCH).load(Relaxed) == 0 {
            return;
        }
        let place = memory.word_inside(*ring).fetch_add(1, Relaxed);
        let writer = TaskId { pid: *pid, tid: ThreadId::current().number().cast_unsigned() };
        let record = Record { ts: clock.now(), cpu: sys::sched::current_cpu(), writer, event: *event };
        memory.put_words(place_at(*ring, place), record.encode(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(records: &Taken) -> Vec<&str> {
        records.events.iter().map(|event| event.text.as_str()).collect()
    }

    fn writer(records: &CallRecords) -> RecordWriter {
        RecordWriter::open(&records.path()).expect("one's own").expect("a ring is left")
    }

    #[test]
    fn events_outlive_their_writer_and_are_taken_once() {
        let mut records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
        let (one, other) = (writer(&records), writer(&records));
        one.write(&CallEvent::Received(1));
        assert_eq!(records.take(), Taken::default(), "not started");
        records.start();
        let before = sys::clock::boottime_ns();
        for (ring, number) in [(&one, 2), (&other, 3), (&one, 4)] {
            ring.write(&CallEvent::Received(number));
        }
        records.stop();
        one.write(&CallEvent::Received(5));
        drop((one, other));
        let taken = records.take();
        let want = [2, 3, 4].map(|number| format!("binder_transaction_received: transaction={number}"));
        assert_eq!(received(&taken), want, "in the order of time");
        let own = |event: &RecordedCall| {
            (event.pid, event.tid.cast_signed()) == (std::process::id(), ThreadId::current().number())
        };
        assert!(taken.events.iter().all(|event| own(event) && event.ts >= before), "{taken:?}");
        assert_eq!((taken.gaps.len(), records.take()), (0, Taken::default()));
    }

    #[test]
    fn the_newest_events_stay_and_the_others_are_counted() {
        let mut records = CallRecords::create("mono").expect("memory").expect("a clock of processes");
        let one = writer(&records);
        records.start();
        for number in 0..PLACES + 10 {
            one.write(&CallEvent::Received(number));
        }
        let taken = records.take();
        assert_eq!(taken.events.len(), PLACES as usize);
        let [Gap { ts, count: 10, .. }] = taken.gaps[..] else { panic!("{:?}", taken.gaps) };
        assert_eq!(ts, taken.events[0].ts);
        assert!(taken.events[0].text.ends_with("=10"), "{:?}", taken.events[0]);
    }

    #[test]
    fn threads_of_a_process_share_its_ring_without_losing_an_event() {
        let mut records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
        let one = writer(&records);
        records.start();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let one = &one;
                scope.spawn(move || {
                    (0..1000).for_each(|number| one.write(&CallEvent::Received(1000 * thread + number)));
                });
            }
        });
        let taken = records.take();
        let mut numbers: Vec<u32> = received(&taken)
            .iter()
            .map(|text| text.rsplit('=').next().expect("one").parse().expect("a number"))
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..4000) && taken.gaps.is_empty());
    }

    #[test]
    fn what_a_hostile_process_leaves_is_counted_and_breaks_nothing() {
        let mut records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
        let one = writer(&records);
        records.start();
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            one.write(&CallEvent::Received(1));
            for word in 0..RING_BYTES / 4 {
                if rng.u8(..) == 0 {
                    one.memory.word_inside(one.ring + 4 * word).store(rng.u32(..), Relaxed);
                }
            }
            one.memory.word_inside(one.ring).store(rng.u32(..), Relaxed);
            one.memory.word_inside(GIVEN).store(rng.u32(..), Relaxed);
            let taken = records.take();
            assert!(taken.events.len() <= PLACES as usize && taken.gaps.len() <= RINGS as usize);
        }
    }

    #[test]
    fn events_of_impossible_times_are_lost() {
        let mut records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
        let one = writer(&records);
        records.start();
        let writer = TaskId { pid: 1, tid: 1 };
        for (place, ts) in [(0, 0), (1, u64::MAX)] {
            let record = Record { ts, cpu: 0, writer, event: CallEvent::Received(1) };
            one.memory.put_words(place_at(one.ring, place), record.encode(place));
        }
        one.memory.word_inside(one.ring).store(2, Relaxed);
        let Taken { events, gaps } = records.take();
        assert_eq!((events.len(), gaps.len()), (0, 1));
        assert!(gaps[0].count == 2 && (records.made..=Clock::Boot.now()).contains(&gaps[0].ts), "{gaps:?}");
    }

    #[test]
    fn rings_are_given_out_once_and_only_of_such_memory() {
        let records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
        let all: Vec<_> = (0..RINGS).map(|_| writer(&records)).collect();
        assert!(
            RecordWriter::open(&records.path()).expect("one's own").is_none(),
            "all {} are taken",
            all.len()
        );
        assert!(CallRecords::create("global").expect("nothing to do").is_none());
        let other = SealedMemory::create(BYTES).expect("memory");
        let path = format!("/proc/self/fd/{}", other.descriptor().as_raw_fd());
        RecordWriter::open(Path::new(&path)).expect_err("it has no clock");
        RecordWriter::open(Path::new("/dev/null")).expect_err("no memory");
    }
}
