//! Room: one portion of each kind of load: short, so that whoever does it can stop in between.
//! Not here: for how long, and when to rest (`role`).
//! Facts: a timerfd and a POSIX timer are armed again only once their expiry was looked at
//! (`fs/timerfd.c`, `kernel/time/posix-timers.c`), so many interrupts need a thread that wakes as often;
//! a sleeping thread's own timer is the plainest. `fdatasync(2)` on tmpfs only walks the kernel's lists.

use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use record::HostClass;
use sys::clock::monotonic_ns;
use sys::clock_sleep;

use super::spec::Kind;
use crate::dice::Dice;
use crate::host;

/// Rounds of arithmetic in a portion: some us.
const ROUNDS: u32 = 4096;
/// Bytes copied in a portion.
const CHUNK: usize = 256 << 10;
/// The least and the most that one process streams through.
const STREAM: (u64, u64) = (32 << 20, 256 << 20);
/// Between two interrupts of one process: 10 kHz.
const IRQ_PERIOD: u64 = 100_000;
/// Bytes written or read at once, and how many of them the file has.
const BLOCK: usize = 64 << 10;
const BLOCKS: u64 = 16;

/// What one process does again and again.
pub(super) enum Work {
    Cpu(Dice),
    Memory { buffer: Vec<u8>, at: usize },
    Irq { period: u64, next: u64 },
    Io { file: File, block: Vec<u8>, count: u64 },
}

impl Work {
    /// With all memory and files that it needs. A timer's period is stretched so many times, and so many
    /// processes stream through memory.
    ///
    /// # Errors
    /// What could not be had, for people.
    pub(super) fn prepare(kind: Kind, stretch: u32, streams: u32) -> Result<Self, String> {
        Ok(match kind {
            Kind::Cpu => Self::Cpu(Dice::new(1)),
            Kind::Memory => Self::Memory { buffer: stream(streams)?, at: 0 },
            Kind::Irq => Self::Irq { period: IRQ_PERIOD.saturating_mul(stretch.into()), next: 0 },
            Kind::Io => {
                let directory = std::env::temp_dir();
                let file = temporary(&directory).map_err(|error| {
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

    /// Some us to some hundred us of it.
    pub(super) fn portion(&mut self) {
        match self {
            Self::Cpu(dice) => {
                for _ in 0..ROUNDS {
                    black_box(dice.next());
                }
            }
            Self::Memory { buffer, at } => {
                // One half is read, the other written; then the other way round.
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
                // One that is late does not make up for it, or it would not sleep.
                *next = (*next).max(monotonic_ns()).saturating_add(*period);
                clock_sleep::until(*next);
            }
            Self::Io { file, block, count } => {
                let offset = *count % BLOCKS * BLOCK as u64;
                *count += 1;
                // A device that is full or broken is still worked on.
                let _ = file.write_all_at(block, offset).and_then(|()| file.sync_data());
                let _ = black_box(file.read_at(block, (offset + BLOCK as u64) % (BLOCKS * BLOCK as u64)));
            }
        }
    }
}

/// A buffer of twice the largest cache, and every page of it is there; less if all that there are would take
/// more than a quarter of the machine's memory.
fn stream(streams: u32) -> Result<Vec<u8>, String> {
    let caches = host::facts(HostClass::Bare).cpu.caches;
    let largest = caches.iter().map(|cache| cache.size).max().unwrap_or(0);
    let spare = host::memory_bytes().unwrap_or(u64::MAX) / 4 / u64::from(streams.max(1));
    let bytes = largest.saturating_mul(2).clamp(STREAM.0, STREAM.1).min(spare.max(2 * CHUNK as u64));
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX) / 2 * 2;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| format!("there are not {} MiB of memory", bytes >> 20))?;
    // Not 0, which an allocator may give without a page behind it.
    buffer.resize(bytes, 1);
    Ok(buffer)
}

/// A file without a name, so that nothing is left of it.
fn temporary(directory: &Path) -> io::Result<File> {
    let path: PathBuf = directory.join(format!(".binderperf-load-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_does_what_it_says() {
        let mut cpu = Work::prepare(Kind::Cpu, 1, 1).expect("nothing to be had");
        cpu.portion();
        assert!(matches!(cpu, Work::Cpu(dice) if dice.clone().next() != Dice::new(1).next()));
        let mut irq = Work::prepare(Kind::Irq, 3, 1).expect("nothing to be had");
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
            let Ok(Work::Memory { buffer, .. }) = Work::prepare(Kind::Memory, 1, streams) else { panic!() };
            let bytes = buffer.len() as u64;
            assert!(bytes >= 2 * CHUNK as u64 && bytes <= STREAM.1, "{bytes}");
            assert!(bytes * u64::from(streams) <= memory / 4, "{bytes} times {streams}");
        }
    }

    #[test]
    fn a_file_is_written_and_leaves_nothing() {
        let mut work = Work::prepare(Kind::Io, 1, 1).expect("a temporary file");
        (0..=BLOCKS).for_each(|_| work.portion());
        let Work::Io { file, .. } = work else { panic!("io") };
        assert_eq!(file.metadata().expect("open").len(), BLOCKS * BLOCK as u64, "it does not grow");
        let left = format!(".binderperf-load-{}", std::process::id());
        assert!(!std::env::temp_dir().join(left).exists());
        assert!(temporary(Path::new("/nonexistent")).is_err());
    }
}
