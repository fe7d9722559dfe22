//! Kinds of kernel locks in `contention_begin`.
//! Not here: which thread waits, and since when (`model`).
//! Facts: `LCB_F_*` of `include/trace/events/lock.h`, Linux 7.2, and their users: `qspinlock.c`, `qrwlock.c`,
//! `mutex.c` (with `SPIN` during optimistic spinning), `rwsem.c`, `rtmutex.c`, `percpu-rwsem.c`, `semaphore.c` (no
//! flag).

/// Kind of a kernel lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Spinlock.
    Spinlock,
    /// Reader-writer spinlock.
    Rwlock,
    /// Mutex; sleeps after optimistic spinning.
    Mutex,
    /// Mutex with priority inheritance.
    RtMutex,
    /// Reader-writer semaphore; sleeps.
    Rwsem,
    /// Reader-writer semaphore with per-CPU reader counts.
    PercpuRwsem,
    /// A counting semaphore.
    Semaphore,
}

/// Flag names by bit, lowest first.
const FLAGS: [&[u8]; 6] = [b"SPIN", b"READ", b"WRITE", b"RT", b"PERCPU", b"MUTEX"];

impl LockKind {
    /// Lock kind for the event's flags.
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

    /// Flags of an event with this lock kind; inverse of [`LockKind::of_flags`].
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::Spinlock => 0b1,
            Self::Rwlock => 0b11,
            Self::Mutex => 0b10_0000,
            Self::RtMutex => 0b1000,
            Self::Rwsem => 0b10,
            Self::PercpuRwsem => 0b1_0010,
            Self::Semaphore => 0,
        }
    }

    /// The event's flags for the kernel's flag names, `SPIN|READ`. Ignores unknown names.
    pub(crate) fn flags_of_words(words: &[u8]) -> u32 {
        let bit = |word: &[u8]| FLAGS.iter().position(|flag| *flag == word).map_or(0, |bit| 1 << bit);
        words.split(|byte| *byte == b'|').map(bit).fold(0, |flags, bit| flags | bit)
    }

    /// The kernel's name of the lock kind.
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
    fn lock_kinds_agree_between_flag_bits_and_flag_names() {
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
            assert_eq!(LockKind::of_flags(flags).name(), name);
            let of_words = LockKind::of_flags(LockKind::flags_of_words(words.as_bytes()));
            assert_eq!(of_words.name(), name, "{words}");
            assert_eq!(LockKind::of_flags(of_words.flags()), of_words);
        }
    }
}
