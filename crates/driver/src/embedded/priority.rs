//! Room: which priority a thread that serves a call is to have: rules, without any system call but the one
//! that raises a thread before it is woken.
//! Not here: when, and getting back (`process::sched`).
//! Facts: contract section 14; `binder_set_nice` and the delivery in `binder_thread_read`, Linux 7.2;
//! `INHERIT_RT` and the policy bits: Android's headers (SCH-09).

use abi::codes::flat;
use sys::sched::{self, Policy};

use super::protocol::Sched;
use super::settings::Inherit;

/// Policy numbers of Linux.
pub(super) const OTHER: u32 = 0;
pub(super) const FIFO: u32 = 1;
pub(super) const RR: u32 = 2;
pub(super) const BATCH: u32 = 3;
pub(super) const IDLE: u32 = 5;

/// Whether a policy goes before every fair one.
pub(super) fn is_realtime(policy: u32) -> bool {
    matches!(policy, FIFO | RR)
}

/// The same thread at another nice.
pub(super) fn with_nice(now: Sched, nice: i32) -> Sched {
    Sched { nice, priority: if is_realtime(now.policy) { now.priority } else { nice }, ..now }
}

/// The number by which the kernel's scheduler and its trace events order threads: smaller is more urgent.
pub(super) fn kernel_priority(of: Sched) -> i32 {
    if is_realtime(of.policy) { 99 - of.priority } else { 120 + of.nice }
}

/// The policy as `sys` has it.
pub(super) fn policy(wanted: Sched) -> Policy {
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

/// A thread to be raised: its number is only its doorbell's word, its process's is the broker's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// Raises a thread before it is woken for a call, so that nothing can come between (Android's kernels do
/// the same), if its process inherits real-time policies (`mode`, from its doorbells) and this call
/// asks for one. The thread takes the same over itself when it reads. Without the right nothing
/// happens, and the thread's own attempt shows that. Returns how it is now, if that was done.
pub(super) fn boost(
    thread: Thread,
    mode: u32,
    caller: Sched,
    node_flags: u32,
    oneway: bool,
) -> Option<Sched> {
    if mode != Inherit::Rt as u32 {
        return None;
    }
    let wanted = realtime(other(0), caller, node_flags, oneway);
    let tid = i32::try_from(thread.tid).ok()?;
    if !is_realtime(wanted.policy) || !sys::interrupt::is_thread_of(thread.pid, tid) {
        return None;
    }
    sched::set_policy(tid, policy(wanted)).is_ok().then_some(wanted)
}

/// Mainline's rule: nice only, the caller's or the node's least, whichever is more urgent (contract
/// SCH-01, SCH-02, SCH-07).
pub(super) fn nice(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    with_nice(now, wanted_nice(now.nice, caller, node_flags, oneway))
}

/// The nice of [`nice`].
#[inline]
pub(super) fn wanted_nice(now: i32, caller: Sched, node_flags: u32, oneway: bool) -> i32 {
    let least = (node_flags & flat::PRIORITY_MASK) as i32;
    if oneway { now.min(least) } else { caller.nice.min(least) }
}

/// Android's rule: the caller's policy and priority, or the node's least, whichever is more urgent.
pub(super) fn realtime(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
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

pub(super) const fn other(nice: i32) -> Sched {
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
    }
}
