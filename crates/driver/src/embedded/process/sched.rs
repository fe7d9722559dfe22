//! Room: the priority of a thread that serves: what it takes over from its caller and the node, and
//! how it gets back.
//! Not here: when (`deliver`, `transact`), the system calls (`sys::sched`).
//! Facts: contract section 14; `binder_set_nice` and the delivery in `binder_thread_read`, Linux 7.2;
//! `INHERIT_RT` and the policy bits: Android's headers (SCH-09).
//!
//! A change is only made where it can be undone: without the right to become more urgent again,
//! nothing changes at all, as in the kernel (SCH-05).

use abi::codes::flat;
use sys::sched::{self, Policy};

use crate::embedded::protocol::Sched;
use crate::embedded::settings::Inherit;

/// What has to be undone at the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    before: Option<Sched>,
}

/// The process's own scheduling at its open, and what it may change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    nice: i32,
    /// Most urgent nice that its threads may take.
    floor: i32,
}

/// Policy numbers of Linux.
const OTHER: u32 = 0;
const FIFO: u32 = 1;
const RR: u32 = 2;

fn is_realtime(policy: u32) -> bool {
    matches!(policy, FIFO | RR)
}

/// How the calling thread is scheduled; remembered for a few milliseconds, so that a call costs no
/// system call for it.
pub(super) fn own() -> Sched {
    sched::own_lately().into()
}

impl From<sched::Own> for Sched {
    fn from(own: sched::Own) -> Self {
        match own.policy {
            Policy::Fifo(priority) => Self { policy: FIFO, priority: priority.into() },
            Policy::Rr(priority) => Self { policy: RR, priority: priority.into() },
            Policy::Batch => Self { policy: 3, priority: own.nice },
            Policy::Idle => Self { policy: 5, priority: own.nice },
            _ => Self { policy: OTHER, priority: own.nice },
        }
    }
}

/// Makes the calling thread so; failing is nothing to report here: what was reached is what the next
/// look shows.
fn become_like(wanted: Sched) {
    let now = own();
    if now == wanted {
        return;
    }
    let policy = policy(wanted);
    if is_realtime(wanted.policy) || is_realtime(now.policy) || now.policy != wanted.policy {
        let _ = sched::set_policy(0, policy);
    }
    if !is_realtime(wanted.policy) && now.priority != wanted.priority {
        let _ = sched::set_nice(0, wanted.priority);
    }
}

fn policy(wanted: Sched) -> Policy {
    // A real-time priority fits: the kernel has 1 to 99, and others are refused by it.
    let priority = wanted.priority.clamp(0, 255) as u8;
    match wanted.policy {
        FIFO => Policy::Fifo(priority),
        RR => Policy::Rr(priority),
        3 => Policy::Batch,
        5 => Policy::Idle,
        _ => Policy::Other,
    }
}

/// Whether the calling thread has a real-time policy.
pub(super) fn is_realtime_now() -> bool {
    is_realtime(own().policy)
}

/// Undoes what serving a call changed.
pub(super) fn restore(saved: Saved) {
    if let Some(before) = saved.before {
        become_like(before);
    }
}

/// Raises a thread of another process before it is woken, so that nothing can come between (Android's
/// kernels do the same); it takes the same priority over itself when it reads. Without the right to
/// do so nothing happens, and the thread's own attempt shows that.
pub(super) fn boost(tid: u32, caller: Sched) {
    if let Ok(tid) = i32::try_from(tid)
        && tid > 0
    {
        let _ = sched::set_policy(tid, policy(caller));
    }
}

/// Whether a caller's real-time priority passes to whoever serves a node with these flags.
pub(super) fn passes_on(mode: u32, caller: Sched, node_flags: u32) -> bool {
    mode == Inherit::Rt as u32 && is_realtime(caller.policy) && node_flags & flat::ANDROID_INHERIT_RT != 0
}

impl Home {
    /// The calling thread's.
    pub(super) fn find() -> Self {
        Self { nice: sched::nice_of(0).unwrap_or(0), floor: sched::most_urgent_nice() }
    }

    /// A thread that waits for any work does so at the nice of the open (contract SCH-04).
    pub(super) fn settle(&self, mode: Inherit) {
        let now = own();
        if mode != Inherit::None && !is_realtime(now.policy) && now.priority != self.nice && self.may(now) {
            become_like(Sched { priority: self.nice, ..now });
        }
    }

    fn may(&self, now: Sched) -> bool {
        self.floor <= self.nice.min(now.priority)
    }

    /// What serving a call changes.
    pub(super) fn serve(&self, mode: Inherit, caller: Sched, node_flags: u32, oneway: bool) -> Saved {
        let now = own();
        let wanted = match mode {
            Inherit::None => return Saved::default(),
            Inherit::Nice => nice(now, caller, node_flags, oneway),
            Inherit::Rt => realtime(now, caller, node_flags, oneway),
        };
        if wanted == now || !is_realtime(now.policy) && !is_realtime(wanted.policy) && !self.may(now) {
            return Saved::default();
        }
        become_like(self.clamped(wanted));
        Saved { before: Some(now) }
    }

    fn clamped(&self, wanted: Sched) -> Sched {
        if is_realtime(wanted.policy) {
            return wanted;
        }
        Sched { priority: wanted.priority.max(self.floor), ..wanted }
    }
}

/// Mainline's rule: nice only, the caller's or the node's least, whichever is more urgent (contract
/// SCH-01, SCH-02).
fn nice(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    // A real-time caller passes its nice, which is not known here and mostly 0 (SCH-07).
    let callers = if is_realtime(caller.policy) { 0 } else { caller.priority };
    let least = (node_flags & flat::PRIORITY_MASK) as i32;
    let mine = if is_realtime(now.policy) { 0 } else { now.priority };
    let wanted = match oneway {
        false => callers.min(least),
        true if mine > least => least,
        true => return now,
    };
    if is_realtime(now.policy) { now } else { Sched { priority: wanted, ..now } }
}

/// Android's rule: the caller's policy and priority, or the node's least, whichever is more urgent.
fn realtime(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    let policy = (node_flags & flat::ANDROID_SCHED_POLICY_MASK) >> flat::ANDROID_SCHED_POLICY_SHIFT;
    let byte = (node_flags & flat::PRIORITY_MASK) as u8;
    // A real-time least counts 1 to 99, another is a signed nice.
    let least = match is_realtime(policy) {
        true => Sched { policy, priority: byte.into() },
        false => Sched { policy, priority: (byte as i8).into() },
    };
    let inherits = node_flags & flat::ANDROID_INHERIT_RT != 0;
    let callers = match is_realtime(caller.policy) && !inherits {
        true => Sched { policy: OTHER, priority: 0 },
        false => caller,
    };
    if oneway {
        return if urgency(least) > urgency(now) { least } else { now };
    }
    if urgency(least) > urgency(callers) { least } else { callers }
}

/// Larger is more urgent: every real-time priority is above every nice.
fn urgency(sched: Sched) -> i32 {
    if is_realtime(sched.policy) { 100 + sched.priority } else { 20 - sched.priority }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn other(priority: i32) -> Sched {
        Sched { policy: OTHER, priority }
    }
    const fn fifo(priority: i32) -> Sched {
        Sched { policy: FIFO, priority }
    }

    #[test]
    fn sch_01_a_call_takes_the_more_urgent_of_caller_and_node() {
        for (caller, flags, want) in [(7, 0, 0), (-5, 0, -5), (7, 10, 7), (12, 10, 10), (0, 19, 0)] {
            assert_eq!(nice(other(3), other(caller), flags, false), other(want), "{caller} {flags}");
        }
        assert_eq!(nice(other(3), fifo(50), 10, false), other(0), "no real time on mainline");
    }

    #[test]
    fn sch_02_a_oneway_only_raises_to_the_node() {
        assert_eq!(nice(other(10), other(-5), 5, true), other(5));
        assert_eq!(nice(other(0), other(-5), 5, true), other(0));
    }

    #[test]
    fn sch_09_real_time_passes_only_where_the_node_lets_it() {
        let inherits = flat::ANDROID_INHERIT_RT | 10;
        assert_eq!(realtime(other(0), fifo(50), inherits, false), fifo(50));
        assert_eq!(realtime(other(5), fifo(50), 10, false), other(0));
        let least = FIFO << flat::ANDROID_SCHED_POLICY_SHIFT | 3;
        assert_eq!(realtime(other(5), other(0), least, false), fifo(3));
        assert_eq!(realtime(other(5), other(7), 0xec, false), other(-20), "a negative least");
        assert!(passes_on(Inherit::Rt as u32, fifo(1), inherits));
        assert!(!passes_on(Inherit::Nice as u32, fifo(1), inherits));
    }
}
