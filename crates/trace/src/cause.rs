//! Room: what a transaction's time can have gone to, and when that is priority inversion.
//! Not here: sums over many transactions and sentences about them (`verdict`).
//! Facts: reasons that Perfetto's `android/binder_breakdown.sql` has a name for carry that name: `kernel_memory_reclaim`,
//! `userspace_memory_reclaim`, `monitor_contention`, `art_lock_contention`, `binder`, `mutex_contention`, `io`. It goes by
//! slices and by the scheduler's state; where the kernel itself says more (a futex, I/O), so do we.

mod divide;

pub(crate) use divide::{Asked, Nested, divide};

use crate::event::{Irq, LockSort, Name, Place, Prio, Softirq};

/// Who had the CPU that somebody else waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    /// The task; -1 where the trace does not show it.
    pub tid: i32,
    /// Its name.
    pub comm: Name,
    /// Its effective priority.
    pub prio: Option<Prio>,
}

/// The one cause of some nanoseconds of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The calling thread computed, outside the driver.
    ClientRunning,
    /// The serving thread computed.
    ServerRunning,
    /// The driver's work, in either thread or in its broker.
    Driver,
    /// Runnable, but another task had the CPU.
    Runnable(Behind),
    /// Runnable behind another task, while the CPU that it ran on in the end was idle.
    WrongCpu {
        /// Who had the CPU where it waited.
        behind: Behind,
        /// The one where it could have run.
        idle_cpu: u32,
    },
    /// Woken, and the CPU idle but already awake, or not known to sleep.
    WakeLatency,
    /// Woken from another CPU, and the interrupt that puts it into its CPU's queue had not come yet.
    WakeInterrupt,
    /// Woken, and the CPU still in an idle state: the way of the interrupt to it, and out of the state.
    IdleExit {
        /// The state's index.
        state: u32,
    },
    /// An interrupt handler had the CPU.
    Interrupt {
        /// Which.
        irq: Irq,
        /// Its name, where the trace has it.
        name: Name,
    },
    /// A softirq had the CPU.
    SoftInterrupt(Softirq),
    /// Sent, but no thread of the server took calls.
    NoFreeThread {
        /// The call that the thread was busy with which took this one in the end.
        busy_with: Option<i32>,
    },
    /// A oneway call behind others in its queue, or without a free thread.
    OnewayQueue,
    /// The receiver is frozen.
    Frozen,
    /// The thread had to free memory.
    KernelReclaim,
    /// It waited for its runtime to free memory.
    UserReclaim,
    /// It waited for a Java monitor.
    Monitor,
    /// It waited for a lock of the Android runtime.
    ArtLock,
    /// It slept in a futex.
    Mutex,
    /// It slept for I/O.
    Io,
    /// It slept in a lock of the kernel.
    KernelLock(Place),
    /// It waited for a lock of the kernel of this sort, computing or asleep.
    Contention(LockSort),
    /// A call of its own, of which the trace does not show the parts.
    Nested,
    /// It slept and could not be interrupted, and the trace does not say why.
    Uninterruptible(Place),
    /// It slept until a thread of its own process woke it: a lock or a condition of that process.
    Thread {
        /// The thread that woke it.
        waker: i32,
        /// That thread's name.
        comm: Name,
    },
    /// It slept, and the trace does not say why.
    Sleeping(Place),
    /// It was stopped, or a debugger held it.
    Stopped,
    /// The trace does not show what it did.
    Unknown,
}

impl Cause {
    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientRunning => "client_running",
            Self::ServerRunning => "server_running",
            Self::Driver => "driver",
            Self::Runnable(_) => "runnable_wait",
            Self::WrongCpu { .. } => "wrong_cpu",
            Self::WakeLatency => "wakeup_latency",
            Self::WakeInterrupt => "wakeup_interrupt",
            Self::IdleExit { .. } => "idle_exit",
            Self::Interrupt { .. } => "irq",
            Self::SoftInterrupt(_) => "softirq",
            Self::NoFreeThread { .. } => "no_free_thread",
            Self::OnewayQueue => "oneway_queue",
            Self::Frozen => "frozen",
            Self::KernelReclaim => "kernel_memory_reclaim",
            Self::UserReclaim => "userspace_memory_reclaim",
            Self::Monitor => "monitor_contention",
            Self::ArtLock => "art_lock_contention",
            Self::Mutex => "mutex_contention",
            Self::Io => "io",
            Self::KernelLock(_) | Self::Contention(_) => "lock_wait",
            Self::Nested => "binder",
            Self::Uninterruptible(_) => "uninterruptible_sleep",
            Self::Thread { .. } => "thread_wait",
            Self::Sleeping(_) => "sleep",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// The task that the waiting one waited behind.
    #[must_use]
    pub fn behind(&self) -> Option<Behind> {
        match self {
            Self::Runnable(behind) | Self::WrongCpu { behind, .. } => Some(*behind),
            _ => None,
        }
    }
}

/// Some nanoseconds of a transaction, and what they went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// When they begin, in nanoseconds of the trace's clock.
    pub begin: u64,
    /// When they end; the next part begins there.
    pub end: u64,
    /// What they went to.
    pub cause: Cause,
    /// The thread that was at work or was waited for; 0 where nobody was.
    pub tid: i32,
    /// Its priority while it waited for a CPU.
    pub prio: Option<Prio>,
    /// The CPU it ran on or waited for.
    pub cpu: Option<u32>,
    /// 0 for the call itself, 1 for a call that its server made meanwhile, and so on.
    pub depth: u8,
}

/// A low-priority task in the way of a call of a high-priority caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inversion {
    /// The thread that works for the caller has a lower priority than the caller, and waits for others of
    /// less urgency than the caller's: priority inversion.
    NotBoosted,
    /// It has the caller's priority and goes before who runs there, yet was not let in: a scheduler that
    /// comes late, not an inversion of priorities.
    LatePreemption,
}

impl Part {
    /// How long it is.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end - self.begin
    }

    /// Whether this part is a wait of a call with a caller of this priority behind a task that the caller
    /// would go before. The caller's own waiting is none: nobody else could have been boosted.
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
        let wait = |prio: i32, behind: i32| Part {
            begin: 0,
            end: 1,
            cause: Cause::Runnable(Behind { tid: 9, comm: Name::NONE, prio: Some(Prio(behind)) }),
            tid: 5,
            prio: Some(Prio(prio)),
            cpu: Some(0),
            depth: 0,
        };
        let (rt, low_rt, nice) = (Prio::of_rt(99), Prio::of_rt(10), Prio::of_nice(-20));
        let of = |part: Part, caller: Prio| part.inversion(4, Some(caller));
        assert_eq!(of(wait(120, 120), rt), Some(Inversion::NotBoosted));
        assert_eq!(of(wait(0, 120), rt), Some(Inversion::LatePreemption));
        assert_eq!(of(wait(low_rt.0, 120), rt), Some(Inversion::NotBoosted));
        assert_eq!(of(wait(120, 0), rt), None, "who is as urgent as the caller may run");
        assert_eq!(of(wait(120, 120), nice), None, "nice values share a CPU");
        assert_eq!(wait(120, 120).inversion(5, Some(rt)), None, "the caller itself waits");
        assert_eq!(wait(120, 120).inversion(4, None), None);
    }
}
