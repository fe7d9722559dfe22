//! Waits for work: the conditions, and the thread offered for new work meanwhile.
//! Not here: spinning and sleeping (`shm::wait`), handling the work (`read`).
//! Facts: contract LP-08, WR-05 to WR-07, POL-01 to POL-03; `binder_wait_for_work`, Linux 7.2.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sys::errno::EINTR;

use super::Process;
use super::active_thread::ActiveThread;
use super::core::slot_call::SlotTicket;
use super::core::thread::Frame;
use super::identity::Identity;
use super::inbox::Intake;
use super::inherit;
use crate::priority::is_realtime;
use crate::rpc::protocol::Sched;
use crate::settings::Inherit;
use crate::shm::call_slot::CLOSED;
use crate::shm::wait::{Waiter, Woken};

/// The condition that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The broker's answer to its request.
    Answer,
    /// Work of its own, or of the process if the thread may take that.
    Work {
        /// Whether the thread may take the process's work.
        takes_any: bool,
    },
    /// Readability.
    Readable {
        /// Whether the process's work makes the thread readable.
        takes_any: bool,
    },
}

/// A thread's wait for a condition.
struct Wait<'t, 'p> {
    thread: &'t mut ActiveThread<'p>,
    until: Until,
    deadline: Option<Instant>,
}

impl ActiveThread<'_> {
    /// Checks a condition once, without waiting.
    pub(super) fn look(&mut self, until: Until) -> bool {
        Wait { thread: self, until, deadline: None }.look()
    }

    /// Waits for a condition, until `deadline` at most; returns whether it holds.
    ///
    /// # Errors
    /// `EINTR`: a signal came, except in a wait for an answer. `ECONNRESET`: the broker is gone.
    pub(super) fn wait(&mut self, until: Until, deadline: Option<Instant>) -> io::Result<bool> {
        Wait { thread: self, until, deadline }.carry_out()
    }
}

impl Wait<'_, '_> {
    fn carry_out(&mut self) -> io::Result<bool> {
        let (process, slot, until) = (self.thread.process, self.thread.slot, self.until);
        let mut offered = false;
        let found = loop {
            process.local(slot).kicked.store(false, Ordering::Relaxed);
            if self.look() {
                break Ok(true);
            }
            if process.has_ended() {
                break Err(process.line.gone());
            }
            self.drop_vain_boost();
            self.offer();
            offered = true;
            match self.wait_unlocked() {
                Woken::Ready => {}
                // A signal that coincides with work is reported, and the work stays queued (contract WR-07).
                Woken::Interrupted if until != Until::Answer => {
                    break Err(io::Error::from_raw_os_error(EINTR));
                }
                Woken::Interrupted => {}
                Woken::TimedOut if self.check() => break Ok(true),
                Woken::TimedOut if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    break Ok(self.look());
                }
                Woken::TimedOut => {}
            }
        };
        if offered && until != Until::Answer {
            self.thread.state.core.withdraw(slot);
            self.thread.bell().end_waiting();
        }
        found
    }

    /// Takes in what is new, and checks once.
    fn look(&mut self) -> bool {
        let mut intake = Intake { thread: self.thread };
        intake.take_in(self.until == Until::Work { takes_any: true });
        intake.take_in_awaited_end();
        self.holds()
    }

    fn holds(&mut self) -> bool {
        let (process, slot) = (self.thread.process, self.thread.slot);
        match self.until {
            Until::Answer => self.thread.thread().answer.is_some(),
            Until::Work { takes_any } | Until::Readable { takes_any } => {
                self.thread.state.core.has_work(slot, takes_any)
                    || process.local(slot).need_return.load(Ordering::Relaxed)
            }
        }
    }

    /// Gives up an unused real-time boost: a waker boosts this thread first, maybe for a call that the thread
    /// has already found by itself. (A thread boosted while falling asleep keeps the boost until it looks
    /// again.)
    fn drop_vain_boost(&mut self) {
        let process = self.thread.process;
        if process.settings.inherit == Inherit::Rt
            && self.until != Until::Answer
            && let Some(before) = self.thread.own().before
        {
            inherit::drop_vain_boost(self.thread.who, before, process.trace.as_ref());
        }
    }

    /// Offers the thread for new work.
    fn offer(&mut self) {
        let slot = self.thread.slot;
        if let Until::Work { takes_any } = self.until {
            self.thread.bell().begin_waiting(takes_any);
        }
        match self.until {
            Until::Work { takes_any: true } => self.thread.state.core.offer(slot),
            Until::Readable { takes_any: true } => self.thread.state.core.add_poller(slot),
            _ => {}
        }
    }

    /// Waits without the lock until the condition may hold.
    fn wait_unlocked(&mut self) -> Woken {
        let (slot, who, deadline) = (self.thread.slot, self.thread.who, self.deadline);
        let thread = self.thread.thread();
        let awaited = thread.awaited_slot().cloned();
        // A sending thread must first read the answer.
        let looks = !thread.is_sending();
        // Nested calls are marked like any others, but only this thread's bell is rung.
        let nested = matches!(thread.stack.last(), Some(Frame::Calling(_)));
        let own = self.thread.own();
        let mut waiter = own.waiter.take();
        let before = own.before;
        let woken = self.thread.unlocked(|process| {
            let waits = waiter.get_or_insert_with(|| Box::new(process.new_waiter()));
            if waits.ever_stays_awake() {
                waits.set_realtime(is_urgent(who, before));
            }
            let peer = match &awaited {
                Some(ticket) => ticket.channel.peer_cpu(),
                None => process.last_caller_cpu(),
            };
            let kicked = &process.local(slot).kicked;
            let ready = || {
                looks && awaited.as_ref().is_some_and(SlotTicket::has_outcome)
                    || kicked.load(Ordering::Relaxed)
                    || process.inbox_has_records()
                    || process.bells.anything_ready() && (nested || process.bells.listener() == Some(slot))
            };
            waits.wait(process.bell(slot), peer, deadline, ready)
        });
        self.thread.own().waiter = waiter;
        woken
    }

    /// Checks for a lost end of the wait, if it is time for that; returns whether the condition holds.
    fn check(&mut self) -> bool {
        if !self.thread.own().waiter.as_mut().is_some_and(|waiter| waiter.begin_check()) {
            return false;
        }
        if self.look() {
            return true;
        }
        self.give_up_slot_call();
        if !self.thread.process.is_connected() {
            let process = self.thread.process;
            self.thread.state.end_connection(process);
        }
        self.holds()
    }

    /// Ends a call that nobody will take because its channel was closed. The peer is alive: the broker would
    /// have reported its end by now.
    fn give_up_slot_call(&mut self) {
        let Some(ticket) = self.thread.thread().awaited_slot() else { return };
        let call_slots = &ticket.channel.call_slots;
        if call_slots.gate() & CLOSED != 0 && call_slots.back_out(ticket.call) {
            let slot = self.thread.slot;
            self.thread.state.core.give_up_slot_call(slot);
        }
    }
}

impl Process {
    /// CPU of the last caller through a call slot.
    fn last_caller_cpu(&self) -> Option<u32> {
        self.caller_cpu.load(Ordering::Relaxed).checked_sub(1)
    }

    fn new_waiter(&self) -> Waiter {
        let budget = Duration::from_nanos(self.settings.spin_budget_ns);
        // All online CPUs: a thread bound to one CPU may spin for a peer on another.
        Waiter::new(self.settings.waiting, budget, sys::sched::online_cpus())
    }
}

/// Whether a thread, or the one that waits in its place, is real-time: `before` its boost or, without that, now.
fn is_urgent(who: Identity, before: Option<Sched>) -> bool {
    is_realtime(inherit::sending(who, before).policy) || who != Identity::Caller && sys::sched::is_realtime()
}
