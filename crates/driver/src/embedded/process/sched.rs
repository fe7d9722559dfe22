//! Room: changing the calling thread's priority for a call that it serves, and getting it back.
//! Not here: which priority (`embedded::priority`), when (`deliver`, `transact`), the system calls
//! (`sys::sched`).
//! Facts: contract section 14.
//!
//! A change is only made where it can be undone: without the right to become more urgent again,
//! nothing changes at all, as in the kernel (SCH-05).

use sys::sched::{self, Policy};

use crate::embedded::priority::{
    BATCH, FIFO, IDLE, OTHER, RR, is_realtime, nice, policy, realtime, with_nice,
};
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

/// How the calling thread is scheduled; remembered for a few milliseconds, so that a call costs no
/// system call for it.
pub(super) fn own() -> Sched {
    sched::own_lately().into()
}

/// The same, asked anew: somebody else may have changed it.
pub(super) fn own_now() -> Sched {
    sched::own_now().into()
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
    let now = own_now();
    if (now.policy, now.priority) != (wanted.policy, wanted.priority)
        && (now.policy != wanted.policy || is_realtime(wanted.policy))
    {
        let _ = sched::set_policy(0, policy(wanted));
    }
    if now.nice != wanted.nice {
        let _ = sched::set_nice(0, wanted.nice);
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

impl Home {
    /// The calling thread's.
    pub(super) fn find() -> Self {
        Self { nice: sched::nice_of(0).unwrap_or(0) }
    }

    /// A thread that waits for any work does so at the nice of the open (contract SCH-04), and without a
    /// policy that a oneway call or a boost in vain left behind: `before` is how it waited last.
    pub(super) fn settle(&self, mode: Inherit, before: Option<Sched>) {
        if mode == Inherit::None {
            return;
        }
        if let (Inherit::Rt, Some(before)) = (mode, before)
            && is_realtime(own_now().policy)
            && !is_realtime(before.policy)
        {
            become_like(with_nice(before, self.nice));
        }
        let now = own();
        if now.nice != self.nice {
            change(now, with_nice(now, self.nice));
        }
    }

    /// What serving a call changes in a thread that waited as `before` says: it may have been boosted
    /// since.
    pub(super) fn serve(
        &self,
        mode: Inherit,
        before: Option<Sched>,
        caller: Sched,
        node_flags: u32,
        oneway: bool,
    ) -> Saved {
        let now = match (mode, before) {
            (Inherit::None, _) => return Saved::default(),
            // Only its policy: nobody else changes the nice.
            (Inherit::Rt, Some(before)) => with_nice(before, own().nice),
            _ => own(),
        };
        let wanted = match mode {
            Inherit::Rt => realtime(now, caller, node_flags, oneway),
            _ => nice(now, caller, node_flags, oneway),
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
