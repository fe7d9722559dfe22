//! Values that several messages contain.
//! Not here: the messages (`protocol`), their bytes (`codec`, `fields`).

/// Identifies a process in the driver's sense: one open connection. One broker never reuses a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId(pub u32);

/// Identifies a thread of a process: its slot in the process's table of doorbells, and the slot's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// Index of its doorbell.
    pub slot: u32,
    /// Number of threads that have used the slot, this one included.
    pub generation: u32,
}

impl ThreadKey {
    /// Key of no thread: the first user of a slot has generation 1.
    pub const NOBODY: Self = Self { slot: 0, generation: 0 };
}

/// Scheduling of a thread: a Linux policy number and its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    /// `SCHED_OTHER` 0, `SCHED_FIFO` 1, `SCHED_RR` 2, `SCHED_BATCH` 3, `SCHED_IDLE` 5.
    pub policy: u32,
    /// The nice value of a fair policy (-20..=19), the real-time priority (1..=99) of FIFO and RR.
    pub priority: i32,
    /// The nice value (-20..=19); a thread keeps it under every policy.
    pub nice: i32,
}

/// A thread together with its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The process.
    pub proc: ProcId,
    /// The process's thread.
    pub thread: ThreadKey,
}

/// Longest chain of waiting threads that a call carries; of a longer one the nearest are kept.
pub const LINEAGE_MAX: usize = 16;

/// Threads that wait for the call that a thread serves, nearest first. A nested call back is delivered to the
/// waiting thread that this list names (contract TX-06).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lineage {
    len: u32,
    links: [Link; LINEAGE_MAX],
}

impl Lineage {
    /// No thread waits.
    pub const EMPTY: Self =
        Self { len: 0, links: [Link { proc: ProcId(0), thread: ThreadKey::NOBODY }; LINEAGE_MAX] };

    /// The waiting threads, nearest first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links[..self.len as usize]
    }

    /// This lineage with one more thread in front; the farthest is dropped above [`LINEAGE_MAX`].
    #[must_use]
    pub fn behind(&self, nearest: Link) -> Self {
        let kept = (self.len as usize).min(LINEAGE_MAX - 1);
        let mut longer = Self { len: kept as u32 + 1, ..Self::EMPTY };
        longer.links[0] = nearest;
        longer.links[1..=kept].copy_from_slice(&self.links[..kept]);
        longer
    }

    /// Makes a lineage from links in order; `None` if there are more than [`LINEAGE_MAX`].
    #[must_use]
    pub fn from_links(links: &[Link]) -> Option<Self> {
        let mut made = Self { len: u32::try_from(links.len()).ok()?, ..Self::EMPTY };
        made.links.get_mut(..links.len())?.copy_from_slice(links);
        Some(made)
    }

    /// The nearest waiting thread of a process.
    #[must_use]
    pub fn find(&self, proc: ProcId) -> Option<ThreadKey> {
        self.links().iter().find(|link| link.proc == proc).map(|link| link.thread)
    }
}

impl std::fmt::Debug for Lineage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.links()).finish()
    }
}

/// Most returns that one piece of work turns into (a node that lost its references before its owner
/// heard of them: contract REF-08, REF-12).
pub const RETURNS_MAX: usize = 4;

/// Small returns that one [`super::protocol::Request::TakeWork`] gives: the `BR_*` word and its one or two
/// 8-byte payload words (ptr and cookie; cookie; cookie and state).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returns {
    len: u32,
    all: [(u32, [u64; 2]); RETURNS_MAX],
}

impl Returns {
    /// Appends a return; false if there is no room.
    pub fn push(&mut self, word: u32, payload: [u64; 2]) -> bool {
        match self.all.get_mut(self.len as usize) {
            Some(place) => {
                *place = (word, payload);
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The returns in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, [u64; 2])] {
        &self.all[..self.len as usize]
    }
}
