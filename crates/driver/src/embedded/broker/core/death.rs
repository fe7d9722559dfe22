//! Room: who wants to hear of a node's death, and how far that has gone.
//! Not here: the death itself (`close`).
//! Facts: contract section 10.

use std::collections::{BTreeMap, BTreeSet};

use abi::codes::br;

use super::Core;
use super::outside::Outside;
use super::proc::LIMIT;
use super::refusal::ENOMEM;
use super::work::{Queue, Subject};
use crate::embedded::protocol::{ProcId, Returns, ThreadKey};

/// How far a registration has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its node lives.
    Armed,
    /// The death is to be read; `clear`: the registration was taken back meanwhile.
    Died { clear: bool },
    /// It was read and not acknowledged.
    Told { clear: bool },
    /// What is to be read is that it was taken back.
    Cleared,
}

#[derive(Debug)]
struct Death {
    cookie: u64,
    stage: Stage,
    work: Option<u64>,
}

/// The registrations of a process, also those whose handle let go of them.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    last: u64,
    all: BTreeMap<u64, Death>,
    /// Those that were told, by cookie and then by age.
    told: BTreeSet<(u64, u64)>,
}

impl Deaths {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    fn forget(&mut self, key: u64) -> Option<u64> {
        let death = self.all.remove(&key)?;
        self.told.remove(&(death.cookie, key));
        death.work
    }
}

impl Core {
    /// `BC_REQUEST_DEATH_NOTIFICATION`; an errno, 0 for none.
    pub(super) fn request_death(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        outside: &mut impl Outside,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return 0 };
        let full = watcher.deaths.len() >= LIMIT;
        let Some(held) = watcher.refs.get_mut(handle).filter(|held| held.death.is_none()) else { return 0 };
        if full {
            return ENOMEM;
        }
        watcher.deaths.last += 1;
        let key = watcher.deaths.last;
        held.death = Some(key);
        let node = held.node;
        watcher.deaths.all.insert(key, Death { cookie, stage: Stage::Armed, work: None });
        if self.nodes.get(&node).is_none_or(|node| node.owner.is_none()) {
            self.announce_death(proc, key, outside);
        }
        0
    }

    /// A watched node's owner is gone.
    pub(super) fn announce_death(&mut self, proc: ProcId, key: u64, outside: &mut impl Outside) {
        self.advance(proc, key, Stage::Died { clear: false }, Queue::Proc, outside);
    }

    /// `BC_CLEAR_DEATH_NOTIFICATION` (contract DTH-05, DTH-06).
    pub(super) fn clear_death(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        queue: Queue,
        outside: &mut impl Outside,
    ) {
        let Some(watcher) = self.procs.get_mut(&proc) else { return };
        let Some(held) = watcher.refs.get_mut(handle) else { return };
        let Some(key) = held.death else { return };
        let Some(death) = watcher.deaths.all.get_mut(&key).filter(|death| death.cookie == cookie) else {
            return;
        };
        held.death = None;
        match &mut death.stage {
            Stage::Died { clear } | Stage::Told { clear } => *clear = true,
            Stage::Armed | Stage::Cleared => self.advance(proc, key, Stage::Cleared, queue, outside),
        }
    }

    /// `BC_DEAD_BINDER_DONE`: the oldest that was told with this cookie.
    pub(super) fn death_done(&mut self, proc: ProcId, cookie: u64, queue: Queue, outside: &mut impl Outside) {
        let Some(deaths) = self.procs.get_mut(&proc).map(|p| &mut p.deaths) else { return };
        let Some(told) = deaths.told.range((cookie, 0)..=(cookie, u64::MAX)).next().copied() else { return };
        deaths.told.remove(&told);
        let key = told.1;
        let Some(death) = deaths.all.get_mut(&key) else { return };
        if death.stage == (Stage::Told { clear: true }) {
            self.advance(proc, key, Stage::Cleared, queue, outside);
        } else {
            death.stage = Stage::Armed;
        }
    }

    /// A handle ends, and its registration with it.
    pub(super) fn forget_death(&mut self, proc: ProcId, key: u64) {
        let Some(watcher) = self.procs.get_mut(&proc) else { return };
        if let Some(work) = watcher.deaths.forget(key) {
            watcher.works.remove(&work);
        }
    }

    /// A thread reads what became of a registration.
    pub(super) fn tell_of_death(&mut self, proc: ProcId, key: u64) -> Returns {
        let mut told = Returns::default();
        let Some(deaths) = self.procs.get_mut(&proc).map(|p| &mut p.deaths) else { return told };
        let Some(death) = deaths.all.get_mut(&key) else { return told };
        death.work = None;
        let cookie = death.cookie;
        match death.stage {
            Stage::Died { clear } => {
                death.stage = Stage::Told { clear };
                deaths.told.insert((cookie, key));
                told.push(br::DEAD_BINDER, [cookie, 0]);
            }
            Stage::Cleared => {
                deaths.forget(key);
                told.push(br::CLEAR_DEATH_NOTIFICATION_DONE, [cookie, 0]);
            }
            Stage::Armed | Stage::Told { .. } => {}
        }
        told
    }

    fn advance(&mut self, proc: ProcId, key: u64, stage: Stage, queue: Queue, outside: &mut impl Outside) {
        let work = self.post(proc, Subject::Death(key), queue, outside);
        let death = self.procs.get_mut(&proc).and_then(|p| p.deaths.all.get_mut(&key));
        if let Some(death) = death {
            death.stage = stage;
            death.work = work;
        }
    }
}

/// Where the answer to a clearing goes (contract DTH-06).
pub(super) fn answer_queue(thread: ThreadKey, looper: bool) -> Queue {
    if looper { Queue::Thread(thread) } else { Queue::Proc }
}
