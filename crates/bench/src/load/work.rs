//! One portion of each kind of load: short, so that the caller can stop in between.
//! Not here: duration and pauses (`role`).
//! Facts: a timerfd and a POSIX timer are armed again only after their expiry was read (`fs/timerfd.c`,
//! `kernel/time/posix-timers.c`), so many interrupts need a thread that wakes as often; a sleeping thread's
//! own timer is the simplest. `fdatasync(2)` on tmpfs only walks the kernel's lists.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use record::HostClass;
use sys::clock::{monotonic_ns, sleep_until};
use sys::folder::Folder;

use super::spec::LoadKind;
use fastrand::Rng;
use host;

/// Rounds of arithmetic in a portion: some us.
const ROUNDS: u32 = 4096;
/// Bytes copied in a portion.
const CHUNK: usize = 256 << 10;
/// Minimum and maximum size of one process's stream, in bytes.
const STREAM: (u64, u64) = (32 << 20, 256 << 20);
/// Interval between two interrupts of one process, in ns: 10 kHz.
const IRQ_PERIOD: u64 = 100_000;
/// Size of a write or read in bytes, and number of blocks of the file.
const BLOCK: usize = 64 << 10;
const BLOCKS: u64 = 16;

/// Repeated work of one process.
pub(super) enum Work {
    Cpu(Rng),
    Memory { buffer: Vec<u8>, at: usize },
    Irq { period: u64, next: u64 },
    Io { file: File, block: Vec<u8>, count: u64 },
}

impl Work {
    /// Allocates the memory and files of the work. Multiplies a timer's period by `stretch`; `streams` is the
    /// number of processes that stream through memory.
    ///
    /// # Errors
    /// The missing resource, as a message for the user.
    pub(super) fn prepare(kind: LoadKind, stretch: u32, streams: u32) -> Result<Self, String> {
        Ok(match kind {
            LoadKind::Cpu => Self::Cpu(Rng::with_seed(1)),
            LoadKind::Memory => Self::Memory { buffer: stream(streams)?, at: 0 },
            LoadKind::Irq => Self::Irq { period: IRQ_PERIOD.saturating_mul(stretch.into()), next: 0 },
            LoadKind::Io => {
                let directory = std::env::temp_dir();
                let file =
                    Folder::open(&directory).and_then(|folder| folder.nameless_file()).map_err(|error| {
                        let what = sys::errno::describe(&error);
                        format!(
                            "making a temporary file in {}: {what}; set TMPDIR to a directory that \
                             can be written to",
                            directory.display()
                        )
                    })?;
                Self::Io { file, block: vec![0x5a; BLOCK], count: 0 }
            }
        })
    }

    /// Does some us to some hundred us of work.
    pub(super) fn portion(&mut self) {
        match self {
            Self::Cpu(rng) => {
                for _ in 0..ROUNDS {
                    black_box(rng.u64(..));
                }
            }
            Self::Memory { buffer, at } => {
                // Reads one half and writes the other, alternately.
                let half = buffer.len() / 2;
                let (low, high) = buffer.split_at_mut(half);
                let (from, to) = if *at < half { (low, high) } else { (high, low) };
                let start = *at % half;
                let end = (start + CHUNK).min(half);
                to[start..end].copy_from_slice(&from[start..end]);
                *at = (*at + (end - start)) % (2 * half);
                black_box(&to[start]);
            }
            Self::Irq { period, next } => {
                // A late process does not catch up, or it would not sleep.
                *next = (*next).max(monotonic_ns()).saturating_add(*period);
                sleep_until(*next);
            }
            Self::Io { file, block, count } => {
                let offset = *count % BLOCKS * BLOCK as u64;
                *count += 1;
                // A device that is full or broken still gets load.
                let _ = file.write_all_at(block, offset).and_then(|()| file.sync_data());
                let _ = black_box(file.read_at(block, (offset + BLOCK as u64) % (BLOCKS * BLOCK as u64)));
            }
        }
    }
}

/// Allocates a buffer of twice the largest cache, with every page present; less if all streams would take
/// more than a quarter of the machine's memory.
fn stream(streams: u32) -> Result<Vec<u8>, String> {
    let caches = host::facts(HostClass::Bare).cpu.caches;
    let largest = caches.iter().map(|cache| cache.size).max().unwrap_or(0);
    let spare = host::memory_bytes().unwrap_or(u64::MAX) / 4 / u64::from(streams.max(1));
    let bytes = largest.saturating_mul(2).clamp(STREAM.0, STREAM.1).min(spare.max(2 * CHUNK as u64));
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX) / 2 * 2;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| format!("there are not {} MiB of memory", bytes >> 20))?;
    // Not 0, which an allocator may provide without a page behind it.
    buffer.resize(bytes, 1);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_does_what_it_says() {
        let mut cpu = Work::prepare(LoadKind::Cpu, 1, 1).expect("nothing to be had");
        cpu.portion();
        assert!(matches!(cpu, Work::Cpu(rng) if rng.clone().u64(..) != Rng::with_seed(1).u64(..)));
        let mut irq = Work::prepare(LoadKind::Irq, 3, 1).expect("nothing to be had");
        let start = monotonic_ns();
        irq.portion();
        assert!(monotonic_ns() - start >= 3 * IRQ_PERIOD, "it sleeps for its period");
    }

    #[test]
    fn memory_is_gone_through_to_its_end_and_again() {
        let mut work = Work::Memory { buffer: vec![0; 2 * CHUNK + 2 * 1000], at: 0 };
        let mut seen = Vec::new();
        for _ in 0..5 {
            let Work::Memory { at, .. } = &work else { panic!("memory") };
            seen.push(*at);
            work.portion();
        }
        assert_eq!(seen, [0, CHUNK, CHUNK + 1000, 2 * CHUNK + 1000, 0]);
        let memory = host::memory_bytes().expect("/proc/meminfo");
        for streams in [1, 10] {
            let Ok(Work::Memory { buffer, .. }) = Work::prepare(LoadKind::Memory, 1, streams) else {
                panic!()
            };
            let bytes = buffer.len() as u64;
            assert!(bytes >= 2 * CHUNK as u64 && bytes <= STREAM.1, "{bytes}");
            assert!(bytes * u64::from(streams) <= memory / 4, "{bytes} times {streams}");
        }
    }

    #[test]
    fn a_file_is_written_and_does_not_grow() {
        let mut work = Work::prepare(LoadKind::Io, 1, 1).expect("a temporary file");
        (0..=BLOCKS).for_each(|_| work.portion());
        let Work::Io { file, .. } = work else { panic!("io") };
        assert_eq!(file.metadata().expect("open").len(), BLOCKS * BLOCK as u64, "it does not grow");
    }
}
