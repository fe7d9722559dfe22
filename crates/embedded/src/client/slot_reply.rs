//! Receives the reply to a call through a call slot (caller's side).
//! Not here: the call (`slot_call`), the call slot's memory (`shm::call_slot`).
//! Facts: contract TX-01, TX-10, TX-17.

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::ENOSPC;

use super::active_thread::ActiveThread;
use super::channel::NOBODY;
use super::core::slot_call::{SlotEnd, SlotTicket};
use super::core::thread::{Awaited, Frame, failed};
use super::read::{Next, Output};
use super::slot_payload::{ReceiveError, SlotPayload};
use crate::rpc::protocol::ProcId;
use crate::shm::call_slot::{Outcome, ReplyHeader};
use crate::trace_events::CodeAndFlags;

impl SlotTicket {
    /// Remembers the hints about the callee that a reply carries.
    fn note_reply(&self, header: &ReplyHeader) {
        self.channel.note_peer_cpu(header.cpu);
    }
}

impl ActiveThread<'_> {
    /// Takes in the replies that a callee sent before its end, including those to threads that now serve
    /// another call.
    pub(super) fn take_in_last_replies(&mut self, peer: ProcId) {
        for slot in self.state.core.slots() {
            for place in (0..self.state.core.thread(slot).stack.len()).rev() {
                let frame = self.state.core.thread(slot).stack.get(place);
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
        let slot = self.slot;
        let thread = self.thread();
        if !thread.is_sending() && !thread.has_unread() && thread.awaited_slot().is_some() {
            let place = thread.stack.len() - 1;
            self.take_in_slot_end(slot, place);
        }
    }

    /// Ends the call at `place` of a thread's stack if its call slot has an outcome.
    fn take_in_slot_end(&mut self, slot: u32, place: usize) {
        let frame = self.state.core.thread(slot).stack.get_mut(place);
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
                ticket.note_reply(&header);
                SlotEnd::Replied(header)
            }
            Ok(Some(Outcome::Failed(NOBODY))) => SlotEnd::Dead,
            Ok(Some(Outcome::Failed(errno))) => SlotEnd::Failed(errno),
            Err(corrupt) => {
                ticket.channel.close_as(corrupt);
                SlotEnd::Nonsense
            }
        };
        self.state.core.end_slot_call(slot, place, end);
    }

    /// Copies a reply and appends its return.
    pub(super) fn deliver_slot_reply(
        &mut self,
        ticket: SlotTicket,
        header: &ReplyHeader,
        out: &mut Output<'_>,
    ) -> Next {
        let process = self.process;
        let payload = SlotPayload::Reply(ticket.call, header.shape);
        let received = match self.receive(&ticket.channel, payload, header.flags, None) {
            Ok(received) => received,
            Err(ReceiveError::NoRoom | ReceiveError::NoArea) => {
                self.thread().extended_error = failed(ENOSPC);
                self.disown(ticket);
                self.put(out, br::FAILED_REPLY, &[]);
                return Next::Stop;
            }
            Err(ReceiveError::Corrupt(corrupt)) => {
                self.free_slot(&ticket);
                ticket.channel.close_as(corrupt);
                self.put(out, br::DEAD_REPLY, &[]);
                return Next::Stop;
            }
        };
        self.free_slot(&ticket);
        let ReplyHeader { code, flags, .. } = *header;
        if let Some(trace) = process.traced() {
            trace.slot_reply_delivered(&ticket, header.shape, received.buffer);
        }
        let data = TransactionData { code, flags, sender_euid: ticket.channel.peer_euid, ..received };
        self.put(out, br::REPLY, data.as_bytes());
        if let Some(trace) = process.traced() {
            trace.slot_reply_over(self.who, &ticket, CodeAndFlags { flags, code });
        }
        Next::Stop
    }

    #[inline]
    fn free_slot(&mut self, ticket: &SlotTicket) {
        ticket.channel.free_slot(ticket.call);
        self.state.core.slot_call_over(ticket);
    }

    /// Gives up the reply to a call, because its thread exits or there is no room. The slot becomes free only
    /// when the peer has finished: a late copy of a large reply would otherwise land in the reply to a later
    /// call.
    pub(super) fn disown(&mut self, ticket: SlotTicket) {
        match ticket.is_over() {
            true => self.free_slot(&ticket),
            false => self.state.core.channels.orphans.push(ticket),
        }
    }
}
