//! Pairs binder events with calls by debug id and by each thread's call stack.
//! Not here: thread history (`history`), division of the time (`cause`).
//! Facts: contract TP-02 to TP-08, and section 5 for who may answer a call. `include/uapi/linux/android/binder.h` for
//! the three return words that end a call without a reply.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Outcome;
use super::failure::{Data, Fate, Word};
use super::free::Free;
use super::history::History;
use super::method::Method;
use super::thread::{Served, Thread};
use crate::cause::Segment;
use crate::event::{Buffer, Event, Flavour, Transaction as Sent};
use crate::hash::FastHash;

/// Maximum number of open calls. A further call displaces the oldest.
const MOST_OPEN: usize = 1 << 16;
/// Maximum number of calls named that keep a process's threads from taking others.
const MOST_BEHIND: usize = 16;
/// Maximum number of nested calls kept, per call.
const MOST_NESTED: usize = 4096;
/// Maximum number of calls that a thread waits for, or serves, at one time. Beyond it, it no longer knows the outer half.
const MOST_STACKED: usize = 1024;

const BR_TRANSACTION_PENDING_FROZEN: u32 = 0x7214;

/// Call that a server made while it served.
#[derive(Clone, Debug)]
pub(crate) struct Nested {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) parts: Vec<Segment>,
}

/// Call that has not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenCall {
    pub(crate) serial: u64,
    pub(crate) flavour: Flavour,
    pub(crate) sent: Sent,
    pub(crate) begin: u64,
    pub(crate) client: i32,
    pub(crate) client_tgid: Option<i32>,
    pub(crate) client_prio: Option<crate::event::Prio>,
    /// When the sender had finished sending, if an event shows it.
    pub(crate) sending_done: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) server: Option<i32>,
    pub(crate) server_prio: Option<crate::event::Prio>,
    pub(crate) client_cpu: u32,
    pub(crate) server_cpu: Option<u32>,
    /// Since when the server was free.
    pub(crate) server_free: Free,
    /// `debug_id` of the call that the server was busy with until then.
    pub(crate) busy_with: Option<i32>,
    pub(crate) replied: Option<u64>,
    /// When the server had finished replying, if an event shows it.
    pub(crate) reply_done: Option<u64>,
    pub(crate) reply_received: Option<u64>,
    pub(crate) frozen: bool,
    /// What is known of its failure.
    pub(crate) fate: Fate,
    /// Buffers of the call and of its reply, if events show them.
    pub(crate) request: Option<Buffer>,
    pub(crate) reply: Option<Buffer>,
    /// Calls that threads of its receiver served, if the trace ends before one took it.
    pub(crate) behind: Vec<i32>,
    pub(crate) doubtful: bool,
    pub(crate) label: Option<Box<str>>,
    /// Whether it belongs to an inheritance scene.
    pub(crate) scene: bool,
    /// When the caller's mark announced it.
    pub(crate) announced: Option<u64>,
    /// When the caller had the reply, if its mark for the end of the call is awaited.
    pub(crate) returned: Option<u64>,
    /// The called method, if a slice of either side names it.
    pub(crate) method: Option<Arc<Method>>,
    /// Number of gaps before it, of [`Calls::gaps`].
    pub(crate) gaps: u64,
    pub(crate) parent: Option<(usize, u64)>,
    pub(crate) nested: Vec<Nested>,
}

/// Meaning of a debug id.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Request(usize),
    Reply(usize),
}

/// Ended call: slot, time, outcome.
pub(crate) type EndedCall = (usize, u64, Outcome);

/// All open calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Option<OpenCall>>,
    empty: Vec<usize>,
    pending: HashMap<(u8, i32), Pending, FastHash>,
    /// Calls in order of their begin; ended ones leave when they reach the front.
    begun: VecDeque<(u64, usize, u64)>,
    serial: u64,
    /// Number of gaps so far.
    gaps: u64,
    /// Calls ended by the current event; the model drains this.
    pub(crate) ended: Vec<EndedCall>,
}

fn key(flavour: Flavour, debug_id: i32) -> (u8, i32) {
    (u8::from(flavour == Flavour::Embedded), debug_id)
}

impl Calls {
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut OpenCall> {
        self.open.get_mut(slot)?.as_mut()
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&OpenCall> {
        self.open.get(slot)?.as_ref()
    }

    fn same(&mut self, slot: usize, serial: u64) -> Option<&mut OpenCall> {
        self.get_mut(slot).filter(|open| open.serial == serial)
    }

    pub(crate) fn take(&mut self, slot: usize) -> Option<OpenCall> {
        let open = self.open.get_mut(slot)?.take()?;
        self.empty.push(slot);
        self.pending.remove(&key(open.flavour, open.sent.debug_id));
        Some(open)
    }

    /// All open calls.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OpenCall> {
        self.open.iter().flatten()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut OpenCall> {
        self.open.iter_mut().flatten()
    }

    /// Events are missing: of all open calls little can be told.
    pub(crate) fn lose(&mut self) {
        self.gaps += 1;
    }

    /// Whether events that may belong to a call are missing.
    pub(crate) fn is_doubtful(&self, open: &OpenCall) -> bool {
        open.doubtful || open.gaps != self.gaps
    }

    /// Slots of all open calls, in the order in which they began.
    pub(crate) fn slots(&self) -> Vec<usize> {
        let open =
            self.open.iter().enumerate().filter_map(|(slot, open)| Some((open.as_ref()?.serial, slot)));
        let mut open: Vec<(u64, usize)> = open.collect();
        open.sort_unstable();
        open.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Begin of the oldest open call.
    pub(crate) fn oldest(&mut self) -> Option<u64> {
        while let Some((begin, slot, serial)) = self.begun.front().copied() {
            if self.get(slot).is_some_and(|open| open.serial == serial) {
                return Some(begin);
            }
            self.begun.pop_front();
        }
        None
    }

    /// Adds the segments of an ended nested call to the call that it was made for. Calls beyond [`MOST_NESTED`] are one with
    /// the last of these, without their segments.
    pub(crate) fn nest(&mut self, parent: Option<(usize, u64)>, nested: Nested) {
        let Some(parent) = parent.and_then(|(slot, serial)| self.same(slot, serial)) else { return };
        let is_full = parent.nested.len() >= MOST_NESTED;
        match parent.nested.last_mut().filter(|_| is_full) {
            Some(last) => last.end = last.end.max(nested.end),
            None => parent.nested.push(nested),
        }
    }

    /// Handles `binder_transaction` of a call.
    pub(crate) fn sent(&mut self, history: &mut History, event: &Event, flavour: Flavour, sent: Sent) {
        self.drop_stale(history, event.tid, event.ts);
        let Some(thread) = history.thread_mut(event.tid) else { return };
        thread.commanded = None;
        // The end of a oneway call is not marked.
        let label = if sent.is_oneway() { None } else { thread.label.take() };
        let (announced, label) = label.map_or((None, None), |(ts, label)| (Some(ts), Some(label)));
        let parent = thread.serving.last().and_then(|served| served.slot);
        let parent = parent.and_then(|slot| Some((slot, self.get(slot)?.serial)));
        let scene =
            thread.scene || parent.and_then(|(slot, _)| self.get(slot)).is_some_and(|outer| outer.scene);
        let open = OpenCall {
            flavour,
            sent,
            begin: event.ts,
            client: event.tid,
            client_tgid: event.tgid.or(thread.tgid),
            client_prio: thread.prio,
            client_cpu: event.cpu,
            method: thread.calling_method().map(|named| named.method.clone()),
            label,
            scene,
            announced,
            parent: parent.filter(|_| !sent.is_oneway()),
            ..OpenCall::default()
        };
        let slot = self.open(open);
        self.pending.insert(key(flavour, sent.debug_id), Pending::Request(slot));
        thread.sent = Some((slot, self.serial, false));
        thread.last_oneway = sent.is_oneway().then_some(sent);
        if !sent.is_oneway() {
            thread.calling.push(slot);
            self.forget_outer(thread);
        }
    }

    /// Adds a call; returns its slot.
    fn open(&mut self, open: OpenCall) -> usize {
        self.serial += 1;
        if self.open.len() - self.empty.len() >= MOST_OPEN
            && let Some((_, slot, _)) = self.oldest().and_then(|_| self.begun.front().copied())
        {
            // Frees the slot of a call that was already removed.
            self.take(slot);
        }
        let slot = self.empty.pop().unwrap_or(self.open.len());
        if slot == self.open.len() {
            self.open.push(None);
        }
        self.begun.push_back((open.begin, slot, self.serial));
        self.open[slot] = Some(OpenCall { serial: self.serial, gaps: self.gaps, ..open });
        slot
    }

    /// The buffer for a transaction's data is allocated, or given back because the transaction failed.
    pub(crate) fn buffer(&mut self, flavour: Flavour, buffer: Buffer, data: Data) {
        let pending = self.pending.get(&key(flavour, buffer.debug_id)).copied();
        let Some(Pending::Request(slot) | Pending::Reply(slot)) = pending else { return };
        let Some(open) = self.get_mut(slot) else { return };
        let (fate, size) = match pending {
            Some(Pending::Reply(_)) => (&mut open.fate.reply, &mut open.reply),
            _ => (&mut open.fate.request, &mut open.request),
        };
        *fate = data;
        if data == Data::Allocated {
            *size = Some(buffer);
        }
    }

    /// At the trace's end: which calls kept the threads of those receivers whose calls nobody took.
    pub(crate) fn note_busy(&mut self) {
        let mut served: HashMap<i32, Vec<i32>> = HashMap::new();
        for open in self.open.iter().flatten() {
            let busy = open.received.is_some() && open.replied.is_none() && !open.sent.is_oneway();
            if busy && !self.is_doubtful(open) {
                let of_process = served.entry(open.sent.to_proc).or_default();
                if of_process.len() < MOST_BEHIND {
                    of_process.push(open.sent.debug_id);
                }
            }
        }
        for open in self.all_mut().filter(|open| open.received.is_none()) {
            open.behind = served.get(&open.sent.to_proc).cloned().unwrap_or_default();
        }
    }

    /// Forgets the outer half of a thread's calls, if they are more than a thread of a real system has.
    fn forget_outer(&mut self, thread: &mut Thread) {
        let doubt = |open: Option<&mut OpenCall>| {
            if let Some(open) = open {
                open.doubtful = true;
            }
        };
        if thread.calling.len() > MOST_STACKED {
            let half = thread.calling.len() / 2;
            thread.calling.drain(..half).for_each(|slot| doubt(self.get_mut(slot)));
            thread.serving.iter_mut().for_each(|served| served.base = served.base.saturating_sub(half));
        }
        if thread.serving.len() > MOST_STACKED {
            let half = thread.serving.len() / 2;
            let slots = thread.serving.drain(..half).filter_map(|served| served.slot);
            slots.for_each(|slot| doubt(self.get_mut(slot)));
        }
    }

    /// Drops the calls of a sending thread that it no longer waits for: it can wait only for those from before the
    /// call that it serves. The trace does not show how the others ended.
    fn drop_stale(&mut self, history: &mut History, tid: i32, ts: u64) {
        self.said_over(history, tid, None);
        let Some(thread) = history.thread_mut(tid) else { return };
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

    /// Ends a call whose end the trace does not show.
    fn give_up(&mut self, slot: usize, ts: u64) {
        if let Some(open) = self.get_mut(slot) {
            let failed = open.received.is_none();
            open.doubtful = true;
            self.ended.push((slot, ts, if failed { Outcome::Failed } else { Outcome::Unanswered }));
        }
    }

    /// Handles `binder_transaction` of a reply: it answers the innermost call that the thread serves.
    pub(crate) fn replied(&mut self, history: &mut History, event: &Event, flavour: Flavour, sent: Sent) {
        let Some(thread) = history.thread_mut(event.tid) else { return };
        let matching = thread.serving.iter().rposition(|served| {
            let open = served.slot.and_then(|slot| self.get(slot));
            open.is_some_and(|open| sent.to_thread == 0 || open.client == sent.to_thread)
        });
        let Some(at) = matching else {
            // The reply to a call from before the trace.
            thread.serving.pop_if(|served| served.slot.is_none());
            if thread.serving.is_empty() {
                thread.free = Free::Replied(event.ts);
            }
            return;
        };
        let Served { slot, base } = thread.serving[at];
        thread.serving.truncate(at);
        let base = base.min(thread.calling.len());
        let stale = thread.calling.split_off(base);
        if thread.serving.is_empty() && thread.calling.is_empty() {
            thread.free = Free::Replied(event.ts);
        }
        let slot = slot.unwrap_or(usize::MAX);
        if let Some(open) = self.get_mut(slot) {
            open.replied = Some(event.ts);
            open.client_tgid = open.client_tgid.or(Some(sent.to_proc));
            thread.sent = Some((slot, open.serial, true));
            self.pending.insert(key(flavour, sent.debug_id), Pending::Reply(slot));
        }
        // The innermost first: each is a part of the one before.
        for slot in stale.into_iter().rev() {
            self.give_up(slot, event.ts);
        }
    }

    /// Handles `binder_transaction_received`.
    pub(crate) fn received(&mut self, history: &mut History, event: &Event, flavour: Flavour, debug_id: i32) {
        match self.pending.remove(&key(flavour, debug_id)) {
            Some(Pending::Request(slot)) => self.taken(history, event, slot),
            Some(Pending::Reply(slot)) => self.answered(history, event, slot),
            None => self.orphan(history, event),
        }
    }

    fn taken(&mut self, history: &mut History, event: &Event, slot: usize) {
        let Some(thread) = history.thread_mut(event.tid) else { return };
        let Some(open) = self.get_mut(slot) else { return };
        let (to_process, oneway) = (open.sent.to_thread == 0, open.sent.is_oneway());
        open.received = Some(event.ts);
        open.server = Some(event.tid);
        open.server_cpu = Some(event.cpu);
        open.server_prio = thread.prio;
        open.server_free = if to_process { thread.free } else { Free::Always };
        let busy = match open.server_free {
            Free::Always => false,
            Free::Replied(free) | Free::Waited(free) => free > open.begin,
            Free::Unseen => true,
        };
        open.busy_with = thread.last_taken.filter(|_| busy);
        thread.last_taken = Some(open.sent.debug_id);
        thread.tgid = thread.tgid.or(Some(open.sent.to_proc));
        thread.free = Free::Unseen;
        if to_process {
            // Process work goes only to threads without a stack, so the calls on its stack are over.
            for served in std::mem::take(&mut thread.serving) {
                if let Some(open) = served.slot.and_then(|slot| self.get_mut(slot)) {
                    open.doubtful = true;
                }
            }
        }
        if oneway {
            self.ended.push((slot, event.ts, Outcome::Delivered));
        } else {
            let base = thread.calling.len();
            thread.serving.push(Served { slot: Some(slot), base });
            self.forget_outer(thread);
        }
    }

    fn answered(&mut self, history: &mut History, event: &Event, slot: usize) {
        let Some(open) = self.get_mut(slot) else { return };
        open.reply_received = Some(event.ts);
        let client = open.client;
        open.doubtful |= client != event.tid;
        let Some(thread) = history.thread_mut(client) else { return };
        let inside = client == event.tid && thread.in_driver.last() == Some(true);
        if inside {
            thread.ending = Some(slot);
            return;
        }
        thread.no_longer_calls(slot);
        self.over(history, client, slot, event.ts);
    }

    /// A thread has the reply of its call, which ends now unless the thread marks its end itself.
    fn over(&mut self, history: &mut History, tid: i32, slot: usize, ts: u64) {
        let Some(open) = self.get_mut(slot) else { return };
        let serial = open.serial;
        if open.announced.is_none() {
            self.ended.push((slot, ts, Outcome::Replied));
        } else if let Some(thread) = history.thread_mut(tid) {
            open.returned = Some(ts);
            thread.returning = Some((slot, serial));
        }
    }

    /// A thread marks the end of its call; without a time, the mark is no longer awaited.
    pub(crate) fn said_over(&mut self, history: &mut History, tid: i32, ts: Option<u64>) {
        let Some((slot, serial)) = history.thread_mut(tid).and_then(Thread::no_longer_returns) else {
            return;
        };
        if let Some(returned) = self.same(slot, serial).and_then(|open| open.returned) {
            self.ended.push((slot, ts.unwrap_or(returned), Outcome::Replied));
        }
    }

    /// Handles a received transaction that was sent before the trace or in a gap.
    fn orphan(&mut self, history: &mut History, event: &Event) {
        let Some(thread) = history.thread_mut(event.tid) else { return };
        let base = thread.serving.last().map_or(0, |served| served.base);
        if thread.calling.len() > base {
            // Its reply, or a call back into it: unknown.
            for slot in &thread.calling[base..] {
                if let Some(open) = self.get_mut(*slot) {
                    open.doubtful = true;
                }
            }
        } else {
            thread.serving.truncate(64);
            thread.serving.push(Served { slot: None, base });
            thread.free = Free::Unseen;
        }
    }

    /// A thread has finished sending and goes on to other work.
    pub(crate) fn handed_over(&mut self, history: &mut History, tid: i32, ts: u64) {
        let Some((slot, serial, reply)) = history.thread_mut(tid).and_then(|thread| thread.sent) else {
            return;
        };
        let Some(open) = self.same(slot, serial) else { return };
        let done = if reply { &mut open.reply_done } else { &mut open.sending_done };
        done.get_or_insert(ts);
    }

    /// `binder_wait_for_work` of a thread that takes process work: it serves nothing.
    pub(crate) fn waits_for_any(&mut self, history: &mut History, tid: i32, ts: u64) {
        let Some(thread) = history.thread_mut(tid) else { return };
        for served in std::mem::take(&mut thread.serving) {
            if let Some(open) = served.slot.and_then(|slot| self.get_mut(slot)) {
                open.doubtful |= open.replied.is_none();
            }
        }
        if !matches!(thread.free, Free::Replied(_) | Free::Waited(_)) {
            thread.free = Free::Waited(ts);
        }
    }

    /// End of an ioctl; ends the call whose reply it brought.
    pub(crate) fn ioctl_done(&mut self, history: &mut History, tid: i32, ts: u64) {
        let Some(thread) = history.thread_mut(tid) else { return };
        let Some(slot) = thread.ending.take() else { return };
        thread.no_longer_calls(slot);
        self.over(history, tid, slot, ts);
    }

    /// Handles `binder_return`: some return words end a call.
    pub(crate) fn returned(&mut self, history: &mut History, event: &Event, flavour: Flavour, cmd: u32) {
        let Some(thread) = history.thread_mut(event.tid) else { return };
        let sent = thread.sent;
        let oneway = sent.filter(|(slot, serial, reply)| {
            let open = self.same(*slot, *serial);
            !reply && open.is_some_and(|open| open.sent.is_oneway() && open.received.is_none())
        });
        if cmd == BR_TRANSACTION_PENDING_FROZEN {
            if let Some(open) = oneway.and_then(|(slot, serial, _)| self.same(slot, serial)) {
                open.frozen = true;
            }
            return;
        }
        let Some(word) = Word::of(cmd) else { return };
        let waits = thread.calling.len() > thread.serving.last().map_or(0, |served| served.base);
        let slot = if let Some(begin) = thread.commanded.take() {
            let (client_tgid, client_prio) = (event.tgid.or(thread.tgid), thread.prio);
            let method = thread.calling_method().map(|named| named.method.clone());
            let (client, client_cpu) = (event.tid, event.cpu);
            let call = OpenCall {
                flavour,
                begin,
                client,
                client_tgid,
                client_prio,
                client_cpu,
                method,
                ..OpenCall::default()
            };
            Some(self.open(call))
        } else if let Some((slot, ..)) = oneway {
            Some(slot)
        } else if waits {
            thread.calling.pop()
        } else {
            None
        };
        let Some(slot) = slot else { return };
        if let Some(open) = self.get_mut(slot) {
            open.fate.word = Some(word);
        }
        let outcome = match word {
            Word::Failed => Outcome::Failed,
            Word::Dead => Outcome::Dead,
            Word::Frozen => Outcome::Frozen,
        };
        self.ended.push((slot, event.ts, outcome));
    }

    /// A thread has exited; ends the calls that it waited for.
    pub(crate) fn died(&mut self, history: &mut History, tid: i32, ts: u64) {
        self.said_over(history, tid, None);
        let Some(thread) = history.thread_mut(tid) else { return };
        // Another thread may get its number.
        (thread.exited, thread.tgid) = (true, None);
        if !thread.acts() {
            return;
        }
        thread.serving.clear();
        thread.forget_slices();
        (thread.ending, thread.sent, thread.free) = (None, None, Free::Always);
        (thread.commanded, thread.last_oneway, thread.scene) = (None, None, false);
        for slot in std::mem::take(&mut thread.calling).into_iter().rev() {
            self.ended.push((slot, ts, Outcome::Dead));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_calls_beyond_the_limit_are_one_with_the_last() {
        let mut calls = Calls::default();
        let slot = calls.open(OpenCall::default());
        let serial = calls.serial;
        let most = MOST_NESTED as u64;
        for begin in 0..most + 1000 {
            calls.nest(
                Some((slot, serial)),
                Nested { begin: begin * 10, end: begin * 10 + 5, parts: Vec::new() },
            );
        }
        let nested = &calls.get(slot).expect("it is open").nested;
        let last = nested.last().expect("nested calls");
        assert_eq!(
            (nested.len(), last.begin, last.end),
            (MOST_NESTED, (most - 1) * 10, (most + 999) * 10 + 5)
        );
    }
}
