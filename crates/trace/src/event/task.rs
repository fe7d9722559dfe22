//! Room: what a scheduler's event says of a task: its number, name, priority, state; and the context an
//! event happened in.
//! Facts: `include/linux/sched/prio.h` and `include/trace/events/sched.h`, Linux 7.2;
//! `include/linux/trace_events.h` for the flags.

use super::Name;
use std::fmt;

/// A thread as the scheduler's events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number; 0 is the idle task of a CPU.
    pub tid: i32,
    /// Its name at that moment.
    pub comm: Name,
    /// Its effective priority at that moment.
    pub prio: Prio,
}

/// The kernel's own priority: lower is more urgent. Below 0 deadline, 0 to 99 real-time, 100 to 139 by
/// nice value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prio(pub i32);

impl Prio {
    /// The priority of a nice value.
    #[must_use]
    pub fn of_nice(nice: i32) -> Self {
        Self(nice.saturating_add(120))
    }

    /// The priority of a thread with this real-time priority, 1 to 99.
    #[must_use]
    pub fn of_rt(rt_priority: i32) -> Self {
        Self(99_i32.saturating_sub(rt_priority))
    }

    /// Whether it is `SCHED_DEADLINE`'s.
    #[must_use]
    pub fn is_deadline(self) -> bool {
        self.0 < 0
    }

    /// Whether it is `SCHED_FIFO`'s or `SCHED_RR`'s.
    #[must_use]
    pub fn is_rt(self) -> bool {
        (0..100).contains(&self.0)
    }

    /// The real-time priority, higher is more urgent; `None` for the others.
    #[must_use]
    pub fn rt_priority(self) -> Option<i32> {
        self.is_rt().then(|| 99 - self.0)
    }

    /// The nice value; `None` for real-time and deadline.
    #[must_use]
    pub fn nice(self) -> Option<i32> {
        (self.0 >= 100).then(|| self.0 - 120)
    }

    /// Whether a task of this priority goes before one of `other`: of different classes, or both
    /// real-time. Nice values share the CPU and do not go before one another.
    #[must_use]
    pub fn goes_before(self, other: Self) -> bool {
        self.0 < other.0 && self.0 < 100
    }
}

impl fmt::Display for Prio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rt_priority(), self.nice()) {
            (Some(rt), _) => write!(f, "rt {rt}"),
            (_, Some(nice)) => write!(f, "nice {nice}"),
            _ => f.write_str("deadline"),
        }
    }
}

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It was preempted and stays runnable (`R+`).
    Preempted,
    /// It stays runnable, having given way itself (`R`).
    Runnable,
    /// It sleeps and may be interrupted (`S`).
    Sleeping,
    /// It sleeps and may not (`D`): I/O, a lock, memory.
    Uninterruptible,
    /// It was stopped, or is traced (`T`, `t`).
    Stopped,
    /// It ends (`Z`, `X`).
    Dead,
    /// A parked kernel thread (`P`).
    Parked,
    /// An idle kernel thread, which counts as no load (`I`).
    Idle,
    /// Anything else.
    Other,
}

impl State {
    /// From the letter of the kernel's text, of which the first counts.
    #[must_use]
    pub fn of_letter(letter: u8) -> Self {
        match letter {
            b'R' => Self::Runnable,
            b'S' => Self::Sleeping,
            b'D' | b'K' => Self::Uninterruptible,
            b'T' | b't' => Self::Stopped,
            b'Z' | b'X' | b'x' => Self::Dead,
            b'P' => Self::Parked,
            b'I' => Self::Idle,
            _ => Self::Other,
        }
    }

    /// Whether it still wants the CPU.
    #[must_use]
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Preempted | Self::Runnable)
    }
}

/// What an event interrupted: flags of the moment it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context(u8);

impl Context {
    const IRQS_OFF: u8 = 1;
    const NEED_RESCHED: u8 = 2;
    const HARDIRQ: u8 = 4;
    const SOFTIRQ: u8 = 8;
    const NMI: u8 = 16;
    const PREEMPT_OFF: u8 = 32;

    /// From `common_flags` and `common_preempt_count` of a raw event.
    /// Fact: `enum trace_flag_type`; the preempt depth is the low four bits since 6.0, the whole before.
    #[must_use]
    pub fn of_raw(flags: u8, preempt_count: u8) -> Self {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        Self(
            bit(flags & 0x01 != 0, Self::IRQS_OFF)
                | bit(flags & 0x04 != 0, Self::NEED_RESCHED)
                | bit(flags & 0x08 != 0, Self::HARDIRQ)
                | bit(flags & 0x10 != 0, Self::SOFTIRQ)
                | bit(flags & 0x40 != 0, Self::NMI)
                | bit(preempt_count & 0x0f != 0, Self::PREEMPT_OFF),
        )
    }

    /// The `common_flags` that a raw event of this context has; [`Context::of_raw`] backwards.
    #[must_use]
    pub fn flags(self) -> u32 {
        [
            (Self::IRQS_OFF, 0x01),
            (Self::NEED_RESCHED, 0x04),
            (Self::HARDIRQ, 0x08),
            (Self::SOFTIRQ, 0x10),
            (Self::NMI, 0x40),
        ]
        .iter()
        .filter(|(bit, _)| self.0 & bit != 0)
        .map(|(_, flag)| flag)
        .sum()
    }

    /// From the flag columns of the kernel's text (`d.h2.`).
    /// Fact: `trace_print_lat_fmt` of `kernel/trace/trace_output.c`.
    #[must_use]
    pub fn of_text(columns: &[u8]) -> Self {
        let column = |at: usize| columns.get(at).copied().unwrap_or(b'.');
        let irqs = if matches!(column(0), b'd' | b'D') { Self::IRQS_OFF } else { 0 };
        let resched = if matches!(column(1), b'N' | b'n' | b'B' | b'b') { Self::NEED_RESCHED } else { 0 };
        let inside = match column(2) {
            b'Z' => Self::NMI | Self::HARDIRQ,
            b'z' => Self::NMI,
            b'H' => Self::HARDIRQ | Self::SOFTIRQ,
            b'h' => Self::HARDIRQ,
            b's' => Self::SOFTIRQ,
            _ => 0,
        };
        let depth = column(3);
        let preempt = if depth != b'.' && depth != b'0' { Self::PREEMPT_OFF } else { 0 };
        Self(irqs | resched | inside | preempt)
    }

    /// Interrupts were off.
    #[must_use]
    pub fn irqs_off(self) -> bool {
        self.0 & Self::IRQS_OFF != 0
    }

    /// The scheduler was to run at the next occasion.
    #[must_use]
    pub fn need_resched(self) -> bool {
        self.0 & Self::NEED_RESCHED != 0
    }

    /// In a hardware interrupt's handler.
    #[must_use]
    pub fn in_hardirq(self) -> bool {
        self.0 & Self::HARDIRQ != 0
    }

    /// In a softirq.
    #[must_use]
    pub fn in_softirq(self) -> bool {
        self.0 & Self::SOFTIRQ != 0
    }

    /// In an interrupt of any sort: the thread that the event names did not do this itself.
    #[must_use]
    pub fn in_interrupt(self) -> bool {
        self.0 & (Self::HARDIRQ | Self::SOFTIRQ | Self::NMI) != 0
    }

    /// Preemption was off.
    #[must_use]
    pub fn preempt_off(self) -> bool {
        self.0 & Self::PREEMPT_OFF != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_the_kernels() {
        for (prio, rt, nice, text) in [
            (Prio(0), Some(99), None, "rt 99"),
            (Prio::of_rt(1), Some(1), None, "rt 1"),
            (Prio(100), None, Some(-20), "nice -20"),
            (Prio::of_nice(0), None, Some(0), "nice 0"),
            (Prio(-1), None, None, "deadline"),
        ] {
            assert_eq!((prio.rt_priority(), prio.nice(), prio.to_string().as_str()), (rt, nice, text));
        }
        assert!(Prio(-1).goes_before(Prio(0)) && Prio(0).goes_before(Prio(98)));
        assert!(Prio(98).goes_before(Prio(100)) && !Prio(100).goes_before(Prio(139)));
        assert!(!Prio(50).goes_before(Prio(50)));
    }

    #[test]
    fn context_reads_alike_from_bits_and_from_columns() {
        for (flags, preempt, columns) in [
            (0x00, 0x00, "....."),
            (0x01, 0x02, "d..2."),
            (0x0d, 0x01, "dNh1."),
            (0x19, 0x11, "d.H11"),
            (0x10, 0x01, "..s1"),
            (0x41, 0x00, "d.z.."),
            (0x04, 0x00, ".n..."),
        ] {
            assert_eq!(Context::of_raw(flags, preempt), Context::of_text(columns.as_bytes()), "{columns}");
            assert_eq!(Context::of_raw(flags, preempt).flags(), u32::from(flags), "{columns}");
        }
        assert!(Context::of_text(b"d.s2").in_interrupt() && !Context::of_text(b"d..2").in_interrupt());
        assert!(Context::of_text(b"").eq(&Context::default()));
    }

    #[test]
    fn states_know_who_still_wants_to_run() {
        assert!(State::of_letter(b'R').is_runnable() && State::Preempted.is_runnable());
        for letter in *b"SDTtZXPI?" {
            assert!(!State::of_letter(letter).is_runnable());
        }
    }
}
