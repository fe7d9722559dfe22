//! Causes of a transaction's duration, and the test for priority inversion.
//! Not here: finding them (`model`); sums over many transactions and sentences about them (`verdict`).
//!
//! `table` has all that is known of a cause before a trace is read, with the events that prove it, its phrase and its fill;
//! `evidence` are the kinds of events.

mod evidence;
pub(crate) mod paint;
pub(crate) mod phrase;
mod table;

pub use evidence::{Evidence, Shown};
pub use table::{Cause, Chain, Label};

use crate::event::{CodeLocation, Irq, LockKind, Name, Prio, Softirq};

/// Task that had the CPU while another one waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpuHolder {
    /// Thread ID; -1 if the trace does not show it.
    pub tid: i32,
    /// Thread name.
    pub comm: Name,
    /// Effective priority.
    pub prio: Option<Prio>,
}

/// Who ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// This thread, with its name.
    Thread(i32, Name),
    /// An interrupt handler, with its name if the trace has it.
    Interrupt(Irq, Name),
    /// A softirq handler.
    SoftInterrupt(Softirq),
    /// An interrupt that the trace does not name.
    Unnamed,
}

/// Name of a slice, as an index into the model's table. Not comparable between models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceName(pub(crate) u32);

impl SliceName {
    /// No slice, or an unknown name.
    pub const NONE: Self = Self(0);

    /// Whether there is a slice with a name.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// Lock of the kernel that a thread waited for, as far as the trace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelLock {
    /// It is of this kind.
    Kind(LockKind),
    /// The thread slept for it in this function.
    Function(CodeLocation),
}

impl Cause {
    /// Name in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.label().name()
    }

    /// Task that the thread waited behind.
    #[must_use]
    pub fn behind(&self) -> Option<CpuHolder> {
        match self {
            Self::Runnable(behind) | Self::Tracing(behind) | Self::Handover(behind) => Some(*behind),
            Self::WrongCpu { behind, .. } => Some(*behind),
            _ => None,
        }
    }
}

/// Time segment of a transaction with a single cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Begin, in nanoseconds of the trace clock.
    pub begin: u64,
    /// End; the next segment begins there.
    pub end: u64,
    /// Cause of this segment.
    pub cause: Cause,
    /// Thread that worked or was waited for; 0 if none.
    pub tid: i32,
    /// Priority of that thread while it waited for a CPU.
    pub prio: Option<Prio>,
    /// CPU that it ran on or waited for.
    pub cpu: Option<u32>,
    /// Nesting depth: 0 for the call itself, 1 for a call that its server made, and so on.
    pub depth: u8,
    /// Innermost slice that the thread was in; if it went through several, the one that it was in longest. For a wait that
    /// a slice declares, that slice.
    pub slice: SliceName,
}

/// Low-priority task that delays a call of a high-priority caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inversion {
    /// Priority inversion: the thread that works for the caller has a lower priority than the caller, and waits
    /// behind a task less urgent than the caller.
    NotBoosted,
    /// Late preemption, not an inversion: the thread has the caller's priority, but the scheduler did not preempt the
    /// less urgent task yet.
    LatePreemption,
}

impl Segment {
    /// Duration in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end - self.begin
    }

    /// Classifies a wait behind a task that is less urgent than the caller. Waits of the caller itself do not count,
    /// because no other thread could have been boosted, nor does a handover.
    #[must_use]
    pub fn inversion(&self, caller: i32, caller_prio: Option<Prio>) -> Option<Inversion> {
        let behind = self.cause.behind().filter(|_| !matches!(self.cause, Cause::Handover(_)))?;
        let (caller_prio, in_the_way) = (caller_prio?, behind.prio?);
        if self.tid == caller || behind.tid == caller || !caller_prio.goes_before(in_the_way) {
            return None;
        }
        match self.prio {
            Some(prio) if prio > caller_prio => Some(Inversion::NotBoosted),
            Some(_) => Some(Inversion::LatePreemption),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests;
