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

/// The process's own scheduling at its open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    nice: i32,
}

/// Policy numbers of Linux.
const OTHER: u32 = 0;
const FIFO: u32 = 1;
const RR: u32 = 2;
const BATCH: u32 = 3;
const IDLE: u32 = 5;

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
        let (policy, priority) = match own.policy {
            Policy::Fifo(priority) => (FIFO, priority.into()),
            Policy::Rr(priority) => (RR, priority.into()),
            Policy::Batch => (BATCH, own.nice),
            Policy::Idle => (IDLE, own.nice),
            _ => (OTHER, own.nice),
        };
        Self { policy, priority, nice: own.nice }
    }
}

/// Makes the calling thread so; failing is nothing to report here: what was reached is what the next
/// look shows.
fn become_like(wanted: Sched) {
    let now = own();
    if (now.policy, now.priority) != (wanted.policy, wanted.priority)
        && (now.policy != wanted.policy || is_realtime(wanted.policy))
    {
        let _ = sched::set_policy(0, policy(wanted));
    }
    if now.nice != wanted.nice {
        let _ = sched::set_nice(0, wanted.nice);
    }
}

/// The same thread at another nice.
fn with_nice(now: Sched, nice: i32) -> Sched {
    Sched { nice, priority: if is_realtime(now.policy) { now.priority } else { nice }, ..now }
}

fn policy(wanted: Sched) -> Policy {
    // A real-time priority fits: the kernel has 1 to 99, and others are refused by it.
    let priority = wanted.priority.clamp(0, 255) as u8;
    match wanted.policy {
        FIFO => Policy::Fifo(priority),
        RR => Policy::Rr(priority),
        BATCH => Policy::Batch,
        IDLE => Policy::Idle,
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
        Self { nice: sched::nice_of(0).unwrap_or(0) }
    }

    /// A thread that waits for any work does so at the nice of the open (contract SCH-04).
    pub(super) fn settle(&self, mode: Inherit) {
        let now = own();
        if mode != Inherit::None && now.nice != self.nice {
            change(now, with_nice(now, self.nice));
        }
    }

    /// What serving a call changes.
    pub(super) fn serve(&self, mode: Inherit, caller: Sched, node_flags: u32, oneway: bool) -> Saved {
        let now = own();
        let wanted = match mode {
            Inherit::None => return Saved::default(),
            Inherit::Nice => nice(now, caller, node_flags, oneway),
            Inherit::Rt => realtime(now, caller, node_flags, oneway),
        };
        Saved { before: (wanted != now && change(now, wanted)).then_some(now) }
    }
}

/// Changes the calling thread as far as it may; whether it may at all.
fn change(now: Sched, wanted: Sched) -> bool {
    // Asked anew, as capabilities and limits are a thread's own and may change; only on this path.
    let floor = sched::most_urgent_nice();
    let fair = !is_realtime(now.policy) && !is_realtime(wanted.policy);
    let nice = wanted.nice.max(floor);
    if fair && (floor > 19 || nice > now.nice && floor > now.nice) {
        return false;
    }
    become_like(if is_realtime(wanted.policy) { wanted } else { with_nice(wanted, nice) });
    true
}

/// Mainline's rule: nice only, the caller's or the node's least, whichever is more urgent (contract
/// SCH-01, SCH-02, SCH-07).
fn nice(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    let least = (node_flags & flat::PRIORITY_MASK) as i32;
    match oneway {
        false => with_nice(now, caller.nice.min(least)),
        true => with_nice(now, now.nice.min(least)),
    }
}

/// Android's rule: the caller's policy and priority, or the node's least, whichever is more urgent.
fn realtime(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    let policy = (node_flags & flat::ANDROID_SCHED_POLICY_MASK) >> flat::ANDROID_SCHED_POLICY_SHIFT;
    let byte = (node_flags & flat::PRIORITY_MASK) as u8;
    // A real-time least counts 1 to 99, another is a signed nice.
    let least = match is_realtime(policy) {
        true => Sched { policy, priority: byte.into(), nice: now.nice },
        false => Sched { policy, ..with_nice(other(0), (byte as i8).into()) },
    };
    let inherits = node_flags & flat::ANDROID_INHERIT_RT != 0;
    let callers = match is_realtime(caller.policy) && !inherits {
        true => other(0),
        false => caller,
    };
    if oneway {
        return if urgency(least) > urgency(now) { least } else { now };
    }
    if urgency(least) > urgency(callers) { least } else { callers }
}

const fn other(nice: i32) -> Sched {
    Sched { policy: OTHER, priority: nice, nice }
}

/// Larger is more urgent: every real-time priority is above every nice.
fn urgency(sched: Sched) -> i32 {
    if is_realtime(sched.policy) { 100 + sched.priority } else { 20 - sched.priority }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fifo(priority: i32) -> Sched {
        Sched { policy: FIFO, priority, nice: 0 }
    }

    #[test]
    fn sch_01_a_call_takes_the_more_urgent_of_caller_and_node() {
        for (caller, flags, want) in [(7, 0, 0), (-5, 0, -5), (7, 10, 7), (12, 10, 10), (0, 19, 0)] {
            assert_eq!(nice(other(3), other(caller), flags, false), other(want), "{caller} {flags}");
        }
        let urgent = Sched { nice: 7, ..fifo(50) };
        assert_eq!(nice(other(3), urgent, 10, false), other(7), "no real time on mainline");
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
        assert_eq!(realtime(other(5), other(0), least, false), Sched { nice: 5, ..fifo(3) });
        assert_eq!(realtime(other(5), other(7), 0xec, false), other(-20), "a negative least");
        assert!(passes_on(Inherit::Rt as u32, fifo(1), inherits));
        assert!(!passes_on(Inherit::Nice as u32, fifo(1), inherits));
    }
}
