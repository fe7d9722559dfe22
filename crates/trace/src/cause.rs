//! Causes of a transaction's duration, and the test for priority inversion.
//! Not here: finding them (`model`); sums over many transactions and sentences about them (`verdict`).
//!
//! `label` is the table of causes, with the events that prove each; `evidence` are the kinds of events.

mod evidence;
mod label;

pub use evidence::{Evidence, Shown};
pub use label::Label;

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

/// Cause of one time segment of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The calling thread ran, outside the driver.
    ClientRunning,
    /// The serving thread ran.
    ServerRunning,
    /// Driver work, in either thread or in the broker.
    Driver,
    /// Runnable, while another task had the CPU.
    Runnable(CpuHolder),
    /// Runnable behind another task, while the CPU that it later ran on was idle.
    WrongCpu {
        /// Task that had the CPU whose queue the thread was in.
        behind: CpuHolder,
        /// CPU on which the thread could have run.
        idle_cpu: u32,
    },
    /// Woken; the CPU was idle and awake, or its idle state is unknown.
    WakeLatency,
    /// Woken from another CPU; the interrupt that enqueues the thread had not arrived.
    WakeInterrupt,
    /// Woken; the CPU was still in an idle state. Includes the interrupt's latency and the exit latency.
    IdleExit {
        /// Index of the idle state.
        state: u32,
    },
    /// An interrupt handler had the CPU.
    Interrupt {
        /// The interrupt.
        irq: Irq,
        /// Its name, if the trace has it.
        name: Name,
    },
    /// A softirq had the CPU.
    SoftInterrupt(Softirq),
    /// Sent, but no server thread was free.
    NoFreeThread {
        /// `debug_id` of the call that occupied the thread which finally took this one.
        busy_with: Option<i32>,
    },
    /// Oneway call queued behind others, or without a free thread.
    OnewayQueue,
    /// The receiver is frozen.
    Frozen,
    /// Direct reclaim: the thread had to free memory.
    KernelReclaim,
    /// Waited for the runtime's garbage collector.
    UserReclaim,
    /// Waited for a Java monitor.
    Monitor,
    /// Waited for an ART lock.
    ArtLock,
    /// Slept in a futex.
    Mutex,
    /// Slept for I/O in this function.
    Io(CodeLocation),
    /// Slept in a kernel lock.
    KernelLock(CodeLocation),
    /// Waited for a kernel lock of this kind, spinning or asleep.
    Contention(LockKind),
    /// Nested call whose segments the trace does not show.
    Nested,
    /// Uninterruptible sleep of unknown reason.
    Uninterruptible(CodeLocation),
    /// Slept until a thread of its own process woke it: a lock or a condition variable.
    Thread {
        /// Thread that woke it.
        waker: i32,
        /// Name of the waker.
        comm: Name,
    },
    /// Sleep of unknown reason.
    Sleeping {
        /// Kernel function that it slept in, if known.
        place: CodeLocation,
        /// Who ended it: a thread of another process or of an unknown one, or an interrupt.
        waker: Option<Waker>,
    },
    /// Stopped or traced.
    Stopped,
    /// The CPU executed nothing of its own past a due interrupt: a hypervisor or the firmware had it, or the kernel kept
    /// interrupts off.
    Stolen,
    /// No event, and the trace cannot tell whether the task ran or its CPU was taken.
    Silent,
    /// Not shown by the trace.
    Unknown,
}

impl Cause {
    /// Its row in the table of causes.
    #[must_use]
    pub fn label(&self) -> Label {
        match self {
            Self::ClientRunning => Label::ClientRunning,
            Self::ServerRunning => Label::ServerRunning,
            Self::Driver => Label::Driver,
            Self::Runnable(_) => Label::RunnableWait,
            Self::WrongCpu { .. } => Label::WrongCpu,
            Self::WakeLatency => Label::WakeupLatency,
            Self::WakeInterrupt => Label::WakeupInterrupt,
            Self::IdleExit { .. } => Label::IdleExit,
            Self::Interrupt { .. } => Label::Irq,
            Self::SoftInterrupt(_) => Label::Softirq,
            Self::NoFreeThread { .. } => Label::NoFreeThread,
            Self::OnewayQueue => Label::OnewayQueue,
            Self::Frozen => Label::Frozen,
            Self::KernelReclaim => Label::KernelReclaim,
            Self::UserReclaim => Label::UserReclaim,
            Self::Monitor => Label::Monitor,
            Self::ArtLock => Label::ArtLock,
            Self::Mutex => Label::Mutex,
            Self::Io(_) => Label::Io,
            Self::KernelLock(_) | Self::Contention(_) => Label::LockWait,
            Self::Nested => Label::Nested,
            Self::Uninterruptible(_) => Label::UninterruptibleSleep,
            Self::Thread { .. } => Label::ThreadWait,
            Self::Sleeping { .. } => Label::Sleep,
            Self::Stopped => Label::Stopped,
            Self::Stolen => Label::Stolen,
            Self::Silent => Label::Silent,
            Self::Unknown => Label::NotShown,
        }
    }

    /// Name in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.label().name()
    }

    /// Task that the thread waited behind.
    #[must_use]
    pub fn behind(&self) -> Option<CpuHolder> {
        match self {
            Self::Runnable(behind) | Self::WrongCpu { behind, .. } => Some(*behind),
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
    /// because no other thread could have been boosted.
    #[must_use]
    pub fn inversion(&self, caller: i32, caller_prio: Option<Prio>) -> Option<Inversion> {
        let behind = self.cause.behind()?;
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
mod tests {
    use super::*;

    #[test]
    fn inversion_needs_an_urgent_caller_and_somebody_less_urgent_in_the_way() {
        let wait = |prio: i32, behind: i32| Segment {
            begin: 0,
            end: 1,
            cause: Cause::Runnable(CpuHolder { tid: 9, comm: Name::NONE, prio: Some(Prio(behind)) }),
            tid: 5,
            prio: Some(Prio(prio)),
            cpu: Some(0),
            depth: 0,
            slice: SliceName::NONE,
        };
        let (rt, low_rt, nice) = (Prio(0), Prio(89), Prio(100));
        let of = |part: Segment, caller: Prio| part.inversion(4, Some(caller));
        assert_eq!(of(wait(120, 120), rt), Some(Inversion::NotBoosted));
        assert_eq!(of(wait(0, 120), rt), Some(Inversion::LatePreemption));
        assert_eq!(of(wait(low_rt.0, 120), rt), Some(Inversion::NotBoosted));
        assert_eq!(of(wait(120, 0), rt), None, "who is as urgent as the caller may run");
        assert_eq!(of(wait(120, 120), nice), None, "nice values share a CPU");
        assert_eq!(wait(120, 120).inversion(5, Some(rt)), None, "the caller itself waits");
        assert_eq!(wait(120, 120).inversion(4, None), None);
    }
}
