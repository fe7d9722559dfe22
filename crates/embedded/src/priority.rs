//! Priority rules for a thread that serves a call, without system calls except the one that raises a thread before
//! it is woken.
//! Not here: when they apply, and restoring a priority (`client::inherit`).
//! Facts: contract section 14; `binder_set_nice` and the delivery in `binder_thread_read`, Linux 7.2;
//! `INHERIT_RT` and the policy bits: Android's headers (SCH-09).

use abi::codes::flat;
use sys::sched::{self, Policy};

use super::rpc::protocol::Sched;
use super::settings::Inherit;

/// Scheduling of a thread before it served a call, if the call changed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Restore(pub(super) Option<Sched>);

impl Restore {
    /// Whether there is a change to undo.
    pub(super) fn is_some(self) -> bool {
        self.0.is_some()
    }
}

/// Linux's policy numbers.
pub(super) const OTHER: u32 = 0;
pub(super) const FIFO: u32 = 1;
pub(super) const RR: u32 = 2;
pub(super) const BATCH: u32 = 3;
pub(super) const IDLE: u32 = 5;

/// Whether a policy is a real-time policy.
pub(super) fn is_realtime(policy: u32) -> bool {
    matches!(policy, FIFO | RR)
}

/// This scheduling with another nice value.
pub(super) fn with_nice(now: Sched, nice: i32) -> Sched {
    Sched { nice, priority: if is_realtime(now.policy) { now.priority } else { nice }, ..now }
}

/// Priority number of the kernel's scheduler and trace events: smaller is more urgent.
pub(super) fn kernel_priority(of: Sched) -> i32 {
    if is_realtime(of.policy) { 99 - of.priority } else { 120 + of.nice }
}

/// Converts to the policy type of `sys`.
pub(super) fn policy(wanted: Sched) -> Policy {
    // A real-time priority fits: the kernel accepts only 1 to 99.
    let priority = wanted.priority.clamp(0, 255) as u8;
    match wanted.policy {
        FIFO => Policy::Fifo(priority),
        RR => Policy::Rr(priority),
        BATCH => Policy::Batch,
        IDLE => Policy::Idle,
        _ => Policy::Other,
    }
}

/// A thread to raise: the tid is a hint from its doorbell, the pid is the broker's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// Whether callers may boost a thread: its process inherits real-time policies (`mode`, from its doorbells), and it
/// waits in the driver. A thread that only polls runs the program's own code.
pub(super) fn may_boost(mode: u32, only_polls: impl FnOnce() -> bool) -> bool {
    mode == Inherit::Rt as u32 && !only_polls()
}

/// Boosts a thread before it is woken for a call, so that no other thread runs in between, as in Android's
/// kernels. Requires [`may_boost`], and that this call asks for a real-time policy. The thread applies the same
/// scheduling itself when it reads. Without permission nothing happens, and the thread's own attempt reports that.
/// Returns the new scheduling if it was set.
pub(super) fn boost(thread: Thread, caller: Sched, node_flags: u32, oneway: bool) -> Option<Sched> {
    let wanted = realtime(other(0), caller, node_flags, oneway);
    let tid = i32::try_from(thread.tid).ok()?;
    if !is_realtime(wanted.policy) || !sys::interrupt::is_thread_of(thread.pid, tid) {
        return None;
    }
    sched::set_policy(tid, policy(wanted)).is_ok().then_some(wanted)
}

/// Rule of mainline kernels: nice only, the caller's or the node's minimum, whichever is more urgent (contract
/// SCH-01, SCH-02, SCH-07).
pub(super) fn nice(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    with_nice(now, wanted_nice(now.nice, caller, node_flags, oneway))
}

/// The nice value of [`nice`].
pub(super) fn wanted_nice(now: i32, caller: Sched, node_flags: u32, oneway: bool) -> i32 {
    let least = (node_flags & flat::PRIORITY_MASK) as i32;
    if oneway { now.min(least) } else { caller.nice.min(least) }
}

/// Rule of Android kernels: the caller's policy and priority, or the node's minimum, whichever is more urgent.
pub(super) fn realtime(now: Sched, caller: Sched, node_flags: u32, oneway: bool) -> Sched {
    let policy = (node_flags & flat::ANDROID_SCHED_POLICY_MASK) >> flat::ANDROID_SCHED_POLICY_SHIFT;
    let byte = (node_flags & flat::PRIORITY_MASK) as u8;
    // A real-time minimum is 1 to 99, any other is a signed nice value.
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

/// Urgency of a scheduling; larger is more urgent. Every real-time priority is above every nice value.
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
