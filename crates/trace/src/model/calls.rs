//! Room: which call a binder event belongs to: pairing by debug id, the stack of calls of each thread.
//! Not here: what threads did meanwhile (`world`), dividing the time (`cause`).
//! Facts: contract TP-02 to TP-08, and section 5 for who may answer what. `include/uapi/linux/android/binder.h`
//! for the three returns that end a call without a reply.

use std::collections::{HashMap, VecDeque};

use super::Outcome;
use super::world::{Spreading, World};
use crate::cause::Nested;
use crate::event::{Event, Flavour, Transaction as Sent};

/// The most calls that are followed at once. The oldest is given up for a further one.
const MOST_OPEN: usize = 1 << 16;
/// The most nested calls of one call that are kept with their parts.
const MOST_NESTED: usize = 4096;

const BR_DEAD_REPLY: u32 = 0x7205;
const BR_FAILED_REPLY: u32 = 0x7211;
const BR_FROZEN_REPLY: u32 = 0x7212;
const BR_TRANSACTION_PENDING_FROZEN: u32 = 0x7214;

/// A call that a thread serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Which; `None` if it was sent before the trace began.
    pub(crate) slot: Option<usize>,
    /// How many calls the thread waited for itself when it took this one.
    pub(crate) base: usize,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) serial: u64,
    pub(crate) flavour: Flavour,
    pub(crate) sent: Sent,
    pub(crate) begin: u64,
    pub(crate) client: i32,
    pub(crate) client_tgid: Option<i32>,
    pub(crate) client_prio: Option<crate::event::Prio>,
    pub(crate) sending_done: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) server: Option<i32>,
    pub(crate) server_prio: Option<crate::event::Prio>,
    pub(crate) client_cpu: u32,
    pub(crate) server_cpu: Option<u32>,
    pub(crate) server_free: Option<u64>,
    pub(crate) busy_with: Option<i32>,
    pub(crate) replied: Option<u64>,
    pub(crate) reply_done: Option<u64>,
    pub(crate) reply_received: Option<u64>,
    pub(crate) frozen: bool,
    pub(crate) doubtful: bool,
    pub(crate) label: Option<Box<str>>,
    /// When its caller said that it comes.
    pub(crate) announced: Option<u64>,
    /// When the caller had the reply, if what it says of the call's end is waited for.
    pub(crate) returned: Option<u64>,
    pub(crate) parent: Option<(usize, u64)>,
    pub(crate) nested: Vec<Nested>,
}

/// What a debug id stands for.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Request(usize),
    Reply(usize),
}

/// A call that has ended: its place, when, and how.
pub(crate) type Ended = (usize, u64, Outcome);

/// All open calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Option<Open>>,
    empty: Vec<usize>,
    pending: HashMap<(u8, i32), Pending, Spreading>,
    /// In the order of their beginnings; ended ones leave when they reach the front.
    begun: VecDeque<(u64, usize, u64)>,
    serial: u64,
    /// Ended by the event at hand; the model empties this.
    pub(crate) ended: Vec<Ended>,
}

fn key(flavour: Flavour, debug_id: i32) -> (u8, i32) {
    (u8::from(flavour == Flavour::Embedded), debug_id)
}

impl Calls {
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Open> {
        self.open.get_mut(slot)?.as_mut()
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Open> {
        self.open.get(slot)?.as_ref()
    }

    fn same(&mut self, slot: usize, serial: u64) -> Option<&mut Open> {
        self.get_mut(slot).filter(|open| open.serial == serial)
    }

    pub(crate) fn take(&mut self, slot: usize) -> Option<Open> {
        let open = self.open.get_mut(slot)?.take()?;
        self.empty.push(slot);
        self.pending.remove(&key(open.flavour, open.sent.debug_id));
        Some(open)
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        self.open.iter_mut().flatten()
    }

    pub(crate) fn slots(&self) -> Vec<usize> {
        (0..self.open.len()).filter(|slot| self.open[*slot].is_some()).collect()
    }

    /// When the oldest open call began.
    pub(crate) fn oldest(&mut self) -> Option<u64> {
        while let Some((begin, slot, serial)) = self.begun.front().copied() {
            if self.get(slot).is_some_and(|open| open.serial == serial) {
                return Some(begin);
            }
            self.begun.pop_front();
        }
        None
    }

    /// A nested call has ended: its parts become part of the call that it was made for.
    pub(crate) fn nest(&mut self, parent: Option<(usize, u64)>, mut nested: Nested) {
        let Some(parent) = parent.and_then(|(slot, serial)| self.same(slot, serial)) else { return };
        if parent.nested.len() >= MOST_NESTED {
            nested.parts = Vec::new();
        }
        parent.nested.push(nested);
    }

    /// `binder_transaction` of a call.
    pub(crate) fn sent(&mut self, world: &mut World, event: &Event, flavour: Flavour, sent: Sent) {
        self.drop_stale(world, event.tid, event.ts);
        let Some(thread) = world.thread_mut(event.tid) else { return };
        // Nobody says when a oneway call is over.
        let label = if sent.is_oneway() { None } else { thread.label.take() };
        let (announced, label) = label.map_or((None, None), |(ts, label)| (Some(ts), Some(label)));
        let parent = thread.serving.last().and_then(|served| served.slot);
        let parent = parent.and_then(|slot| Some((slot, self.get(slot)?.serial)));
        self.serial += 1;
        if self.open.len() - self.empty.len() >= MOST_OPEN
            && let Some((_, slot, _)) = self.oldest().and_then(|_| self.begun.front().copied())
        {
            // It is not there any more when this is looked at, so that it frees its place now.
            self.take(slot);
        }
        let open = Open {
            serial: self.serial,
            flavour,
            sent,
            begin: event.ts,
            client: event.tid,
            client_tgid: event.tgid.or(thread.tgid),
            client_prio: thread.prio,
            sending_done: None,
            received: None,
            server: None,
            server_prio: None,
            client_cpu: event.cpu,
            server_cpu: None,
            server_free: None,
            busy_with: None,
            replied: None,
            reply_done: None,
            reply_received: None,
            frozen: false,
            doubtful: false,
            label,
            announced,
            returned: None,
            parent: parent.filter(|_| !sent.is_oneway()),
            nested: Vec::new(),
        };
        let slot = self.empty.pop().unwrap_or(self.open.len());
        if slot == self.open.len() {
            self.open.push(None);
        }
        self.open[slot] = Some(open);
        self.begun.push_back((event.ts, slot, self.serial));
        self.pending.insert(key(flavour, sent.debug_id), Pending::Request(slot));
        thread.sent = Some((slot, self.serial, false));
        if !sent.is_oneway() {
            thread.calling.push(slot);
        }
    }

    /// A thread that sends waits for nothing but what it waited for when it took the call that it serves.
    /// Anything else has ended, and the trace does not show how.
    fn drop_stale(&mut self, world: &mut World, tid: i32, ts: u64) {
        self.said_over(world, tid, None);
        let Some(thread) = world.thread_mut(tid) else { return };
        let base = thread.serving.last().map_or(0, |served| served.base);
        let ending = thread.ending.take();
        while thread.calling.len() > base {
            let Some(slot) = thread.calling.pop() else { break };
            if Some(slot) != ending {
                self.give_up(slot, ts);
            }
        }
        if let Some(slot) = ending
            && let Some(end) = self.get(slot).and_then(|open| open.reply_received)
        {
            self.ended.push((slot, end, Outcome::Replied));
        }
    }

    /// A call ended, but not so that the trace shows it.
    fn give_up(&mut self, slot: usize, ts: u64) {
        if let Some(open) = self.get_mut(slot) {
            let failed = open.received.is_none();
            open.doubtful = true;
            self.ended.push((slot, ts, if failed { Outcome::Failed } else { Outcome::Unanswered }));
        }
    }

    /// `binder_transaction` of a reply: it answers the innermost call that the thread serves.
    pub(crate) fn replied(&mut self, world: &mut World, event: &Event, flavour: Flavour, sent: Sent) {
        let Some(thread) = world.thread_mut(event.tid) else { return };
        let matching = thread.serving.iter().rposition(|served| {
            let open = served.slot.and_then(|slot| self.get(slot));
            open.is_some_and(|open| sent.to_thread == 0 || open.client == sent.to_thread)
        });
        let Some(at) = matching else {
            // The answer to a call from before the trace.
            thread.serving.pop_if(|served| served.slot.is_none());
            if thread.serving.is_empty() {
                thread.free_since = Some(event.ts);
            }
            return;
        };
        let Served { slot, base } = thread.serving[at];
        thread.serving.truncate(at);
        let stale = thread.calling.split_off(base.min(thread.calling.len()));
        if thread.serving.is_empty() && thread.calling.is_empty() {
            thread.free_since = Some(event.ts);
        }
        let slot = slot.unwrap_or(usize::MAX);
        if let Some(open) = self.get_mut(slot) {
            open.replied = Some(event.ts);
            open.client_tgid = open.client_tgid.or(Some(sent.to_proc));
            thread.sent = Some((slot, open.serial, true));
            self.pending.insert(key(flavour, sent.debug_id), Pending::Reply(slot));
        }
        for slot in stale {
            self.give_up(slot, event.ts);
        }
    }

    /// `binder_transaction_received`.
    pub(crate) fn received(&mut self, world: &mut World, event: &Event, flavour: Flavour, debug_id: i32) {
        match self.pending.remove(&key(flavour, debug_id)) {
            Some(Pending::Request(slot)) => self.taken(world, event, slot),
            Some(Pending::Reply(slot)) => self.answered(world, event, slot),
            None => self.orphan(world, event),
        }
    }

    fn taken(&mut self, world: &mut World, event: &Event, slot: usize) {
        let Some(thread) = world.thread_mut(event.tid) else { return };
        let Some(open) = self.open.get_mut(slot).and_then(Option::as_mut) else { return };
        let (to_process, oneway) = (open.sent.to_thread == 0, open.sent.is_oneway());
        open.received = Some(event.ts);
        open.server = Some(event.tid);
        open.server_cpu = Some(event.cpu);
        open.server_prio = thread.prio;
        open.server_free = match thread.free_since {
            None if thread.has_served && to_process => Some(event.ts),
            free => free.filter(|_| to_process),
        };
        open.busy_with = thread.last_taken.filter(|_| open.server_free.is_some_and(|free| free > open.begin));
        thread.last_taken = Some(open.sent.debug_id);
        thread.tgid = thread.tgid.or(Some(open.sent.to_proc));
        thread.has_served = true;
        thread.free_since = None;
        if to_process {
            // Work of the process goes only to threads without a stack, so what is on it is over.
            for served in std::mem::take(&mut thread.serving) {
                if let Some(open) = served.slot.and_then(|slot| self.open.get_mut(slot)?.as_mut()) {
                    open.doubtful = true;
                }
            }
        }
        if oneway {
            self.ended.push((slot, event.ts, Outcome::Delivered));
        } else {
            let base = thread.calling.len();
            thread.serving.push(Served { slot: Some(slot), base });
        }
    }

    fn answered(&mut self, world: &mut World, event: &Event, slot: usize) {
        let Some(open) = self.get_mut(slot) else { return };
        open.reply_received = Some(event.ts);
        let client = open.client;
        open.doubtful |= client != event.tid;
        let Some(thread) = world.thread_mut(client) else { return };
        let inside = client == event.tid && thread.in_driver.last() == Some(true);
        if inside {
            thread.ending = Some(slot);
            return;
        }
        thread.calling.retain(|calling| *calling != slot);
        self.over(world, client, slot, event.ts);
    }

    /// A thread has the reply of its call, which is over unless the thread itself says when it is.
    fn over(&mut self, world: &mut World, tid: i32, slot: usize, ts: u64) {
        let Some(open) = self.get_mut(slot) else { return };
        let serial = open.serial;
        if open.announced.is_none() {
            self.ended.push((slot, ts, Outcome::Replied));
        } else if let Some(thread) = world.thread_mut(tid) {
            open.returned = Some(ts);
            thread.returning = Some((slot, serial));
        }
    }

    /// A thread says that its call is over; without a time, it does not say so any more.
    pub(crate) fn said_over(&mut self, world: &mut World, tid: i32, ts: Option<u64>) {
        let Some((slot, serial)) = world.thread_mut(tid).and_then(|thread| thread.returning.take()) else {
            return;
        };
        if let Some(returned) = self.same(slot, serial).and_then(|open| open.returned) {
            self.ended.push((slot, ts.unwrap_or(returned), Outcome::Replied));
        }
    }

    /// Something was received that was sent before the trace, or in a gap.
    fn orphan(&mut self, world: &mut World, event: &Event) {
        let Some(thread) = world.thread_mut(event.tid) else { return };
        let base = thread.serving.last().map_or(0, |served| served.base);
        if thread.calling.len() > base {
            // Its reply, or a call back to it: nobody knows.
            for slot in &thread.calling[base..] {
                if let Some(open) = self.open.get_mut(*slot).and_then(Option::as_mut) {
                    open.doubtful = true;
                }
            }
        } else {
            thread.serving.truncate(64);
            thread.serving.push(Served { slot: None, base });
            thread.has_served = true;
            thread.free_since = None;
        }
    }

    /// A thread is done with what it sent: it goes on to something else.
    pub(crate) fn handed_over(&mut self, world: &mut World, tid: i32, ts: u64) {
        let Some((slot, serial, reply)) = world.thread_mut(tid).and_then(|thread| thread.sent) else {
            return;
        };
        let Some(open) = self.same(slot, serial) else { return };
        let done = if reply { &mut open.reply_done } else { &mut open.sending_done };
        done.get_or_insert(ts);
    }

    /// `binder_wait_for_work` of a thread that takes work of the process: it serves nothing.
    pub(crate) fn waits_for_any(&mut self, world: &mut World, tid: i32, ts: u64) {
        let Some(thread) = world.thread_mut(tid) else { return };
        for served in std::mem::take(&mut thread.serving) {
            if let Some(open) = served.slot.and_then(|slot| self.open.get_mut(slot)?.as_mut()) {
                open.doubtful |= open.replied.is_none();
            }
        }
        thread.free_since.get_or_insert(ts);
    }

    /// The end of an ioctl: of a call, if it brought the reply.
    pub(crate) fn ioctl_done(&mut self, world: &mut World, tid: i32, ts: u64) {
        let Some(thread) = world.thread_mut(tid) else { return };
        let Some(slot) = thread.ending.take() else { return };
        thread.calling.retain(|calling| *calling != slot);
        self.over(world, tid, slot, ts);
    }

    /// `binder_return`: some of these words end a call.
    pub(crate) fn returned(&mut self, world: &mut World, tid: i32, ts: u64, word: u32) {
        let outcome = match word {
            BR_DEAD_REPLY => Outcome::Dead,
            BR_FAILED_REPLY => Outcome::Failed,
            BR_FROZEN_REPLY => Outcome::Frozen,
            BR_TRANSACTION_PENDING_FROZEN => Outcome::Delivered,
            _ => return,
        };
        let Some(thread) = world.thread_mut(tid) else { return };
        let sent = thread.sent;
        let oneway = sent.filter(|(slot, serial, reply)| {
            let open = self.same(*slot, *serial);
            !reply && open.is_some_and(|open| open.sent.is_oneway() && open.received.is_none())
        });
        if word == BR_TRANSACTION_PENDING_FROZEN {
            if let Some(open) = oneway.and_then(|(slot, serial, _)| self.same(slot, serial)) {
                open.frozen = true;
            }
        } else if let Some((slot, _, _)) = oneway {
            self.ended.push((slot, ts, outcome));
        } else if thread.calling.len() > thread.serving.last().map_or(0, |served| served.base)
            && let Some(slot) = thread.calling.pop()
        {
            self.ended.push((slot, ts, outcome));
        }
    }

    /// A thread has ended, and what it waited for with it.
    pub(crate) fn died(&mut self, world: &mut World, tid: i32, ts: u64) {
        self.said_over(world, tid, None);
        let Some(thread) = world.thread_mut(tid) else { return };
        thread.serving.clear();
        (thread.ending, thread.sent, thread.free_since) = (None, None, None);
        thread.has_served = false;
        for slot in std::mem::take(&mut thread.calling) {
            self.ended.push((slot, ts, Outcome::Dead));
        }
    }
}
