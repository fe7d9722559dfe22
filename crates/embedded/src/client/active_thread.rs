//! A thread inside a driver call, with the process's lock.
//!
//! The lock is released only here: to wait, to talk to the broker, to copy a large payload. The core's
//! effects are carried out before each release. A peer's thread is woken after it: a system call under the
//! lock would delay the other threads.

use std::io;
use std::sync::atomic::Ordering;

use sys::lock::Held;

use sys::errno::EMFILE;

use super::core::Effect;
use super::core::thread::Thread;
use super::delivered::GivenBack;
use super::identity::Identity;
use super::wake::Wake;
use super::{Process, State, ThreadState};
use crate::rpc::protocol::ThreadKey;
use crate::shm::doorbell;

/// A thread inside a driver call, with the lock.
#[derive(Debug)]
pub(super) struct ActiveThread<'p> {
    pub(super) process: &'p Process,
    /// The thread for which the call is made.
    pub(super) who: Identity,
    pub(super) slot: u32,
    pub(super) state: Held<'p, State>,
    /// The peer's thread to wake once the lock is released.
    wake: Option<Wake>,
    /// The buffer that the broker takes back with the current reply.
    pub(super) given_back: Option<Box<GivenBack>>,
}

impl Process {
    /// Runs `act` under the lock, for a thread.
    pub(super) fn enter<T>(
        &self,
        who: Identity,
        act: impl FnOnce(&mut ActiveThread<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut thread = self.active_thread(who)?;
        let result = act(&mut thread);
        thread.leave();
        result
    }

    /// Takes the lock; [`ActiveThread::leave`] releases it.
    pub(super) fn active_thread(&self, who: Identity) -> io::Result<ActiveThread<'_>> {
        let mut state = self.state.lock();
        let slot = self.slot_of(&mut state, who)?;
        if state.pollables > 0 {
            state.disarm(self, slot);
        }
        Ok(ActiveThread::new(self, who, slot, state))
    }

    /// A thread's slot, assigned at its first call.
    fn slot_of(&self, state: &mut State, who: Identity) -> io::Result<u32> {
        let tid = who.tid();
        if let Some(slot) = state.core.slot_of_tid(tid) {
            return Ok(slot);
        }
        let slot = state.core.vacant_slot().ok_or_else(|| io::Error::from_raw_os_error(EMFILE))?;
        let generation = self.bell(slot).move_in(tid as u32);
        state.core.add_thread(ThreadKey { slot, generation }, tid);
        let place = slot as usize;
        state.own.resize_with(state.own.len().max(place + 1), ThreadState::default);
        state.own[place] = ThreadState::default();
        self.set_need_return(slot, true);
        Ok(slot)
    }
}

impl<'p> ActiveThread<'p> {
    pub(super) fn new(process: &'p Process, who: Identity, slot: u32, state: Held<'p, State>) -> Self {
        Self { process, who, slot, state, wake: None, given_back: None }
    }

    /// The thread's state in the core.
    pub(super) fn thread(&mut self) -> &mut Thread {
        self.state.core.thread(self.slot)
    }

    /// The thread's state in the shell.
    pub(super) fn own(&mut self) -> &mut ThreadState {
        &mut self.state.own[self.slot as usize]
    }

    /// The thread's bell.
    pub(super) fn bell(&self) -> doorbell::Bell<'p, std::sync::Arc<doorbell::BellMemory>> {
        self.process.bell(self.slot)
    }

    /// Runs `act` without the lock.
    pub(super) fn unlocked<T>(&mut self, act: impl FnOnce(&'p Process) -> T) -> T {
        self.carry_out_effects();
        let (process, wake) = (self.process, self.wake.take());
        self.state.unlocked(|| {
            if let Some(wake) = wake {
                wake.carry_out(process.trace.as_ref());
            }
            act(process)
        })
    }

    /// Releases the lock at the end of the driver call.
    pub(super) fn leave(mut self) {
        let helper = if self.state.pollables > 0 { self.arm() } else { None };
        self.carry_out_effects();
        let Self { process, state, wake, .. } = self;
        drop(state);
        if let Some(wake) = wake {
            wake.carry_out(process.trace.as_ref());
        }
        if let Some(helper) = helper {
            helper.unpark();
        }
    }

    /// Schedules the wake-up of a peer's thread for the next release of the lock.
    pub(super) fn wake_later(&mut self, wake: Wake) {
        if let Some(earlier) = self.wake.replace(wake) {
            earlier.carry_out(self.process.trace.as_ref());
        }
    }

    /// Carries out the core's effects and publishes this thread's state.
    fn carry_out_effects(&mut self) {
        let (process, core) = (self.process, &mut self.state.core);
        if !core.effects.is_empty() {
            let mut effects = std::mem::take(&mut core.effects);
            for effect in effects.drain(..) {
                self.carry_out(effect);
            }
            self.state.core.effects = effects;
        }
        let core = &mut self.state.core;
        if std::mem::take(&mut core.queue_changed) {
            let (calls, uncounted) = core.queued();
            process.bells.set_queued(calls);
            process.bells.set_untaken(uncounted);
        }
        if let Some(depth) = core.depth(self.slot) {
            process.bell(self.slot).set_depth(depth);
        }
        process.set_listener(core.listener());
        if self.state.pollables > 0 {
            self.state.show_readiness(process);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let process = self.process;
        match effect {
            Effect::Changed { slot, wake } => {
                if let Some(depth) = self.state.core.depth(slot) {
                    process.bell(slot).set_depth(depth);
                }
                if wake && slot != self.slot && !self.state.is_armed(slot) {
                    process.ring(slot);
                }
            }
            Effect::Send(request) => process.send(&request),
            Effect::FreeSlot(ticket) => ticket.channel.free_slot(ticket.call),
            Effect::FailCall(call, errno) => call.channel.fail(&call.request, errno),
        }
    }

    /// Publishes the stack depth, before a peer can react to this thread's next step (contract FRZ-03).
    pub(super) fn show_depth(&mut self) {
        let depth = self.thread().depth();
        self.bell().set_depth(depth);
    }
}

impl Process {
    /// Names the thread that senders wake for new work: the one that became idle last, or one that polls.
    /// Wakes that thread if work arrived during the change.
    ///
    /// Without a candidate the last listener stays: a busy thread is not rung, and looks for work before it
    /// sleeps again.
    fn set_listener(&self, next: Option<u32>) {
        if next.is_none() || next == self.bells.listener() {
            return;
        }
        if let Some(bell) = self.bells.hand_over(next, || self.anything_new()) {
            bell.wake();
        }
    }

    /// Wakes a thread of this process.
    pub(super) fn ring(&self, slot: u32) {
        self.local(slot).kicked.store(true, Ordering::Relaxed);
        let bell = self.bell(slot);
        if bell.ring() {
            bell.wake();
        }
    }
}
