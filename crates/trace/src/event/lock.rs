//! Room: which sort of the kernel's locks a thread waits for.
//! Not here: who waits, and since when (`model`).
//! Facts: `LCB_F_*` of `include/trace/events/lock.h`, Linux 7.2, and who passes which: `qspinlock.c`, `qrwlock.c`,
//! `mutex.c` (with `SPIN` while it hopes to get it without sleeping), `rwsem.c`, `rtmutex.c`, `percpu-rwsem.c`,
//! `semaphore.c` (none).

/// A sort of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockSort {
    /// Waited for by computing.
    Spinlock,
    /// A spinlock with readers and writers.
    Rwlock,
    /// Slept for, mostly.
    Mutex,
    /// One that passes priorities on.
    RtMutex,
    /// A lock with readers and writers that is slept for.
    Rwsem,
    /// One whose readers each have a CPU's part of it.
    PercpuRwsem,
    /// A counting semaphore.
    Semaphore,
}

/// The flags by their bits, from the lowest.
const FLAGS: [&[u8]; 6] = [b"SPIN", b"READ", b"WRITE", b"RT", b"PERCPU", b"MUTEX"];

impl LockSort {
    /// From the event's flags.
    #[must_use]
    pub fn of_flags(flags: u32) -> Self {
        let has = |bit: u32| flags & (1 << bit) != 0;
        let shared = has(1) || has(2);
        if has(5) {
            Self::Mutex
        } else if has(3) {
            Self::RtMutex
        } else if has(4) {
            Self::PercpuRwsem
        } else if has(0) {
            if shared { Self::Rwlock } else { Self::Spinlock }
        } else if shared {
            Self::Rwsem
        } else {
            Self::Semaphore
        }
    }

    /// From the kernel's words for them: `SPIN|READ`. Flags that nobody knows are left out.
    pub(crate) fn of_words(words: &[u8]) -> Self {
        let bit = |word: &[u8]| FLAGS.iter().position(|flag| *flag == word).map_or(0, |bit| 1 << bit);
        Self::of_flags(words.split(|byte| *byte == b'|').map(bit).fold(0, |flags, bit| flags | bit))
    }

    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spinlock => "spinlock",
            Self::Rwlock => "rwlock",
            Self::Mutex => "mutex",
            Self::RtMutex => "rt_mutex",
            Self::Rwsem => "rwsem",
            Self::PercpuRwsem => "percpu_rwsem",
            Self::Semaphore => "semaphore",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_are_told_alike_by_bits_and_by_words() {
        for (flags, words, name) in [
            (0b000_001, "SPIN", "spinlock"),
            (0b000_011, "SPIN|READ", "rwlock"),
            (0b000_101, "SPIN|WRITE", "rwlock"),
            (0b100_000, "MUTEX", "mutex"),
            (0b100_001, "SPIN|MUTEX", "mutex"),
            (0b001_000, "RT", "rt_mutex"),
            (0b000_010, "READ", "rwsem"),
            (0b000_100, "WRITE", "rwsem"),
            (0b010_010, "READ|PERCPU", "percpu_rwsem"),
            (0, "", "semaphore"),
            (1 << 9, "0x200", "semaphore"),
        ] {
            assert_eq!(LockSort::of_flags(flags).name(), name);
            assert_eq!(LockSort::of_words(words.as_bytes()).name(), name, "{words}");
        }
    }
}
