//! Freezing of all connections of a process, and freeze notifications.
//! Not here: waiting for calls to end (the library repeats the request), the call slots' memory.
//! Facts: contract section 11, IOC-07, IOC-08, OW-09.

use abi::codes::br;

use super::Core;
use super::host::Host;
use super::refusal::Refusal;
use super::registrations::Registration;
use super::work::{Queue, Subject};
use crate::rpc::protocol::{ProcId, Returns};
use sys::errno::{EAGAIN, EINVAL, ENOMEM};

/// Freeze state of a process, with the calls that arrived since.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    pub(super) frozen: bool,
    /// The process that froze this one and still waits for its calls to end.
    draining: Option<ProcId>,
    pub(super) sync_received: bool,
    pub(super) async_received: bool,
}

impl Freezing {
    /// Admits or refuses an arriving call, and records it. Returns whether the process is frozen.
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

/// State of a freeze registration.
#[derive(Debug, Default)]
pub(super) struct Watch {
    frozen: bool,
    /// The state was delivered and is not acknowledged; `again`: a newer state follows.
    delivered: bool,
    again: bool,
    /// The registration was cleared.
    cleared: bool,
}

/// Steps of `BINDER_FREEZE` ([`crate::rpc::protocol::Request::Freeze`]).
const THAW: u32 = 0;
const LOOK: u32 = 1;
const FREEZE: u32 = 2;
const GIVE_UP: u32 = 3;

impl Core {
    /// One step of `BINDER_FREEZE`; returns an errno, 0 for none.
    pub(super) fn freeze(&mut self, asker: ProcId, pid: u32, step: u32, host: &mut impl Host) -> i32 {
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
            self.set_frozen(proc, matches!(step, LOOK | FREEZE), host);
        }
        let mut pending = |proc: ProcId| self.has_queued(proc) || !host.settle(proc);
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
                self.announce_frozen(proc, step != THAW, host);
            }
        }
        0
    }

    /// `BINDER_GET_FROZEN_INFO`: the words sync_recv and async_recv.
    pub(super) fn frozen_info(&self, pid: u32, host: &impl Host) -> Result<[u64; 2], i32> {
        let procs = self.procs_of(pid);
        if procs.is_empty() {
            return Err(EINVAL);
        }
        let mut words = [0, 0];
        for proc in procs {
            let Some(target) = self.procs.get(&proc) else { continue };
            words[0] |= u64::from(target.freezing.sync_received);
            words[0] |= u64::from(self.pending(proc, host)) << 1;
            words[1] |= u64::from(target.freezing.async_received);
        }
        Ok(words)
    }

    /// Thaws processes whose freezer ended while it waited, as if the wait had been interrupted.
    pub(super) fn abandon_freezes(&mut self, asker: ProcId, host: &mut impl Host) {
        let left = self.procs.iter().filter(|(_, proc)| proc.freezing.draining == Some(asker));
        let left: Vec<ProcId> = left.map(|(proc, _)| *proc).collect();
        for proc in left {
            if let Some(target) = self.procs.get_mut(&proc) {
                target.freezing.draining = None;
            }
            self.set_frozen(proc, false, host);
        }
    }

    /// Whether transactions are pending (contract FRZ-03).
    fn pending(&self, proc: ProcId, host: &impl Host) -> bool {
        self.has_queued(proc) || host.busy(proc)
    }

    /// Whether transactions that the broker knows of are pending.
    fn has_queued(&self, proc: ProcId) -> bool {
        self.procs.get(&proc).is_some_and(|p| !p.incoming.is_empty() || p.waiting_oneways > 0)
    }

    fn procs_of(&self, pid: u32) -> Vec<ProcId> {
        self.pids.get(&pid).map(|procs| procs.iter().copied().collect()).unwrap_or_default()
    }

    fn set_frozen(&mut self, proc: ProcId, frozen: bool, host: &mut impl Host) {
        let Some(target) = self.procs.get_mut(&proc) else { return };
        if std::mem::replace(&mut target.freezing.frozen, frozen) != frozen {
            self.set_gates(proc, host);
        }
    }

    /// `BC_REQUEST_FREEZE_NOTIFICATION`; returns an errno, 0 for none (contract FRZ-06, FRZ-07).
    pub(super) fn request_freeze(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        host: &mut impl Host,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return EINVAL };
        let Some(held) = watcher.refs.get_mut(handle).filter(|held| held.freeze.is_none()) else {
            return EINVAL;
        };
        let Some(watch) = watcher.watches.add(cookie, Watch::default()) else { return ENOMEM };
        held.freeze = Some(watch);
        let owner = self.nodes.get(&held.node).and_then(|node| node.owner);
        if let Some(owner) = owner.and_then(|owner| self.procs.get(&owner)) {
            self.tell_frozen(proc, watch, owner.freezing.frozen, host);
        }
        0
    }

    /// `BC_CLEAR_FREEZE_NOTIFICATION`; returns an errno, 0 for none (contract FRZ-09).
    pub(super) fn clear_freeze(
        &mut self,
        proc: ProcId,
        handle: u32,
        cookie: u64,
        host: &mut impl Host,
    ) -> i32 {
        let Some(watcher) = self.procs.get_mut(&proc) else { return EINVAL };
        let Some(held) = watcher.refs.get_mut(handle) else { return EINVAL };
        let watch = held.freeze.and_then(|number| Some((number, watcher.watches.get_mut(number)?)));
        let Some((number, watch)) = watch.filter(|(_, watch)| watch.cookie == cookie) else { return EINVAL };
        held.freeze = None;
        watch.state.cleared = true;
        self.notify_watch(proc, number, true, host);
        0
    }

    /// `BC_FREEZE_NOTIFICATION_DONE`; returns an errno, 0 for none (contract FRZ-08).
    pub(super) fn freeze_done(&mut self, proc: ProcId, cookie: u64, host: &mut impl Host) -> i32 {
        let Some(watches) = self.procs.get_mut(&proc).map(|p| &mut p.watches) else { return EINVAL };
        let Some(number) = watches.acknowledge(cookie) else { return EINVAL };
        let Some(watch) = watches.get_mut(number) else { return EINVAL };
        watch.state.delivered = false;
        if std::mem::take(&mut watch.state.again) {
            self.notify_watch(proc, number, false, host);
        }
        0
    }

    /// Notifies every watcher of this process's nodes.
    fn announce_frozen(&mut self, proc: ProcId, frozen: bool, host: &mut impl Host) {
        let Some(target) = self.procs.get(&proc) else { return };
        let nodes = target.nodes.values().filter_map(|key| self.nodes.get(key));
        let holders = nodes.flat_map(|node| node.holders.iter().map(|(proc, handle)| (*proc, *handle)));
        let watched = holders.filter_map(|(holder, handle)| {
            Some((holder, self.procs.get(&holder)?.refs.get(handle)?.freeze?))
        });
        let watched: Vec<(ProcId, u64)> = watched.collect();
        for (holder, key) in watched {
            self.tell_frozen(holder, key, frozen, host);
        }
    }

    /// Notifies one watcher, now or after its acknowledgement of an earlier notification. A change that is reverted
    /// in the meantime is still notified, with the state at that time.
    fn tell_frozen(&mut self, proc: ProcId, number: u64, frozen: bool, host: &mut impl Host) {
        let Some(watch) = self.watch(proc, number) else { return };
        let changed = std::mem::replace(&mut watch.state.frozen, frozen) != frozen;
        self.notify_watch(proc, number, changed, host);
    }

    /// Returns for the thread that reads a registration's work.
    pub(super) fn tell_of_freeze(&mut self, proc: ProcId, number: u64) -> Returns {
        let mut returns = Returns::default();
        let Some(watches) = self.procs.get_mut(&proc).map(|p| &mut p.watches) else { return returns };
        let Some(watch) = watches.get_mut(number) else { return returns };
        watch.work = None;
        let (cookie, frozen) = (watch.cookie, watch.state.frozen);
        if watch.state.cleared {
            watches.remove(number);
            returns.push(br::CLEAR_FREEZE_NOTIFICATION_DONE, [cookie, 0]);
        } else {
            watch.state.delivered = true;
            watches.deliver(number);
            returns.push(br::FROZEN_BINDER, [cookie, frozen.into()]);
        }
        returns
    }

    /// Queues a notification; while the last one is not acknowledged, only notes that there is `news`.
    fn notify_watch(&mut self, proc: ProcId, number: u64, news: bool, host: &mut impl Host) {
        let Some(watch) = self.watch(proc, number) else { return };
        if watch.state.delivered {
            watch.state.again |= news;
        } else if watch.work.is_none() {
            let work = self.post(proc, Subject::Freeze(number), Queue::Proc, host);
            if let Some(watch) = self.watch(proc, number) {
                watch.work = work;
            }
        }
    }

    fn watch(&mut self, proc: ProcId, number: u64) -> Option<&mut Registration<Watch>> {
        self.procs.get_mut(&proc)?.watches.get_mut(number)
    }
}
