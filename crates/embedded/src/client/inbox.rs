//! Takes in new items of a process: the broker's records, and calls and replies in call slots.
//! Not here: which thread an item is for, and whether a call comes before a record (`core`), the records' ring
//! (`shm::ring`).
//! Facts: contract LP-08, TX-06, TX-10.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Process;
use super::active_thread::ActiveThread;
use super::channel::{Channel, NOBODY, map_channel};
use super::core::slot_call::{BoxedCall, SlotEnd};
use super::core::thread::{Awaited, Frame};
use crate::priority::is_realtime;
use crate::rpc::codec::Message;
use crate::rpc::protocol::{Item, ProcId, RECORD_SIZE, Request, ThreadKey};
use crate::settings::Inherit;
use crate::shm::Corrupt;
use crate::shm::call_slot::Outcome;
use crate::shm::ring;

/// Most passes over everything that arrives during one intake.
const ROUNDS: u32 = 16;

impl Process {
    /// Whether anything new waits to be taken in.
    pub(super) fn anything_new(&self) -> bool {
        self.bells.anything_ready() || self.inbox_has_records()
    }

    pub(super) fn inbox_has_records(&self) -> bool {
        !self.inbox_broken.load(Ordering::Relaxed) && ring::has_records(&self.inbox_memory)
    }
}

/// A thread that takes in what is new for all threads of its process.
pub(super) struct Intake<'t, 'p> {
    pub(super) thread: &'t mut ActiveThread<'p>,
}

/// The broker's records.
impl Intake<'_, '_> {
    /// Takes in everything new, for all threads. `takes_any`: this thread would take any work.
    pub(super) fn take_in(&mut self, takes_any: bool) {
        let (process, slot) = (self.thread.process, self.thread.slot);
        if !process.anything_new() && self.thread.state.core.channels.is_settled() {
            return;
        }
        self.thread.state.core.begin_intake(slot, takes_any);
        // Bounded: a waiting thread comes back anyway, and a peer that never stops must not keep the lock.
        for _ in 0..ROUNDS {
            if process.inbox_has_records() {
                self.take_in_records();
            }
            self.take_in_slot_calls();
            // A call may count more records than there are: it waits for none of those.
            if self.thread.state.core.has_calls_behind_records() && !process.inbox_has_records() {
                self.thread.state.core.end_waits();
            }
            if !process.anything_new() {
                break;
            }
        }
        self.thread.state.core.end_intake();
    }

    fn take_in_records(&mut self) {
        let process = self.thread.process;
        let mut inbox = process.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = [0; RECORD_SIZE];
        loop {
            match inbox.pop(&mut record) {
                Ok(true) => {
                    if let Ok(item) = Item::decode(&record) {
                        self.accept(item);
                    }
                    self.thread.state.core.count_record();
                }
                Ok(false) => break,
                // The broker left corrupt counts: nothing more can be read, and waiting threads get an error.
                Err(_) => {
                    process.inbox_broken.store(true, Ordering::Relaxed);
                    return self.thread.state.end_connection(process);
                }
            }
        }
        if inbox.take_starved() {
            process.send(&Request::More {});
        }
    }

    fn accept(&mut self, item: Item) {
        match item {
            Item::Channel { channel, caller, bit, peer, peer_pid, peer_euid } => {
                self.open_channel((channel, bit), (peer, peer_pid, peer_euid), caller);
            }
            Item::PeerGone { peer } => self.accept_peer_gone(peer),
            item => {
                if matches!(item, Item::Deliver { .. } | Item::Work { .. } | Item::Unbind { .. }) {
                    // Calls that were made before it (contract LP-08), and by that binding.
                    self.take_in_slot_calls();
                }
                if let Some(answer) = self.thread.state.core.accept(item) {
                    self.thread.process.take_trace_numbers(&answer);
                }
            }
        }
    }

    /// Opens a channel: fetches its memory from the broker, under the lock. The broker never waits for a
    /// client.
    fn open_channel(&mut self, (id, bit): (u32, u32), peer: (ProcId, u32, u32), caller: bool) {
        let (process, channels) = (self.thread.process, &mut self.thread.state.core.channels);
        let fetched = process.line.fetch(ThreadKey::NOBODY, &Request::TakeChannel { channel: id });
        let descriptors = fetched.ok().filter(|(errno, _)| *errno == 0);
        let Some(memory) = descriptors.and_then(|(_, descriptors)| map_channel(descriptors)) else {
            // Out of descriptors or memory: calls keep going through the broker, except a call already in the
            // call slot, which fails (`give_up_slot_call`).
            return process.send(&Request::DropChannel { channel: id });
        };
        let channel = Arc::new(Channel::new((id, bit), peer, memory));
        if caller {
            return channels.add_outbound(channel);
        }
        channels.add_inbound(channel);
        // The caller may have opened its end earlier and marked it: mark it again, so that no call is missed.
        process.bells.post(bit);
    }

    /// Dead-replies every call that the peer has not answered. Replies that it sent before its end count.
    fn accept_peer_gone(&mut self, peer: ProcId) {
        self.take_in_slot_calls();
        self.take_in_last_replies(peer);
        self.thread.state.core.peer_gone(peer).iter().for_each(|channel| channel.close());
    }
}

/// Calls in call slots.
impl Intake<'_, '_> {
    /// Takes in the calls of every marked channel.
    fn take_in_slot_calls(&mut self) {
        if !self.thread.state.core.channels.is_settled() {
            self.look_again();
        }
        // Call slots do not record the order of calls among each other. Where policies are inherited, a real-time
        // call goes first, unless it counts a record that is not accepted yet: the thread that takes calls in was
        // most likely boosted for it, and would lose the boost by serving another.
        let rt_first = self.thread.process.settings.inherit == Inherit::Rt;
        let mut postponed = Vec::new();
        for bit in self.thread.process.bells.take_ready() {
            let Some(channel) = self.thread.state.core.channels.inbound(bit).cloned() else { continue };
            for call_slot in channel.call_slots.called() {
                let Some(call) = self.take_call(&channel, call_slot) else { continue };
                match rt_first && !is_realtime(call.request.header.sched.policy) {
                    true => postponed.push(call),
                    false => self.thread.state.core.take_in_slot_call(call),
                }
            }
        }
        postponed.into_iter().for_each(|call| self.thread.state.core.take_in_slot_call(call));
    }

    /// Retries calls that could not be finished before.
    fn look_again(&mut self) {
        let core = &mut self.thread.state.core;
        for ticket in core.channels.orphans.extract_if(.., |ticket| ticket.is_over()).collect::<Vec<_>>() {
            ticket.channel.free_slot(ticket.call);
            core.slot_call_over(&ticket);
        }
        core.accept_early_calls();
    }

    /// Takes the call of one call slot; `None` if it has none.
    fn take_call(&mut self, channel: &Arc<Channel>, call_slot: u32) -> Option<BoxedCall> {
        if channel.is_closed() {
            return None;
        }
        let mut call = self.thread.state.core.channels.spare_call(channel);
        let taken = match channel.call_slots.take_into(call_slot, &mut call.request) {
            // A second call at once: no honest caller makes one.
            Ok(true) if !channel.begin_serving(call_slot) => Err(Corrupt::SlotBusy),
            taken => taken,
        };
        match taken {
            Ok(true) => {
                let cpu = call.request.header.cpu.saturating_add(1);
                self.thread.process.caller_cpu.store(cpu, Ordering::Relaxed);
                return Some(call);
            }
            Ok(false) => {}
            Err(corrupt) => channel.close_as(corrupt),
        }
        self.thread.state.core.channels.keep_call(call);
        None
    }
}

/// Ends of calls in call slots.
impl Intake<'_, '_> {
    /// Takes in the replies that a callee sent before its end, including those to threads that now serve
    /// another call.
    fn take_in_last_replies(&mut self, peer: ProcId) {
        for slot in self.thread.state.core.slots() {
            for place in (0..self.thread.state.core.thread(slot).stack.len()).rev() {
                let frame = self.thread.state.core.thread(slot).stack.get(place);
                if let Some(Frame::Calling(Awaited::CallSlot(ticket))) = frame
                    && ticket.channel.peer == peer
                {
                    self.take_in_slot_end(slot, place);
                }
            }
        }
    }

    /// Queues the end of the call that this thread waits for in a call slot, if that call has ended and the
    /// thread has read every earlier transaction.
    pub(super) fn take_in_awaited_end(&mut self) {
        let slot = self.thread.slot;
        let thread = self.thread.thread();
        if !thread.is_sending() && !thread.has_unread() && thread.awaited_slot().is_some() {
            let place = thread.stack.len() - 1;
            self.take_in_slot_end(slot, place);
        }
    }

    /// Ends the call at `place` of a thread's stack if its call slot has an outcome.
    fn take_in_slot_end(&mut self, slot: u32, place: usize) {
        let frame = self.thread.state.core.thread(slot).stack.get_mut(place);
        let Some(Frame::Calling(Awaited::CallSlot(ticket))) = frame else { return };
        if ticket.by_broker {
            return;
        }
        let end = match ticket.channel.call_slots.poll_reply(ticket.call) {
            Ok(None) => return,
            Ok(Some(Outcome::RepliedByBroker)) => {
                ticket.by_broker = true;
                return;
            }
            Ok(Some(Outcome::Replied(header))) => {
                ticket.channel.note_peer_cpu(header.cpu);
                SlotEnd::Replied(header)
            }
            Ok(Some(Outcome::Failed(NOBODY))) => SlotEnd::Dead,
            Ok(Some(Outcome::Failed(errno))) => SlotEnd::Failed(errno),
            Err(corrupt) => {
                ticket.channel.close_as(corrupt);
                SlotEnd::Nonsense
            }
        };
        let now = self.thread.state.core.end_slot_call(slot, place, end);
        if slot != self.thread.slot {
            self.thread.state.core.changed(slot, now);
        }
    }
}
