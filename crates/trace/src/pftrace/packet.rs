//! Takes what later packets need out of each packet of the first pass: clocks, names, processes, symbols, losses.
//! Not here: where the packets are (`scan`).
//! Facts: `process_tree.proto`, `process_stats.proto`, `track_descriptor.proto`, `ftrace_stats.proto`.

use std::collections::{BTreeMap, HashMap};

use super::threads::Threads;
use super::wire::{Fields, Value, first};
use crate::event::{Name, Names};
use crate::hash::FastHash;
use crate::symbol;

/// Maximum number of kernel symbols, and of tracks.
const MOST: usize = 1 << 20;
/// Maximum number of CPUs; more than Linux supports.
const MOST_CPUS: usize = 8192;

/// Learns threads from a `ProcessTree` of time `ts`.
pub(super) fn process_tree(tree: &[u8], ts: u64, threads: &mut Threads, names: &mut Names) {
    for (number, value) in Fields::of(tree) {
        let part = |field| first(value.bytes(), field).unwrap_or(Value::Number(0));
        match number {
            1 => {
                // The command line, or the main thread's name where there is none.
                let comm = if part(9).number() != 0 { part(3).bytes() } else { &[] };
                let comm = names.intern_bytes(comm);
                threads.learn(part(1).int(), part(1).int(), comm, ts);
                if !comm.is_some() {
                    let command = names.intern_bytes(part(3).bytes());
                    names.known.set_process(part(1).int(), command);
                }
            }
            2 => {
                let comm = names.intern_bytes(part(2).bytes());
                threads.learn(part(1).int(), part(3).int(), comm, ts);
                names.known.set_thread(part(1).int(), comm, Some(part(3).int()).filter(|pid| *pid > 0));
            }
            _ => {}
        }
    }
}

/// Learns threads from `ProcessStats`.
pub(super) fn process_stats(stats: &[u8], ts: u64, threads: &mut Threads) {
    for (_, process) in Fields::of(stats).filter(|(number, _)| *number == 1) {
        let pid = first(process.bytes(), 1).map_or(0, Value::int);
        threads.learn(pid, pid, Name::NONE, ts);
        for (_, thread) in Fields::of(process.bytes()).filter(|(number, _)| *number == 11) {
            let tid = first(thread.bytes(), 1).map_or(0, Value::int);
            threads.learn(tid, pid, Name::NONE, ts);
        }
    }
}

/// Thread of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadTrack {
    pub(super) tgid: i32,
    pub(super) tid: i32,
}

/// Threads of tracks, by the tracks' numbers and by packet sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    by_uuid: HashMap<u64, ThreadTrack, FastHash>,
    by_sequence: HashMap<u32, ThreadTrack>,
}

impl Tracks {
    /// Learns from a `TrackDescriptor`.
    pub(super) fn descriptor(&mut self, message: &[u8], ts: u64, threads: &mut Threads, names: &mut Names) {
        let Some(thread) = first(message, 4) else { return };
        let track = thread_descriptor(thread.bytes(), ts, threads, names);
        let uuid = first(message, 1).map_or(0, Value::number);
        if self.by_uuid.len() < MOST {
            self.by_uuid.insert(uuid, track);
        }
    }

    /// Learns from a `ThreadDescriptor` about its whole sequence, as old versions write it.
    pub(super) fn of_sequence(
        &mut self,
        sequence: u32,
        message: &[u8],
        ts: u64,
        threads: &mut Threads,
        names: &mut Names,
    ) {
        let track = thread_descriptor(message, ts, threads, names);
        if self.by_sequence.len() < MOST {
            self.by_sequence.insert(sequence, track);
        }
    }

    /// Thread of a track; of the sequence, if an event names no track.
    pub(super) fn thread(&self, sequence: u32, uuid: Option<u64>) -> Option<ThreadTrack> {
        match uuid {
            Some(uuid) => self.by_uuid.get(&uuid).copied(),
            None => self.by_sequence.get(&sequence).copied(),
        }
    }
}

fn thread_descriptor(message: &[u8], ts: u64, threads: &mut Threads, names: &mut Names) -> ThreadTrack {
    let part = |field| first(message, field).unwrap_or(Value::Number(0));
    let track = ThreadTrack { tgid: part(1).int(), tid: part(2).int() };
    threads.learn(track.tid, track.tgid, names.intern_bytes(part(5).bytes()), ts);
    track
}

/// Kernel symbols, which each packet sequence numbers anew when it clears its state.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelSymbols {
    pub(super) known: HashMap<(u32, u64), Name, FastHash>,
}

impl KernelSymbols {
    /// Takes the symbols of `InternedData`.
    pub(super) fn take(&mut self, interned: &[u8], generation: u32, names: &mut Names) {
        for (_, symbol) in Fields::of(interned).filter(|(number, _)| *number == 26) {
            let part = |field| first(symbol.bytes(), field).unwrap_or(Value::Number(0));
            if self.known.len() < MOST {
                self.known.insert(
                    (generation, part(1).number()),
                    names.intern_bytes(symbol::bare(part(2).bytes())),
                );
            }
        }
    }
}

/// Lost events of each CPU, by the kernel's counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    at_start: HashMap<u64, u64>,
    pub(super) lost: BTreeMap<u32, u64>,
}

impl Losses {
    /// Takes `FtraceStats`: counters at the start of a recording (phase 1), then at its end (phase 2).
    pub(super) fn take(&mut self, stats: &[u8]) {
        let at_end = first(stats, 1).map_or(0, Value::number) == 2;
        for (_, cpu) in Fields::of(stats).filter(|(number, _)| *number == 2) {
            let (mut number, mut sum) = (0, 0_u64);
            for (field, value) in Fields::of(cpu.bytes()) {
                match field {
                    1 => number = value.number(),
                    // Overwritten, overwritten during a commit, dropped.
                    3 | 4 | 8 => sum = sum.saturating_add(value.number()),
                    _ => {}
                }
            }
            if !at_end {
                if self.at_start.len() < MOST_CPUS {
                    self.at_start.insert(number, sum);
                }
                continue;
            }
            let new = sum.saturating_sub(self.at_start.remove(&number).unwrap_or(0));
            if let Ok(cpu) = u32::try_from(number)
                && new > 0
                && self.lost.len() < MOST_CPUS
            {
                *self.lost.entry(cpu).or_default() += new;
            }
        }
    }
}
