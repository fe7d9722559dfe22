//! Room: the neutral event: what happened, when, on which CPU, while which thread ran.
//! Not here: reading events (`raw`, `text`); joining them into transactions.
//! Facts: `include/trace/events/{sched,irq,power,workqueue,vmscan,ipi,lock}.h`, Linux 7.2; Android's kernels
//! for `sched_blocked_reason`.

mod binder;
mod lock;
mod mark;
mod names;
mod task;

pub use binder::{Binder, Buffer, Flavour, LatencyFree, Transaction};
pub use lock::LockSort;
pub use mark::{Mark, own_mark};
pub use names::{Name, Names};
pub use task::{Context, Prio, State, Task};

/// One event of a trace.
///
/// Names are numbers of the reader's [`Names`]; only printed text is allocated for each event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Nanoseconds of the trace's clock. Text often has microseconds only.
    pub ts: u64,
    /// The CPU that it happened on. For most kinds that is also the one it is about.
    pub cpu: u32,
    /// The thread that ran there (`common_pid`): 0 is the idle task. For a wake-up that is the waker,
    /// or whoever an interrupt came upon ([`Context::in_interrupt`]). -1 for [`Kind::Lost`].
    pub tid: i32,
    /// Its process, where the trace knows it.
    pub tgid: Option<i32>,
    /// Its name, [`Name::NONE`] where the trace does not know it.
    pub comm: Name,
    /// Interrupts and preemption at that moment.
    pub context: Context,
    /// What happened.
    pub kind: Kind,
}

/// What happened.
///
/// New kinds will come: match with a default arm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// `sched_switch`: `prev` left this CPU in `state`, `next` has it now.
    Switch {
        /// Who left. Its `prio` is the effective one, as inherited or lent.
        prev: Task,
        /// Why.
        state: State,
        /// Who came.
        next: Task,
    },
    /// `sched_waking`: somebody, on this CPU, begins to wake this task.
    Waking(Wake),
    /// `sched_wakeup`: it is runnable on `target_cpu` now. May be logged on that CPU instead.
    Wakeup(Wake),
    /// `sched_wakeup_new`: a new task is runnable.
    WakeupNew(Wake),
    /// `sched_blocked_reason` (Android's kernels only): what this task waited for until now.
    BlockedReason {
        /// The task.
        tid: i32,
        /// Whether it waited for I/O.
        io_wait: bool,
        /// The kernel function that it slept in.
        caller: Place,
    },
    /// `sched_pi_setprio`: an rt-mutex (or a donated lease) changed this task's priority.
    PiSetprio {
        /// The task, with its old priority.
        task: Task,
        /// Its new one.
        new_prio: Prio,
    },
    /// `sched_migrate_task`: this task goes to another CPU's queue.
    Migrate {
        /// The task.
        task: Task,
        /// From which CPU.
        from_cpu: u32,
        /// To which.
        to_cpu: u32,
    },
    /// An interrupt handler starts: `irq_handler_entry`, an `irq_vectors` event, or `ipi_entry`.
    IrqEntry {
        /// Which.
        irq: Irq,
        /// Its handler's name (`eth0`), its vector's event (`local_timer`), or its reason.
        name: Name,
    },
    /// It ends.
    IrqExit {
        /// Which.
        irq: Irq,
        /// As on entry; [`Name::NONE`] for a line, whose exit does not say it.
        name: Name,
    },
    /// `softirq_raise`: this softirq will run on this CPU.
    SoftirqRaise(Softirq),
    /// `softirq_entry`.
    SoftirqEntry(Softirq),
    /// `softirq_exit`.
    SoftirqExit(Softirq),
    /// `ipi_send_cpu`, `ipi_send_cpumask`, `ipi_raise`: another CPU is interrupted by this one.
    IpiSend {
        /// Which CPU, where the event names a single one.
        to_cpu: Option<u32>,
        /// The reason (arm) or the callback's symbol, where known.
        reason: Name,
    },
    /// `cpu_idle`: `cpu` enters an idle state, or leaves it (`None`).
    CpuIdle {
        /// Which CPU.
        cpu: u32,
        /// The state's index; deeper ones take longer to leave.
        state: Option<u32>,
    },
    /// `cpu_frequency`: `cpu` runs at this frequency from now on.
    CpuFrequency {
        /// Which CPU.
        cpu: u32,
        /// kHz.
        khz: u32,
    },
    /// `workqueue_execute_start`: this kworker begins one piece of work.
    WorkStart {
        /// The work item's address, for pairing.
        work: u64,
        /// What it runs.
        function: Place,
    },
    /// `workqueue_execute_end`.
    WorkEnd {
        /// The work item's address.
        work: u64,
    },
    /// `mm_vmscan_direct_reclaim_begin`: this thread must free memory itself.
    ReclaimBegin {
        /// Allocation order, pages as a power of two.
        order: i32,
    },
    /// `mm_vmscan_direct_reclaim_end`.
    ReclaimEnd {
        /// Pages freed.
        reclaimed: u64,
    },
    /// `contention_begin`: this thread waits for a lock of the kernel from now on, computing or asleep. A mutex may have
    /// two of these and one end.
    ContentionBegin(LockSort),
    /// `contention_end`: it has it, or gave up.
    ContentionEnd,
    /// One of a binder driver's events.
    Binder(Flavour, Binder),
    /// Text from `trace_marker` or `trace_printk`; parsed by [`Mark::parse`].
    /// Texts that are the embedded driver's events come as [`Kind::Binder`] instead.
    Print(Box<str>),
    /// Here, before this time on this CPU, events are missing.
    Lost {
        /// How many; `None` where the trace only says that some are.
        count: Option<u64>,
    },
    /// An event that nothing here looks into.
    Other {
        /// Its name.
        name: Name,
    },
}

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The task, with its priority at that moment.
    pub task: Task,
    /// The CPU that it will run on. For `sched_waking` the one it ran on last.
    pub target_cpu: u32,
}

/// A place in the kernel's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its address; 0 where the trace has only the symbol.
    pub address: u64,
    /// Its symbol; [`Name::NONE`] where the trace has only the address.
    pub symbol: Name,
}

/// Which interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Irq {
    /// A line, with its Linux number.
    Line(i32),
    /// A vector of the processor's own (x86 `irq_vectors`).
    Vector(i32),
    /// Between CPUs (arm).
    Ipi,
}

/// Which softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Softirq(pub u32);

/// Fact: `include/linux/interrupt.h`, same order since 2.6.39 (`IRQ_POLL` was `BLOCK_IOPOLL`).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Softirq {
    /// Its name as `/proc/softirqs` has it, `?` for one that is not known.
    #[must_use]
    pub fn name(self) -> &'static str {
        usize::try_from(self.0).ok().and_then(|vec| SOFTIRQS.get(vec)).copied().unwrap_or("?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stays_small() {
        // Millions of them are moved through the merge; a fat variant belongs in a box.
        assert!(size_of::<Event>() <= 88, "{} bytes", size_of::<Event>());
    }

    #[test]
    fn softirqs_have_the_kernels_names() {
        assert_eq!(Softirq(1).name(), "TIMER");
        assert_eq!(Softirq(9).name(), "RCU");
        assert_eq!(Softirq(10).name(), "?");
    }
}
