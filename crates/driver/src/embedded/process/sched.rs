//! Room: changing the calling thread's priority for a call that it serves, and getting it back.
//! Not here: which priority (`embedded::priority`), when (`deliver`, `transact`), the system calls
//! (`sys::sched`).
//! Facts: contract section 14.
//!
//! A change is only made where it can be undone: without the right to become more urgent again,
//! nothing changes at all, as in the kernel (SCH-05).

use sys::sched::{self, Policy};

use super::marking::me;
use crate::embedded::marks::Marks;
use crate::embedded::priority::{
    BATCH, FIFO, IDLE, OTHER, RR, is_realtime, nice, policy, realtime, wanted_nice, with_nice,
};
use crate::embedded::protocol::Sched;
use crate::embedded::settings::Inherit;

/// What has to be undone at the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    before: Option<Sched>,
}

impl Saved {
    /// Whether there is anything.
    #[inline]
    pub(super) fn is_some(self) -> bool {
        self.before.is_some()
    }
}

/// How the thread that opened the context was scheduled then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home(Sched);

/// How the calling thread is scheduled; remembered for a few milliseconds, so that a call costs no
/// system call for it.
pub(super) fn own() -> Sched {
    sched::own_lately().into()
}

/// The same, asked anew in one system call: somebody else may have changed it. Without the nice under a
/// real-time policy.
pub(super) fn seen() -> Sched {
    sched::attributes().into()
}

/// How the calling thread sends: `before` says how it entered the driver, or how it is since it replied.
/// What is remembered might be older than a priority that somebody else lent it.
pub(super) fn sending(before: Option<Sched>) -> Sched {
    match before {
        Some(real) if is_realtime(real.policy) => Sched { nice: own().nice, ..real },
        Some(fair) => fair,
        None => own(),
    }
}

/// The same of any thread, in two system calls; `None` if it is gone.
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

/// Makes the calling thread so; failing is nothing to report here: what was reached is what the next
/// look shows.
#[cold]
fn become_like(wanted: Sched, marks: Option<&Marks>) {
    let now: Sched = sched::own_now().into();
    if (now.policy, now.priority) != (wanted.policy, wanted.priority)
        && (now.policy != wanted.policy || is_realtime(wanted.policy))
    {
        let _ = sched::set_policy(0, policy(wanted));
    }
    if now.nice != wanted.nice {
        let _ = sched::set_nice(0, wanted.nice);
    }
    if let Some(marks) = marks {
        marks.priority(me(), now, sched::own_now().into(), wanted);
    }
}

/// Undoes what serving a call changed; how the thread is then, if that was anything.
pub(super) fn restore(saved: Saved, marks: Option<&Marks>) -> Option<Sched> {
    saved.before.inspect(|before| become_like(*before, marks))
}

/// Gives up a real-time policy that this thread has and is not to have: it was raised for a call that it, or
/// another, had taken already. One system call, unless that happened.
pub(super) fn drop_vain_boost(wanted: Sched, marks: Option<&Marks>) {
    if !is_realtime(wanted.policy) && sched::attributes().policy.is_realtime() {
        become_like(wanted, marks);
    }
}

impl Home {
    /// The calling thread's.
    pub(super) fn find() -> Self {
        Self(sched::own_now().into())
    }

    /// How the opener was scheduled, if that was fair and the calling thread, which is free, is real-time where
    /// policies are inherited: then most likely a caller raised it on its way here.
    pub(super) fn if_boosted(&self, mode: Inherit) -> Option<Sched> {
        let Self(home) = *self;
        let may_be = mode == Inherit::Rt && !is_realtime(home.policy);
        (may_be && is_realtime(seen().policy)).then_some(home)
    }

    /// A thread that waits for any work does so as the opener did (contract SCH-04): at its nice, and where
    /// policies are inherited with its policy, whatever an earlier call or a boost in vain left behind.
    /// Returns how it waits, where a boost may come before it is woken.
    #[inline(always)] // one of its two callers is the hot path
    pub(super) fn settle(&self, mode: Inherit, marks: Option<&Marks>) -> Option<Sched> {
        let Self(home) = *self;
        if mode == Inherit::None {
            return None;
        }
        if mode == Inherit::Rt {
            self.settle_policy(marks);
        }
        if sched::own_lately().nice != home.nice {
            let now = own();
            change(now, with_nice(now, home.nice), marks);
        }
        (mode == Inherit::Rt).then_some(home)
    }

    #[inline(never)]
    fn settle_policy(&self, marks: Option<&Marks>) {
        let Self(home) = *self;
        let now = seen();
        if (now.policy, is_realtime(now.policy).then_some(now.priority))
            != (home.policy, is_realtime(home.policy).then_some(home.priority))
        {
            become_like(home, marks);
        }
    }

    /// What serving a call changes in a thread that waited as `before` says: it may have been boosted
    /// since.
    #[inline]
    pub(super) fn serve(
        &self,
        mode: Inherit,
        before: Option<Sched>,
        (caller, node_flags, oneway): (Sched, u32, bool),
        marks: Option<&Marks>,
    ) -> Saved {
        let stays = match mode {
            Inherit::None => true,
            // Most often: whoever is as nice as its caller stays so.
            Inherit::Nice => {
                let nice = sched::own_lately().nice;
                wanted_nice(nice, caller, node_flags, oneway) == nice
            }
            Inherit::Rt => false,
        };
        match stays {
            true => Saved::default(),
            false => self.become_callers(mode, before, (caller, node_flags, oneway), marks),
        }
    }

    #[inline(never)]
    fn become_callers(
        &self,
        mode: Inherit,
        before: Option<Sched>,
        (caller, node_flags, oneway): (Sched, u32, bool),
        marks: Option<&Marks>,
    ) -> Saved {
        let now = match (mode, before) {
            // Only its policy: nobody else changes the nice.
            (Inherit::Rt, Some(before)) => with_nice(before, own().nice),
            _ => own(),
        };
        let wanted = match mode {
            Inherit::Rt => realtime(now, caller, node_flags, oneway),
            _ => nice(now, caller, node_flags, oneway),
        };
        if wanted == now && mode == Inherit::Rt {
            drop_vain_boost(now, marks);
        }
        Saved { before: (wanted != now && change(now, wanted, marks)).then_some(now) }
    }
}

/// Changes the calling thread as far as it may; whether it may at all.
#[cold]
fn change(now: Sched, wanted: Sched, marks: Option<&Marks>) -> bool {
    if is_realtime(wanted.policy) {
        // Its nice does not count meanwhile, and might not come back.
        become_like(Sched { nice: now.nice, ..wanted }, marks);
        return true;
    }
    if is_realtime(now.policy) && !may_be_realtime(now.priority) {
        return false;
    }
    // Asked anew, as capabilities and limits are a thread's own and may change; only on this path.
    let floor = sched::most_urgent_nice();
    let nice = wanted.nice.max(floor);
    let stays = floor > 19 || nice > now.nice && floor > now.nice;
    if stays && !is_realtime(now.policy) {
        return false;
    }
    become_like(with_nice(wanted, if stays { now.nice } else { nice }), marks);
    true
}

/// Whether the calling thread, once it is no more, may become real-time of this priority again.
fn may_be_realtime(priority: i32) -> bool {
    sys::capability::has_sys_nice() || i32::try_from(sys::rt_limit::most_priority()).unwrap_or(0) >= priority
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread that may be real-time, or not at all.
    fn as_fifo(job: impl FnOnce(Home) + Send + 'static) {
        let aside = std::thread::spawn(|| {
            let home = Home::find();
            match sched::set_policy(0, Policy::Fifo(5)) {
                Ok(()) => job(home),
                Err(error) => println!("SKIP: this needs a real-time policy: {error}"),
            }
        });
        aside.join().expect("no panic");
    }

    #[test]
    fn sch_09_a_policy_that_was_only_lent_does_not_outlive_the_call() {
        as_fifo(|home| {
            assert_eq!(home.settle(Inherit::Rt, None), Some(home.0));
            assert!(!is_realtime(seen().policy), "a free thread waits as the opener did");
        });
        as_fifo(|home| {
            // Raised for a call that another thread took; then an ordinary one comes.
            let saved = home.serve(Inherit::Rt, Some(home.0), (home.0, 0x13, false), None);
            assert_eq!((saved, seen().policy), (Saved::default(), OTHER));
        });
        as_fifo(|home| {
            drop_vain_boost(Sched { policy: FIFO, ..home.0 }, None);
            assert_eq!(seen().policy, FIFO, "its own");
            drop_vain_boost(home.0, None);
            assert_eq!(seen().policy, OTHER);
        });
    }

    #[test]
    fn sch_07_policies_are_left_alone_where_they_are_not_inherited() {
        as_fifo(|home| {
            assert_eq!((home.settle(Inherit::Nice, None), home.settle(Inherit::None, None)), (None, None));
            assert_eq!(seen().policy, FIFO);
        });
    }
}
