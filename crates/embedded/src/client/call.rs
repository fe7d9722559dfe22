//! A call from its caller's side: made through a call slot where that is possible, else through the broker; and the
//! reply that comes back in the call slot.
//! Not here: the call slot's memory (`shm::call_slot`), the transaction for the broker (`send`), replies from there
//! (`deliver`), when a call has ended (`inbox`).
//! Facts: contract TX-01, TX-06, TX-10, TX-12 to TX-15, TX-17, FRZ-03, OW-01.

use std::io;

use abi::codes::{br, tf};
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::ENOSPC;

use super::State;
use super::channel::Channel;
use super::core::slot_call::SlotTicket;
use super::core::thread::{Pending, failed};
use super::inherit;
use super::read::{Next, Reading};
use super::receive::{Incoming, ReceiveError};
use super::send::Sending;
use super::wake::Wake;
use crate::payload::encode::SlotPayload;
use crate::priority::is_realtime;
use crate::rpc::protocol::{Lineage, Sched, ThreadKey, Transact, TransactKind};
use crate::shm::call_slot::{Call, ReplyHeader, RequestHeader, Shape, Source};
use crate::trace_events::CodeAndFlags;

impl<'p: 'c, 'c> Sending<'_, 'p, 'c> {
    /// Executes `BC_TRANSACTION(_SG)`.
    pub(super) fn call(&mut self) -> io::Result<()> {
        let (process, slot) = (self.thread.process, self.thread.slot);
        if let Some(trace) = process.traced() {
            process.request_trace_numbers(trace);
        }
        let handle = self.data.target as u32;
        let oneway = self.data.flags & tf::ONE_WAY != 0;
        if !oneway {
            if !self.thread.thread().may_call() {
                // The broker looks at the target first: the dead reply of a dead one goes before.
                let kind = TransactKind::Call { handle };
                let transact = Transact { kind, out_of_turn: true, ..self.blank() };
                return self.send(Pending::Call, transact, None);
            }
            let bound = self.thread.state.core.channels.handle(handle);
            // The layout is only needed for a call slot.
            let has_slot = bound.is_some_and(|bound| bound.channel.is_open());
            if has_slot
                && let Some(payload) = self.encode()
                && self.in_slot(&payload)
            {
                self.thread.state.core.release_early(slot);
                return Ok(());
            }
        }
        let thread = self.thread.thread();
        let lineage = thread.lineage().map_or(Lineage::EMPTY, |lineage| *lineage);
        let transact = Transact {
            kind: TransactKind::Call { handle },
            lineage,
            sched: inherit::sending(self.thread.who, self.thread.own().before),
            ..self.blank()
        };
        self.send(if oneway { Pending::Oneway } else { Pending::Call }, transact, None)
    }

    /// Calls through a call slot. Returns false if the handle has none or its gate is shut; the call then
    /// goes through the broker.
    fn in_slot(&mut self, payload: &SlotPayload<'_>) -> bool {
        let (process, slot, handle) = (self.thread.process, self.thread.slot, self.data.target as u32);
        let Ok(shape) = payload.shape() else { return false };
        let lineage = self.thread.thread().lineage();
        let mine = inherit::sending(self.thread.who, self.thread.own().before);
        let key = self.thread.thread().key;
        let state = &mut *self.thread.state;
        let Some(bound) = state.core.channels.handle(handle) else { return false };
        let channel = &bound.channel;
        let Some(call_slot) =
            channel.unused_slot().filter(|_| channel.is_open() && channel.has_room(shape.len()))
        else {
            return false;
        };
        let to = lineage.as_deref().and_then(|lineage| lineage.find(channel.peer));
        let trace_number = process.traced().map_or(0, |trace| {
            let what = CodeAndFlags { flags: self.data.flags, code: self.data.code };
            trace.slot_call((bound.node, channel.trace_name(to), what), shape)
        });
        let header = RequestHeader {
            binding: bound.number,
            code: self.data.code,
            flags: self.data.flags,
            shape: Shape::default(),
            thread: key,
            cpu: sys::sched::current_cpu(),
            sched: mine,
            mark: trace_number,
            // Before the call is published (contract LP-08).
            behind: channel.bells.records(),
            lineage,
        };
        let call = match channel.call_slots.publish(call_slot, &header, payload) {
            Ok(call) => call,
            Err(corrupt) => {
                channel.close_as(corrupt);
                process.trace_undone(trace_number, shape);
                return false;
            }
        };
        channel.use_slot(call_slot);
        let node_flags = bound.flags;
        let ticket = SlotTicket {
            channel: channel.clone(),
            call,
            handle,
            flags: self.data.flags,
            by_broker: false,
            trace_number,
        };
        let acknowledgement = self.thread.state.core.begin_slot_call(slot, ticket);
        self.thread.show_depth();
        if self.thread.thread().awaited_slot().is_some_and(|ticket| announce(&ticket.channel, call)) {
            self.thread.state.core.undo_slot_call(slot, acknowledgement);
            process.trace_undone(trace_number, shape);
            return false;
        }
        if let Some(ticket) = self.thread.state.core.thread(slot).awaited_slot()
            && let Some(bell) = thread_to_wake(&ticket.channel, to, mine)
        {
            let channel = ticket.channel.clone();
            self.thread.wake_later(Wake { channel, slot: bell, call: Some((mine, node_flags)) });
        }
        true
    }
}

/// Announces a published call to the callee. Returns true if the call was taken back because the gate was shut.
fn announce(channel: &Channel, call: Call) -> bool {
    channel.post();
    channel.call_slots.gate() != 0 && channel.call_slots.back_out(call)
}

/// Slot of the peer's thread to wake: thread `to`, or any one. `caller`: the caller's scheduling.
fn thread_to_wake(channel: &Channel, to: Option<ThreadKey>, caller: Sched) -> Option<u32> {
    let bell = match to {
        Some(key) => channel.bells.slot(key.slot).filter(|bell| bell.needs_wake()),
        None => channel.bells.listener_to_wake().or_else(|| {
            // Nobody sleeps: boost the thread that is returning for work, which might otherwise be delayed.
            let on_its_way = || channel.bells.listener_on_its_way();
            is_realtime(caller.policy).then(on_its_way).flatten()
        }),
    };
    Some(bell?.number())
}

impl Reading<'_, '_, '_> {
    /// Copies a reply and appends its return.
    pub(super) fn deliver_slot_reply(&mut self, ticket: SlotTicket, header: &ReplyHeader) -> Next {
        let process = self.thread.process;
        let received = match Incoming::Reply(&ticket, header).receive(self.thread) {
            Ok(received) => received,
            Err(ReceiveError::NoRoom | ReceiveError::NoArea) => {
                self.thread.thread().extended_error = failed(ENOSPC);
                self.thread.state.disown(ticket);
                self.put(br::FAILED_REPLY, &[]);
                return Next::Stop;
            }
            Err(ReceiveError::Corrupt(corrupt)) => {
                self.thread.state.free_slot(&ticket);
                ticket.channel.close_as(corrupt);
                self.put(br::DEAD_REPLY, &[]);
                return Next::Stop;
            }
        };
        self.thread.state.free_slot(&ticket);
        let ReplyHeader { code, flags, .. } = *header;
        if let Some(trace) = process.traced() {
            trace.slot_reply_delivered(&ticket, header.shape, received.buffer);
        }
        let data = TransactionData { code, flags, sender_euid: ticket.channel.peer_euid, ..received };
        self.put(br::REPLY, data.as_bytes());
        if let Some(trace) = process.traced() {
            trace.slot_reply_over(self.thread.who, &ticket, CodeAndFlags { flags, code });
        }
        Next::Stop
    }
}

impl State {
    /// Frees the call slot of a call that is over.
    fn free_slot(&mut self, ticket: &SlotTicket) {
        ticket.channel.free_slot(ticket.call);
        self.core.slot_call_over(ticket);
    }

    /// Gives up the reply to a call, because its thread exits or there is no room. The slot becomes free only
    /// when the peer has finished: a late reply would otherwise be written over that to a later call.
    pub(super) fn disown(&mut self, ticket: SlotTicket) {
        match ticket.is_over() {
            true => self.free_slot(&ticket),
            false => self.core.channels.orphans.push(ticket),
        }
    }
}

impl SlotTicket {
    /// Whether the awaited call has an outcome.
    pub(super) fn has_outcome(&self) -> bool {
        !self.by_broker && self.channel.call_slots.is_answered(self.call)
    }

    /// Whether the call has ended.
    pub(super) fn is_over(&self) -> bool {
        self.channel.is_closed() || self.channel.call_slots.is_answered(self.call)
    }
}
