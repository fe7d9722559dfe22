//! Room: a thread that has nothing to do: what it waits for, and who is woken for new work meanwhile.
//! Not here: spinning and sleeping themselves (`channel::wait`), what is done with work (`read`).
//! Facts: contract LP-08, WR-05 to WR-07, POL-01 to POL-03; `binder_wait_for_work`, Linux 7.2.

use std::collections::VecDeque;
use std::hint::cold_path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::state::{Frame, LaneTicket, State, Thread, Todo, Watched};
use super::{Guard, Process, sched};
use crate::embedded::channel::wait::Waiter;
pub(super) use crate::embedded::channel::wait::Woken;
use crate::embedded::priority::is_realtime;
use crate::embedded::protocol::Sched;
use crate::embedded::settings::Inherit;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The broker's answer to its request.
    Answer,
    /// Its own work, and the process's if it may take that.
    Work {
        /// May it?
        proc: bool,
    },
    /// Becoming readable.
    Readable {
        /// Whether the process's work makes it so.
        proc: bool,
    },
}

impl Until {
    /// Whether any work will do, so that the thread is offered for it.
    fn takes_any(self) -> bool {
        matches!(self, Self::Work { proc: true } | Self::Readable { proc: true })
    }
}

impl Process {
    #[inline]
    fn is_there(&self, thread: &Thread, queue: &VecDeque<Todo>, until: Until) -> bool {
        match until {
            Until::Answer => thread.answer.is_some(),
            Until::Work { proc } | Until::Readable { proc } => {
                thread.urgent
                    || self.local(thread.key.slot).need_return.load(Ordering::Relaxed)
                    || proc && !queue.is_empty()
            }
        }
    }

    /// Looks once, without waiting.
    #[inline]
    pub(super) fn look(&self, st: &mut State, slot: u32, until: Until) -> bool {
        self.drain(st, slot, until == Until::Work { proc: true });
        let (thread, queue) = st.thread_and_queue(slot);
        match thread.awaited_lane().filter(|ticket| ticket.has_outcome()) {
            // A reply stays in its lane until it is read,
            Some(ticket) if matches!(until, Until::Work { .. }) && ticket.has_reply() && thread.may_end() => {
                true
            }
            None => match &thread.watched {
                // and so does a call, where its reader is this thread.
                Some(watched) if watched.has_call() => match until {
                    Until::Work { proc: true } => true,
                    _ => self.look_at_lanes(st, slot, until),
                },
                _ => self.is_there(thread, queue, until),
            },
            _ => self.look_at_lanes(st, slot, until),
        }
    }

    /// At those of which a thread need not be told.
    #[inline(never)]
    fn look_at_lanes(&self, st: &mut State, slot: u32, until: Until) -> bool {
        self.take_in_watched(st, slot);
        self.collect_lane_reply(st, slot);
        let (thread, queue) = st.thread_and_queue(slot);
        self.is_there(thread, queue, until)
    }

    /// Waits.
    #[inline]
    pub(super) fn wait<'p>(&'p self, st: Guard<'p>, slot: u32, until: Until) -> (Guard<'p>, Woken) {
        self.wait_for(st, slot, until, None)
    }

    /// [`wait`](Self::wait), until a deadline at most.
    pub(super) fn wait_for<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        until: Until,
        deadline: Option<Instant>,
    ) -> (Guard<'p>, Woken) {
        let local = self.local(slot);
        let mut listed = false;
        let woken = loop {
            local.kicked.store(false, Ordering::Relaxed);
            if self.look(&mut st, slot, until) {
                break Woken::Ready;
            }
            self.drop_vain_boost(&mut st, slot, until);
            self.list(&mut st, slot, until);
            listed = true;
            let thread = st.thread(slot);
            let mut waiter = thread.waiter.take();
            let lane = thread.lane_to_look_at();
            // Whoever sends must read the answer to that first.
            let looks = !thread.is_sending();
            // Its own nested calls come with a mark like anybody's, but only its own bell is rung.
            let nested = matches!(thread.stack.last(), Some(Frame::Calling(_)));
            let watched = if until == (Until::Work { proc: true }) { thread.watched.take() } else { None };
            let before = thread.before;
            let wake = self.unlock(st, slot);
            let waits = waiter.get_or_insert_with(|| Box::new(self.new_waiter()));
            if waits.ever_stays_awake() {
                waits.set_realtime(is_urgent(before));
            }
            let peer = match &lane {
                Some(ticket) => ticket.peer_cpu(),
                None => self.last_caller_cpu(),
            };
            let ready = || {
                looks && lane.as_ref().is_some_and(LaneTicket::has_outcome)
                    || watched.as_ref().is_some_and(Watched::has_call)
                    || local.kicked.load(Ordering::Relaxed)
                    || self.inbox_has_records()
                    || self.bells.anything_ready() && (nested || self.bells.listener() == Some(slot))
            };
            let tell = || self.tell(slot, lane.as_ref());
            let ahead = || lane.as_ref().map(LaneTicket::ahead).or(watched.as_ref().map(Watched::ahead));
            let mut found = None;
            let meanwhile = || {
                let ahead = found.get_or_insert_with(ahead).as_mut();
                ahead.is_some_and(|(channel, ahead)| channel.get_ready(ahead))
            };
            let woken = waits.wait_or_tell(self.bell(slot), peer, deadline, ready, meanwhile, tell);
            // A real-time thread does not pay for it.
            if waits.wants_lookout() && !is_urgent(before) {
                self.lookout.start();
            }
            st = self.lock();
            let thread = st.thread(slot);
            thread.waiter = waiter;
            if watched.is_some() {
                thread.watched = watched.filter(|watched| !watched.channel.is_closed());
            }
            if let Some(ticket) = lane {
                thread.spares.keep(ticket.channel);
            }
            if let Some(wake) = wake {
                thread.spares.keep(wake.channel);
            }
            if woken != Woken::Ready {
                cold_path();
            }
            match woken {
                Woken::Ready => {}
                // A signal that coincides with work is reported all the same, and the work kept
                // (contract WR-07).
                Woken::Interrupted if until != Until::Answer => break Woken::Interrupted,
                Woken::Interrupted => {}
                Woken::TimedOut if self.look_after_long(&mut st, slot, until) => break Woken::Ready,
                Woken::TimedOut => break Woken::TimedOut,
            }
        };
        if listed && until != Until::Answer {
            if until.takes_any() {
                self.unlist(&mut st, slot);
            }
            self.bell(slot).end_waiting();
        }
        (st, woken)
    }

    /// Looks after nothing came for so long: what was waited for may never come.
    #[cold]
    fn look_after_long(&self, st: &mut State, slot: u32, until: Until) -> bool {
        let there = self.look(st, slot, until);
        there
            || self.give_up_lane(st, slot) && {
                let (thread, queue) = st.thread_and_queue(slot);
                self.is_there(thread, queue, until)
            }
    }

    /// There is nothing to do: whoever wakes a thread raises it first, maybe for a call that this one had found by
    /// itself meanwhile. (One that is raised as it falls asleep keeps that until it looks again.)
    #[inline]
    fn drop_vain_boost(&self, st: &mut State, slot: u32, until: Until) {
        if self.settings.inherit == Inherit::Rt {
            cold_path();
            self.drop_real_time_boost(st, slot, until);
        }
    }

    #[inline(never)] // most processes pass no real-time policies on
    fn drop_real_time_boost(&self, st: &mut State, slot: u32, until: Until) {
        if let Some(before) = st.thread(slot).before.filter(|_| until != Until::Answer) {
            sched::drop_vain_boost(before, self.marks.as_ref());
        }
    }

    #[cold] // once in a thread's life
    fn new_waiter(&self) -> Waiter {
        let budget = Duration::from_nanos(self.settings.spin_budget_ns);
        // All that are online: a thread that is bound to one CPU may well spin for a peer on another.
        let mut waiter = Waiter::new(self.settings.waiting, budget, sys::sched::online_cpus());
        waiter.rely_on(self.lookout.shared());
        waiter
    }

    /// Offers a thread for new work.
    fn list(&self, st: &mut State, slot: u32, until: Until) {
        if let Until::Work { proc } = until {
            self.bell(slot).begin_waiting(proc);
        }
        match until {
            Until::Work { proc: true } if !st.idle.contains(&slot) => st.idle.push(slot),
            Until::Readable { proc: true } if !st.pollers.contains(&slot) => st.pollers.push(slot),
            _ => return,
        }
        self.choose_listener(st);
    }

    /// Takes that back: it got some, or goes away.
    pub(super) fn unlist(&self, st: &mut State, slot: u32) {
        let mut was_listed = false;
        for list in [&mut st.idle, &mut st.pollers] {
            // Most often the one that came last.
            if let Some(at) = list.iter().rposition(|other| *other == slot) {
                list.remove(at);
                was_listed = true;
            }
        }
        if was_listed {
            self.choose_listener(st);
        }
    }

    /// Senders wake the thread that became idle last, or else one that polls. If something came
    /// while the choice changed, that thread is woken here.
    ///
    /// With nobody to offer, the last one stays: a thread that is busy is not rung, and looks for
    /// work by itself before it sleeps again.
    fn choose_listener(&self, st: &State) {
        let next = st.idle.last().or(st.pollers.last()).copied();
        if next.is_none() || next == self.bells.listener() {
            return;
        }
        if let Some(bell) = self.bells.hand_over(next, || self.anything_new()) {
            bell.wake();
        }
    }
}

/// Whether a thread that was scheduled like this before it was raised, or as it is, runs at a real-time policy.
#[inline(never)]
fn is_urgent(before: Option<Sched>) -> bool {
    is_realtime(sched::sending(before).policy)
}
