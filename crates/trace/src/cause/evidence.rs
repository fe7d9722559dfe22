//! Kinds of events that a trace has: what may be concluded rests on them.
//! Not here: which cause needs which (`table`).

use crate::event::{Binder, Event, Kind, Mark};

/// Kind of event, as far as causes rest on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// `binder_transaction` and `binder_transaction_received`.
    Calls,
    /// `binder_return`: the driver's answers.
    Returns,
    /// `binder_ioctl` and `binder_ioctl_done`: when a thread is in the driver.
    Ioctls,
    /// `binder_transaction_alloc_buf`: the receiver had room.
    Buffers,
    /// `sched_switch`.
    Switches,
    /// `sched_waking` or `sched_wakeup`.
    Wakeups,
    /// `sched_wakeup`: when a thread was in a CPU's queue.
    Enqueues,
    /// `sched_blocked_reason`.
    SleepReasons,
    /// Interrupt handlers.
    Interrupts,
    /// Softirqs.
    Softirqs,
    /// `cpu_idle`.
    IdleStates,
    /// `contention_begin`.
    LockWaits,
    /// `mm_vmscan_direct_reclaim_begin`.
    Reclaims,
    /// Slices in `trace_marker`.
    Slices,
}

impl Evidence {
    /// Event that has it.
    #[must_use]
    pub fn event(self) -> &'static str {
        match self {
            Self::Calls => "binder_transaction",
            Self::Returns => "binder_return",
            Self::Ioctls => "binder_ioctl",
            Self::Buffers => "binder_transaction_alloc_buf",
            Self::Switches => "sched_switch",
            Self::Wakeups => "sched_waking",
            Self::Enqueues => "sched_wakeup",
            Self::SleepReasons => "sched_blocked_reason",
            Self::Interrupts => "irq_handler_entry",
            Self::Softirqs => "softirq_entry",
            Self::IdleStates => "cpu_idle",
            Self::LockWaits => "contention_begin",
            Self::Reclaims => "mm_vmscan_direct_reclaim_begin",
            Self::Slices => "trace_marker",
        }
    }
}

/// Set of kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown(u32);

impl Shown {
    /// Set of these.
    #[must_use]
    pub fn of(all: &[Evidence]) -> Self {
        let mut shown = Self::default();
        all.iter().for_each(|one| shown.add(*one));
        shown
    }

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, one: Evidence) -> bool {
        self.0 & (1 << one as u16) != 0
    }

    /// Whether it shows who woke whom and who ran: then a wake-up or a switch that is not there was not.
    #[must_use]
    pub fn schedules(self) -> bool {
        self.has(Evidence::Switches) && self.has(Evidence::Wakeups)
    }

    fn add(&mut self, one: Evidence) {
        self.0 |= 1 << one as u16;
    }

    /// Adds what an event shows.
    pub(crate) fn see(&mut self, event: &Event) {
        let seen = match &event.kind {
            Kind::Switch { .. } => Evidence::Switches,
            Kind::Waking(_) => Evidence::Wakeups,
            Kind::Wakeup(_) | Kind::WakeupNew(_) => {
                self.add(Evidence::Wakeups);
                Evidence::Enqueues
            }
            Kind::BlockedReason { .. } => Evidence::SleepReasons,
            Kind::IrqEntry { .. } => Evidence::Interrupts,
            Kind::SoftirqEntry(_) => Evidence::Softirqs,
            Kind::CpuIdle { .. } => Evidence::IdleStates,
            Kind::ContentionBegin(_) => Evidence::LockWaits,
            Kind::ReclaimBegin { .. } => Evidence::Reclaims,
            Kind::Binder(_, Binder::Transaction(_)) => Evidence::Calls,
            Kind::Binder(_, Binder::Return { .. }) => Evidence::Returns,
            Kind::Binder(_, Binder::Ioctl { .. }) => Evidence::Ioctls,
            Kind::Binder(_, Binder::AllocBuf(_)) => Evidence::Buffers,
            Kind::Print(text) if !self.has(Evidence::Slices) => match Mark::parse(text) {
                Some(Mark::Begin { .. }) => Evidence::Slices,
                _ => return,
            },
            _ => return,
        };
        self.add(seen);
    }
}
