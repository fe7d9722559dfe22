//! Neutral trace event: what happened, when, on which CPU, in which thread.
//! Not here: reading events (`raw`, `text`); joining them into transactions (`model`).
//! Facts: `include/trace/events/{sched,irq,power,workqueue,vmscan,ipi,lock}.h`, Linux 7.2; Android kernels for
//! `sched_blocked_reason`.

mod binder;
#[cfg(test)]
pub(crate) mod fixtures;
mod lock;
mod mark;
mod names;
mod task;

pub use binder::{Binder, Buffer, Flavour, LatencyFree, Transaction};
pub use lock::LockKind;
pub use mark::{Mark, own_mark};
pub use names::{Name, Names};
pub use task::{Context, Prio, State, Task};

/// One trace event.
///
/// Names are indices into the reader's [`Names`]; only printed text is allocated per event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Nanoseconds of the trace clock. Text traces often have microsecond resolution.
    pub ts: u64,
    /// CPU on which it happened. For most kinds also the CPU that it is about.
    pub cpu: u32,
    /// Running thread (`common_pid`); 0 is the idle task. For a wake-up this is the waker, or the thread that an
    /// interrupt hit ([`Context::in_interrupt`]). -1 for [`Kind::Lost`].
    pub tid: i32,
    /// Process of the thread, if known.
    pub tgid: Option<i32>,
    /// Name of the thread; [`Name::NONE`] if unknown.
    pub comm: Name,
    /// Interrupt and preemption state.
    pub context: Context,
    /// Kind of event, with its fields.
    pub kind: Kind,
}

impl Event {
    /// Gap in the events of a CPU, before this time.
    pub(crate) fn lost(ts: u64, cpu: u32, count: Option<u64>) -> Self {
        let context = Context::default();
        Self { ts, cpu, tid: -1, tgid: None, comm: Name::NONE, context, kind: Kind::Lost { count } }
    }
}

/// Kind of a trace event.
///
/// New kinds will be added: match with a default arm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// `sched_switch`: `prev` leaves this CPU in `state`, `next` runs.
    Switch {
        /// Task that leaves. `prio` is its effective priority, including inheritance.
        prev: Task,
        /// State of `prev`.
        state: State,
        /// Task that runs next.
        next: Task,
    },
    /// `sched_waking`: a wake-up of this task begins on this CPU.
    Waking(Wake),
    /// `sched_wakeup`: the task is runnable on `target_cpu`. May be logged on that CPU.
    Wakeup(Wake),
    /// `sched_wakeup_new`: a new task is runnable.
    WakeupNew(Wake),
    /// `sched_blocked_reason` (Android kernels only): reason of the sleep that just ended.
    BlockedReason {
        /// The task that slept.
        tid: i32,
        /// Whether it waited for I/O.
        io_wait: bool,
        /// Kernel function that it slept in.
        caller: CodeLocation,
    },
    /// `sched_pi_setprio`: an rt-mutex (or proxy execution) changed a task's priority.
    PiSetprio {
        /// The task, with its old priority.
        task: Task,
        /// New priority.
        new_prio: Prio,
    },
    /// `sched_migrate_task`: a task moves to another CPU's run queue.
    Migrate {
        /// The task.
        task: Task,
        /// Old CPU.
        from_cpu: u32,
        /// New CPU.
        to_cpu: u32,
    },
    /// `task_rename`: a thread has this name from now on. Its priority is not known, and 0.
    Rename(Task),
    /// `sched_process_exit`: this thread ends.
    Exit(Task),
    /// Start of an interrupt handler: `irq_handler_entry`, an `irq_vectors` event, or `ipi_entry`.
    IrqEntry {
        /// The interrupt.
        irq: Irq,
        /// Handler name (`eth0`), vector event (`local_timer`), or IPI reason.
        name: Name,
    },
    /// End of an interrupt handler.
    IrqExit {
        /// The interrupt.
        irq: Irq,
        /// Same name as on entry; [`Name::NONE`] for a line, whose exit event has no name.
        name: Name,
    },
    /// `softirq_raise`: the softirq will run on this CPU.
    SoftirqRaise(Softirq),
    /// `softirq_entry`.
    SoftirqEntry(Softirq),
    /// `softirq_exit`.
    SoftirqExit(Softirq),
    /// `ipi_send_cpu`, `ipi_send_cpumask`, `ipi_raise`: this CPU interrupts another one.
    IpiSend {
        /// Target CPU, if the event names a single one.
        to_cpu: Option<u32>,
        /// Reason (arm) or callback symbol, if known.
        reason: Name,
    },
    /// `cpu_idle`: `cpu` enters an idle state, or leaves it (`None`).
    CpuIdle {
        /// The CPU.
        cpu: u32,
        /// Index of the state; deeper states have a longer exit latency.
        state: Option<u32>,
    },
    /// `cpu_frequency`: new frequency of `cpu`.
    CpuFrequency {
        /// The CPU.
        cpu: u32,
        /// Frequency in kHz.
        khz: u32,
    },
    /// `workqueue_execute_start`: this kworker begins a work item.
    WorkStart {
        /// Address of the work item, for pairing.
        work: u64,
        /// Work function.
        function: CodeLocation,
    },
    /// `workqueue_execute_end`.
    WorkEnd {
        /// Address of the work item.
        work: u64,
    },
    /// `mm_vmscan_direct_reclaim_begin`: this thread must free memory itself.
    ReclaimBegin {
        /// Allocation order (log2 of pages).
        order: i32,
    },
    /// `mm_vmscan_direct_reclaim_end`.
    ReclaimEnd {
        /// Pages freed.
        reclaimed: u64,
    },
    /// `contention_begin`: this thread begins to wait for a kernel lock, spinning or asleep. A mutex may have two
    /// begins and one end.
    ContentionBegin(LockKind),
    /// `contention_end`: the thread has the lock, or gave up.
    ContentionEnd,
    /// Event of a binder driver.
    Binder(Flavour, Binder),
    /// Text from `trace_marker` or `trace_printk`; see [`Mark::parse`]. Texts that are embedded-driver events come as
    /// [`Kind::Binder`] instead.
    Print(Box<str>),
    /// Statement of the recorder, not an event: it never paused, and this CPU, while it is busy, has a timer interrupt at
    /// least this often.
    Tick {
        /// Nanoseconds.
        period: u64,
    },
    /// Events are missing on this CPU before this time.
    Lost {
        /// Number of lost events; `None` if the trace does not say.
        count: Option<u64>,
    },
    /// Any other event.
    Other {
        /// Event name.
        name: Name,
    },
}

/// Wake-up of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The woken task, with its priority at that moment.
    pub task: Task,
    /// CPU that it will run on; for `sched_waking` the CPU that it last ran on.
    pub target_cpu: u32,
}

/// Location in kernel code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeLocation {
    /// Address; 0 if the trace has only the symbol.
    pub address: u64,
    /// Symbol; [`Name::NONE`] if the trace has only the address.
    pub symbol: Name,
}

/// Interrupt number, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Irq {
    /// Interrupt line, with its Linux IRQ number.
    Line(i32),
    /// Processor-local vector (x86 `irq_vectors`).
    Vector(i32),
    /// Inter-processor interrupt (arm).
    Ipi,
}

/// Softirq number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Softirq(pub u32);

/// Fact: `include/linux/interrupt.h`, same order since 2.6.39 (`IRQ_POLL` was `BLOCK_IOPOLL`).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Softirq {
    /// Softirq of block devices.
    pub const BLOCK: Self = Self(4);

    /// Name as in `/proc/softirqs`; `?` if unknown.
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
        // The merge moves millions of events; a large variant belongs in a box.
        assert!(size_of::<Event>() <= 88, "{} bytes", size_of::<Event>());
    }

    #[test]
    fn softirqs_have_the_kernels_names() {
        assert_eq!(Softirq(1).name(), "TIMER");
        assert_eq!(Softirq(9).name(), "RCU");
        assert_eq!(Softirq(10).name(), "?");
        assert_eq!(Softirq::BLOCK.name(), "BLOCK");
    }
}
