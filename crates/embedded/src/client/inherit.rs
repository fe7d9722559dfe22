//! Changes a thread's priority for a call that it serves, and restores it.
//! Not here: which priority (`embedded::priority`), when (`deliver`, `serve`, `read`), the system calls
//! (`sys::sched`).
//! Facts: contract section 14.
//!
//! A change is made only if it can be undone: a thread without the right to become more urgent again changes
//! nothing, as in the kernel (SCH-05).

use sys::sched::{self, Policy};
use sys::urgency;

use crate::priority::{
    BATCH, FIFO, IDLE, OTHER, RR, Restore, is_realtime, nice, policy, realtime, wanted_nice, with_nice,
};
use crate::rpc::protocol::Sched;
use crate::settings::Inherit;
use crate::trace_events::TraceWriter;

use super::identity::Identity;

/// Scheduling of the thread that opened the context, at that time, and what threads inherit there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    sched: Sched,
    mode: Inherit,
}

/// A call, as far as the thread that serves it inherits from its caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Scheduling of the caller.
    pub(super) caller: Sched,
    /// Flags of the called node.
    pub(super) node_flags: u32,
    pub(super) oneway: bool,
}

/// Scheduling with which a thread sends. `before`: its scheduling at entry into the driver, or since it
/// replied. The cached value may predate a boost by another thread.
pub(super) fn sending(thread: Identity, before: Option<Sched>) -> Sched {
    match before {
        Some(real) if is_realtime(real.policy) => Sched { nice: thread.scheduling().nice, ..real },
        Some(fair) => fair,
        None => thread.scheduling(),
    }
}

/// Scheduling of thread `tid`, in two system calls; `None` if the thread is gone.
pub(super) fn of(tid: u32) -> Option<Sched> {
    let tid = i32::try_from(tid).ok()?;
    let (policy, nice) = (sched::policy_of(tid).ok()?, sched::nice_of(tid).ok()?);
    Some(sched::Own { policy, nice }.into())
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

/// Sets a thread's scheduling. Ignores errors: the next look shows the result.
fn become_like(thread: Identity, wanted: Sched, trace: Option<&TraceWriter>) {
    let now = thread.asked();
    if (now.policy, now.priority) != (wanted.policy, wanted.priority)
        && (now.policy != wanted.policy || is_realtime(wanted.policy))
    {
        let _ = sched::set_policy(thread.number(), policy(wanted));
    }
    if now.nice != wanted.nice {
        let _ = sched::set_nice(thread.number(), wanted.nice);
    }
    if let Some(trace) = trace.and_then(TraceWriter::of_details) {
        trace.priority(thread.named(), now, thread.asked(), wanted);
    }
}

/// Undoes the change for a served call; returns the scheduling then, if it changed.
pub(super) fn restore(thread: Identity, restore: Restore, trace: Option<&TraceWriter>) -> Option<Sched> {
    restore.0.inspect(|before| become_like(thread, *before, trace))
}

/// Gives up an unwanted real-time policy: a boost for a call that the thread or another one had already
/// taken. One system call if nothing has to change.
pub(super) fn drop_vain_boost(thread: Identity, wanted: Sched, trace: Option<&TraceWriter>) {
    if !is_realtime(wanted.policy) && is_realtime(thread.scheduling_now().policy) {
        become_like(thread, wanted, trace);
    }
}

impl Home {
    /// The opener's scheduling now.
    pub(super) fn of(opener: Identity, mode: Inherit) -> Self {
        Self { sched: opener.asked(), mode }
    }

    /// The opener's scheduling, if it is fair and this free thread is real-time where policies are inherited:
    /// most likely a caller boosted the thread on its way here.
    pub(super) fn if_boosted(&self, thread: Identity) -> Option<Sched> {
        let Self { sched: home, .. } = *self;
        (!is_realtime(home.policy) && is_realtime(thread.scheduling_now().policy)).then_some(home)
    }

    /// Schedules a thread that waits for any work like the opener (contract SCH-04): with its nice and, where
    /// policies are inherited, its policy, whatever an earlier call or an unused boost left behind. Returns
    /// the scheduling while waiting, where a boost may precede a wake-up.
    pub(super) fn settle(&self, thread: Identity, trace: Option<&TraceWriter>) -> Option<Sched> {
        let Self { sched: home, mode } = *self;
        if mode == Inherit::None {
            return None;
        }
        if mode == Inherit::Rt {
            self.settle_policy(thread, trace);
        }
        let now = thread.scheduling();
        if now.nice != home.nice {
            change(thread, now, with_nice(now, home.nice), trace);
        }
        (mode == Inherit::Rt).then_some(home)
    }

    fn settle_policy(&self, thread: Identity, trace: Option<&TraceWriter>) {
        let Self { sched: home, .. } = *self;
        let now = thread.scheduling_now();
        if (now.policy, is_realtime(now.policy).then_some(now.priority))
            != (home.policy, is_realtime(home.policy).then_some(home.priority))
        {
            become_like(thread, home, trace);
        }
    }

    /// Changes the thread's scheduling for a served call, and returns what to restore. `before`: its
    /// scheduling while it waited; it may have been boosted since.
    pub(super) fn serve(
        &self,
        thread: Identity,
        before: Option<Sched>,
        asked: Asked,
        trace: Option<&TraceWriter>,
    ) -> Restore {
        let Asked { caller, node_flags, oneway } = asked;
        let now = match (self.mode, before) {
            (Inherit::None, _) => return Restore::default(),
            // The nice of now: no other thread changes it.
            (Inherit::Rt, Some(before)) => with_nice(before, thread.scheduling().nice),
            _ => thread.scheduling(),
        };
        let wanted = match self.mode {
            Inherit::Rt => realtime(now, caller, node_flags, oneway),
            // Common case: caller and callee have the same nice, nothing changes.
            _ if wanted_nice(now.nice, caller, node_flags, oneway) == now.nice => return Restore::default(),
            _ => nice(now, caller, node_flags, oneway),
        };
        if wanted == now && self.mode == Inherit::Rt {
            drop_vain_boost(thread, now, trace);
        }
        Restore((wanted != now && change(thread, now, wanted, trace)).then_some(now))
    }
}

/// Changes a thread's scheduling as far as the calling thread is permitted; returns whether it was permitted.
fn change(thread: Identity, now: Sched, wanted: Sched, trace: Option<&TraceWriter>) -> bool {
    if is_realtime(wanted.policy) {
        // The nice has no effect under a real-time policy, and might not be recoverable.
        become_like(thread, Sched { nice: now.nice, ..wanted }, trace);
        return true;
    }
    if is_realtime(now.policy) && !may_be_realtime(now.priority) {
        return false;
    }
    // Read each time, because capabilities and limits are per thread and may change. Only this path needs it.
    let floor = urgency::most_urgent_nice();
    let nice = wanted.nice.max(floor);
    let stays = floor > 19 || nice > now.nice && floor > now.nice;
    if stays && !is_realtime(now.policy) {
        return false;
    }
    become_like(thread, with_nice(wanted, if stays { now.nice } else { nice }), trace);
    true
}

/// Whether the calling thread may give this real-time priority back after taking it away.
fn may_be_realtime(priority: i32) -> bool {
    i32::try_from(urgency::highest_priority()).unwrap_or(0) >= priority
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `job` in a real-time thread; skips it without the right to become one.
    fn as_fifo(job: impl FnOnce(Home) + Send + 'static) {
        let aside = std::thread::spawn(|| {
            let home = Home::of(Identity::Caller, Inherit::Rt);
            match sched::set_policy(0, Policy::Fifo(5)) {
                Ok(()) => job(home),
                Err(error) => needs::Need::Realtime.lacks(error).skip(),
            }
        });
        aside.join().expect("no panic");
    }

    #[test]
    fn sch_09_a_policy_that_was_only_lent_does_not_outlive_the_call() {
        as_fifo(|home| {
            assert_eq!(home.settle(Identity::Caller, None), Some(home.sched));
            assert!(
                !is_realtime(Identity::Caller.scheduling_now().policy),
                "a free thread waits as the opener did"
            );
        });
        as_fifo(|home| {
            // Boosted for a call that another thread took; an ordinary call follows.
            let asked = Asked { caller: home.sched, node_flags: 0x13, oneway: false };
            let saved = home.serve(Identity::Caller, Some(home.sched), asked, None);
            assert_eq!((saved, Identity::Caller.scheduling_now().policy), (Restore::default(), OTHER));
        });
        as_fifo(|home| {
            drop_vain_boost(Identity::Caller, Sched { policy: FIFO, ..home.sched }, None);
            assert_eq!(Identity::Caller.scheduling_now().policy, FIFO, "its own");
            drop_vain_boost(Identity::Caller, home.sched, None);
            assert_eq!(Identity::Caller.scheduling_now().policy, OTHER);
        });
    }

    #[test]
    fn sch_07_policies_are_left_alone_where_they_are_not_inherited() {
        as_fifo(|home| {
            for mode in [Inherit::Nice, Inherit::None] {
                assert_eq!(Home { mode, ..home }.settle(Identity::Caller, None), None);
            }
            assert_eq!(Identity::Caller.scheduling_now().policy, FIFO);
        });
    }
}
