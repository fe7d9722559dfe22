//! Death notifications: registrations and their states.
//! Not here: the death itself (`close`).
//! Facts: contract section 10.

use abi::codes::br;

use super::Core;
use super::host::Host;
use super::work::{Queue, Subject};
use crate::rpc::protocol::{ProcId, Returns, ThreadKey};
use sys::errno::ENOMEM;

/// State of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeathState {
    /// The node lives.
    Armed,
    /// The death is queued; `clear`: the registration was cleared meanwhile.
    Died { clear: bool },
    /// The death was read and is not acknowledged.
    Delivered { clear: bool },
    /// The confirmation of the clearing is queued.
    Cleared,
}

impl Core {
    /// `BC_REQUEST_DEATH_NOTIFICATION`; returns an errno, 0 for none.
    pub(super) fn request_death(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        host: &mut impl Host,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return 0 };
        let Some(held) = watcher.refs.get_mut(handle).filter(|held| held.death.is_none()) else { return 0 };
        let Some(death) = watcher.deaths.add(cookie, DeathState::Armed) else { return ENOMEM };
        held.death = Some(death);
        self.totals.deaths += 1;
        let node = held.node;
        if self.nodes.get(&node).is_none_or(|node| node.owner.is_none()) {
            self.announce_death(proc, death, host);
        }
        0
    }

    /// Queues the notification for a watched node whose owner has ended.
    pub(super) fn announce_death(&mut self, proc: ProcId, death: u64, host: &mut impl Host) {
        self.advance(proc, death, DeathState::Died { clear: false }, Queue::Proc, host);
    }

    /// `BC_CLEAR_DEATH_NOTIFICATION` (contract DTH-05, DTH-06).
    pub(super) fn clear_death(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        queue: Queue,
        host: &mut impl Host,
    ) {
        let Some(watcher) = self.procs.get_mut(&proc) else { return };
        let Some(held) = watcher.refs.get_mut(handle) else { return };
        let Some(number) = held.death else { return };
        let death = watcher.deaths.get_mut(number).filter(|death| death.cookie == cookie);
        let Some(death) = death else { return };
        held.death = None;
        match &mut death.state {
            DeathState::Died { clear } | DeathState::Delivered { clear } => *clear = true,
            DeathState::Armed | DeathState::Cleared => {
                self.advance(proc, number, DeathState::Cleared, queue, host);
            }
        }
    }

    /// `BC_DEAD_BINDER_DONE`: acknowledges the oldest delivered registration with this cookie.
    pub(super) fn death_done(&mut self, proc: ProcId, cookie: u64, queue: Queue, host: &mut impl Host) {
        let Some(deaths) = self.procs.get_mut(&proc).map(|p| &mut p.deaths) else { return };
        let Some(number) = deaths.acknowledge(cookie) else { return };
        let Some(death) = deaths.get_mut(number) else { return };
        if death.state == (DeathState::Delivered { clear: true }) {
            self.advance(proc, number, DeathState::Cleared, queue, host);
        } else {
            death.state = DeathState::Armed;
        }
    }

    /// Returns for the thread that reads a registration's work.
    pub(super) fn tell_of_death(&mut self, proc: ProcId, number: u64) -> Returns {
        let mut returns = Returns::default();
        let Some(deaths) = self.procs.get_mut(&proc).map(|p| &mut p.deaths) else { return returns };
        let Some(death) = deaths.get_mut(number) else { return returns };
        death.work = None;
        let cookie = death.cookie;
        match death.state {
            DeathState::Died { clear } => {
                death.state = DeathState::Delivered { clear };
                deaths.deliver(number);
                returns.push(br::DEAD_BINDER, [cookie, 0]);
            }
            DeathState::Cleared => {
                deaths.remove(number);
                returns.push(br::CLEAR_DEATH_NOTIFICATION_DONE, [cookie, 0]);
            }
            DeathState::Armed | DeathState::Delivered { .. } => {}
        }
        returns
    }

    fn advance(&mut self, proc: ProcId, number: u64, state: DeathState, queue: Queue, host: &mut impl Host) {
        let work = self.post(proc, Subject::Death(number), queue, host);
        if let Some(death) = self.procs.get_mut(&proc).and_then(|p| p.deaths.get_mut(number)) {
            (death.state, death.work) = (state, work);
        }
    }
}

/// Queue of the confirmation of a clearing (contract DTH-06).
pub(super) fn answer_queue(thread: ThreadKey, looper: bool) -> Queue {
    if looper { Queue::Thread(thread) } else { Queue::Proc }
}
