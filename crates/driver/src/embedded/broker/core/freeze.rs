//! Room: freezing all of a process's opens, and who wants to hear of that.
//! Not here: waiting for calls to end (the library asks again), the lanes' memory.
//! Facts: contract section 11, IOC-07, IOC-08, OW-09.

use std::collections::{BTreeMap, BTreeSet};

use abi::codes::br;

use super::Core;
use super::outside::Outside;
use super::refusal::{EAGAIN, EINVAL, Refusal};
use super::work::{Queue, Subject};
use crate::embedded::protocol::{ProcId, Returns};

/// Whether a process is frozen, and what came for it since.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    pub(super) frozen: bool,
    /// Who froze it and still waits for its calls to end.
    draining: Option<ProcId>,
    pub(super) sync_received: bool,
    pub(super) async_received: bool,
}

impl Freezing {
    /// Whether a call may come in; `true` if that is noteworthy.
    pub(super) fn admits(&mut self, oneway: bool) -> Result<bool, Refusal> {
        if self.frozen {
            self.sync_received |= !oneway;
            self.async_received |= oneway;
        }
        if self.frozen && !oneway { Err(Refusal::FROZEN) } else { Ok(self.frozen) }
    }

    fn forget_received(&mut self) {
        self.sync_received = false;
        self.async_received = false;
    }
}

#[derive(Debug)]
struct Watch {
    cookie: u64,
    frozen: bool,
    /// It was told and not acknowledged; `again`: there is more to tell.
    told: bool,
    again: bool,
    /// The registration was taken back.
    cleared: bool,
    work: Option<u64>,
}

/// The freeze registrations of a process.
#[derive(Debug, Default)]
pub(super) struct Watches {
    last: u64,
    all: BTreeMap<u64, Watch>,
    told: BTreeSet<(u64, u64)>,
}

/// Steps of `BINDER_FREEZE` ([`crate::embedded::protocol::Request::Freeze`]).
const THAW: u32 = 0;
const LOOK: u32 = 1;
const FREEZE: u32 = 2;
const GIVE_UP: u32 = 3;

impl Core {
    /// One step of `BINDER_FREEZE`; an errno, 0 for none.
    pub(super) fn freeze(&mut self, asker: ProcId, pid: u32, step: u32, outside: &mut impl Outside) -> i32 {
        let procs = self.procs_of(pid);
        if procs.is_empty() || step > GIVE_UP {
            return EINVAL;
        }
        for &proc in &procs {
            let Some(target) = self.procs.get_mut(&proc) else { continue };
            if matches!(step, THAW | FREEZE) {
                target.freezing.forget_received();
            }
            target.freezing.draining = None;
            self.set_frozen(proc, matches!(step, LOOK | FREEZE), outside);
        }
        let mut pending = |proc: ProcId| self.has_queued(proc) || !outside.settle(proc);
        if matches!(step, LOOK | FREEZE) && procs.iter().any(|&proc| pending(proc)) {
            for proc in procs {
                if let Some(target) = self.procs.get_mut(&proc) {
                    target.freezing.draining = Some(asker);
                }
            }
            return EAGAIN;
        }
        if step != GIVE_UP {
            for proc in procs {
                self.announce_frozen(proc, step != THAW, outside);
            }
        }
        0
    }

    /// `BINDER_GET_FROZEN_INFO`: sync and async words.
    pub(super) fn frozen_info(&self, pid: u32, outside: &impl Outside) -> Result<[u64; 2], i32> {
        let procs = self.procs_of(pid);
        if procs.is_empty() {
            return Err(EINVAL);
        }
        let mut words = [0, 0];
        for proc in procs {
            let Some(target) = self.procs.get(&proc) else { continue };
            words[0] |= u64::from(target.freezing.sync_received);
            words[0] |= u64::from(self.pending(proc, outside)) << 1;
            words[1] |= u64::from(target.freezing.async_received);
        }
        Ok(words)
    }

    /// Whoever froze this process and waited is gone: it is thawed, as when the wait is broken off.
    pub(super) fn abandon_freezes(&mut self, asker: ProcId, outside: &mut impl Outside) {
        let left = self.procs.iter().filter(|(_, proc)| proc.freezing.draining == Some(asker));
        let left: Vec<ProcId> = left.map(|(proc, _)| *proc).collect();
        for proc in left {
            if let Some(target) = self.procs.get_mut(&proc) {
                target.freezing.draining = None;
            }
            self.set_frozen(proc, false, outside);
        }
    }

    /// Transactions are pending (contract FRZ-03).
    fn pending(&self, proc: ProcId, outside: &impl Outside) -> bool {
        self.has_queued(proc) || outside.busy(proc)
    }

    /// Those of them that the broker knows of.
    fn has_queued(&self, proc: ProcId) -> bool {
        self.procs.get(&proc).is_some_and(|p| !p.incoming.is_empty() || p.waiting_oneways > 0)
    }

    fn procs_of(&self, pid: u32) -> Vec<ProcId> {
        self.pids.get(&pid).map(|procs| procs.iter().copied().collect()).unwrap_or_default()
    }

    fn set_frozen(&mut self, proc: ProcId, frozen: bool, outside: &mut impl Outside) {
        let Some(target) = self.procs.get_mut(&proc) else { return };
        if std::mem::replace(&mut target.freezing.frozen, frozen) != frozen {
            self.set_gates(proc, outside);
        }
    }

    /// `BC_REQUEST_FREEZE_NOTIFICATION`; an errno, 0 for none (contract FRZ-06, FRZ-07).
    pub(super) fn request_freeze(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        outside: &mut impl Outside,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return EINVAL };
        let Some(held) = watcher.refs.get_mut(handle).filter(|held| held.freeze.is_none()) else {
            return EINVAL;
        };
        if watcher.watches.all.len() >= super::proc::LIMIT {
            return super::refusal::ENOMEM;
        }
        watcher.watches.last += 1;
        let key = watcher.watches.last;
        held.freeze = Some(key);
        let owner = self.nodes.get(&held.node).and_then(|node| node.owner);
        let watch = Watch { cookie, frozen: false, told: false, again: false, cleared: false, work: None };
        watcher.watches.all.insert(key, watch);
        if let Some(owner) = owner.and_then(|owner| self.procs.get(&owner)) {
            self.tell_frozen(proc, key, owner.freezing.frozen, outside);
        }
        0
    }

    /// `BC_CLEAR_FREEZE_NOTIFICATION`; an errno, 0 for none (contract FRZ-09).
    pub(super) fn clear_freeze(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        outside: &mut impl Outside,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return EINVAL };
        let Some(held) = watcher.refs.get_mut(handle) else { return EINVAL };
        let watch = held.freeze.and_then(|key| Some((key, watcher.watches.all.get_mut(&key)?)));
        let Some((key, watch)) = watch.filter(|(_, watch)| watch.cookie == cookie) else { return EINVAL };
        held.freeze = None;
        watch.cleared = true;
        if watch.told {
            watch.again = true;
        } else if watch.work.is_none() {
            self.post_watch(proc, key, outside);
        }
        0
    }

    /// `BC_FREEZE_NOTIFICATION_DONE`; an errno, 0 for none (contract FRZ-08).
    pub(super) fn freeze_done(&mut self, proc: ProcId, cookie: u64, outside: &mut impl Outside) -> i32 {
        let Some(watches) = self.procs.get_mut(&proc).map(|p| &mut p.watches) else { return EINVAL };
        let Some(told) = watches.told.range((cookie, 0)..=(cookie, u64::MAX)).next().copied() else {
            return EINVAL;
        };
        watches.told.remove(&told);
        let Some(watch) = watches.all.get_mut(&told.1) else { return EINVAL };
        watch.told = false;
        if std::mem::take(&mut watch.again) {
            self.post_watch(proc, told.1, outside);
        }
        0
    }

    /// Tells everybody who watches a node of this process.
    fn announce_frozen(&mut self, proc: ProcId, frozen: bool, outside: &mut impl Outside) {
        let Some(target) = self.procs.get(&proc) else { return };
        let nodes = target.nodes.values().filter_map(|key| self.nodes.get(key));
        let holders = nodes.flat_map(|node| node.holders.iter().map(|(proc, handle)| (*proc, *handle)));
        let watched = holders.filter_map(|(holder, handle)| {
            Some((holder, self.procs.get(&holder)?.refs.get(handle)?.freeze?))
        });
        let watched: Vec<(ProcId, u64)> = watched.collect();
        for (holder, key) in watched {
            self.tell_frozen(holder, key, frozen, outside);
        }
    }

    /// Tells one watcher, now or once it has acknowledged what it was told before. A change that is
    /// taken back before is told nevertheless, as the state it then is.
    fn tell_frozen(&mut self, proc: ProcId, key: u64, frozen: bool, outside: &mut impl Outside) {
        let watch = self.procs.get_mut(&proc).and_then(|p| p.watches.all.get_mut(&key));
        let Some(watch) = watch else { return };
        let changed = std::mem::replace(&mut watch.frozen, frozen) != frozen;
        if watch.told {
            watch.again |= changed;
        } else if watch.work.is_none() {
            self.post_watch(proc, key, outside);
        }
    }

    /// A thread reads what became of a registration.
    pub(super) fn tell_of_freeze(&mut self, proc: ProcId, key: u64) -> Returns {
        let mut returns = Returns::default();
        let Some(watches) = self.procs.get_mut(&proc).map(|p| &mut p.watches) else { return returns };
        let Some(watch) = watches.all.get_mut(&key) else { return returns };
        watch.work = None;
        let cookie = watch.cookie;
        if watch.cleared {
            watches.all.remove(&key);
            returns.push(br::CLEAR_FREEZE_NOTIFICATION_DONE, [cookie, 0]);
        } else {
            watch.told = true;
            watches.told.insert((cookie, key));
            returns.push(br::FROZEN_BINDER, [cookie, watch.frozen.into()]);
        }
        returns
    }

    /// A handle ends, and its registration with it.
    pub(super) fn forget_watch(&mut self, proc: ProcId, key: u64) {
        let Some(watcher) = self.procs.get_mut(&proc) else { return };
        let Some(watch) = watcher.watches.all.remove(&key) else { return };
        watcher.watches.told.remove(&(watch.cookie, key));
        if let Some(work) = watch.work {
            watcher.works.remove(&work);
        }
    }

    fn post_watch(&mut self, proc: ProcId, key: u64, outside: &mut impl Outside) {
        let work = self.post(proc, Subject::Freeze(key), Queue::Proc, outside);
        let watch = self.procs.get_mut(&proc).and_then(|p| p.watches.all.get_mut(&key));
        if let Some(watch) = watch {
            watch.work = work;
        }
    }
}
