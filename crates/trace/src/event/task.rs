//! Task identity, priority and state in scheduler events; interrupt context of an event.
//! Facts: `include/linux/sched/prio.h` and `include/trace/events/sched.h`, Linux 7.2.

use super::Name;
use std::fmt;

/// Thread as named in scheduler events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread ID; 0 is a CPU's idle task.
    pub tid: i32,
    /// Name at that moment.
    pub comm: Name,
    /// Effective priority at that moment.
    pub prio: Prio,
}

/// Kernel priority: lower is more urgent. Below 0 is deadline, 0 to 99 real-time, 100 to 139 nice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prio(pub i32);

impl Prio {
    /// Real-time priority (`SCHED_FIFO` or `SCHED_RR`), higher is more urgent; `None` for other classes.
    #[must_use]
    pub fn rt_priority(self) -> Option<i32> {
        (0..100).contains(&self.0).then(|| 99 - self.0)
    }

    /// Nice value; `None` for real-time and deadline.
    #[must_use]
    pub fn nice(self) -> Option<i32> {
        (self.0 >= 100).then(|| self.0 - 120)
    }

    /// Whether this priority preempts `other`: a higher class, or both real-time. Nice values share the CPU and do
    /// not preempt each other.
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

/// Task state in which it left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Preempted, stays runnable (`R+`).
    Preempted,
    /// Stays runnable; gave up the CPU itself (`R`).
    Runnable,
    /// Interruptible sleep (`S`).
    Sleeping,
    /// Uninterruptible sleep (`D`): I/O, a lock, memory.
    Uninterruptible,
    /// Stopped or traced (`T`, `t`).
    Stopped,
    /// Exiting (`Z`, `X`).
    Dead,
    /// Parked kernel thread (`P`).
    Parked,
    /// Idle kernel thread, not counted as load (`I`).
    Idle,
    /// Any other state.
    Other,
}

impl State {
    /// State for the first of the kernel's letters; `+` for a preempted task, which texts mark at the end.
    #[must_use]
    pub fn of_letter(letter: u8) -> Self {
        match letter {
            b'+' => Self::Preempted,
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

    /// Whether the task is still runnable.
    #[must_use]
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Preempted | Self::Runnable)
    }
}

/// Interrupt context of an event: the kernel's `common_flags`, without those that differ between kernels.
/// Fact: `enum trace_flag_type` of `include/linux/trace_events.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context(u8);

impl Context {
    const IRQS_OFF: u8 = 0x01;
    const NEED_RESCHED: u8 = 0x04;
    const HARDIRQ: u8 = 0x08;
    const SOFTIRQ: u8 = 0x10;
    const NMI: u8 = 0x40;
    const INTERRUPT: u8 = Self::HARDIRQ | Self::SOFTIRQ | Self::NMI;

    /// Context from `common_flags` of a raw event.
    #[must_use]
    pub fn of_flags(flags: u8) -> Self {
        Self(flags & (Self::IRQS_OFF | Self::NEED_RESCHED | Self::INTERRUPT))
    }

    /// `common_flags` of a raw event with this context; inverse of [`Context::of_flags`].
    #[must_use]
    pub fn flags(self) -> u8 {
        self.0
    }

    /// Context from the flag columns of the kernel's text (`d.h2.`).
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
        Self(irqs | resched | inside)
    }

    /// Whether it is any interrupt context: then the named thread did not cause the event.
    #[must_use]
    pub fn in_interrupt(self) -> bool {
        self.0 & Self::INTERRUPT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_the_kernels() {
        for (prio, rt, nice, text) in [
            (Prio(0), Some(99), None, "rt 99"),
            (Prio(98), Some(1), None, "rt 1"),
            (Prio(100), None, Some(-20), "nice -20"),
            (Prio(120), None, Some(0), "nice 0"),
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
        for (flags, columns) in [
            (0x00, "....."),
            (0x01, "d..2."),
            (0x0d, "dNh1."),
            (0x19, "d.H11"),
            (0x10, "..s1"),
            (0x41, "d.z.."),
            (0x04, ".n..."),
        ] {
            assert_eq!(Context::of_flags(flags | 0x20), Context::of_text(columns.as_bytes()), "{columns}");
            assert_eq!(Context::of_flags(flags).flags(), flags, "{columns}");
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
