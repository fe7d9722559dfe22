//! Receives the reply to a call through a call slot (caller's side).
//! Not here: the call (`slot_call`), the call slot's memory (`shm::call_slot`).
//! Facts: contract TX-01, TX-10, TX-17.

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::ENOSPC;

use super::State;
use super::core::slot_call::SlotTicket;
use super::core::thread::failed;
use super::read::{Next, Reading};
use super::receive::{ReceiveError, SlotPayload};
use crate::shm::call_slot::ReplyHeader;
use crate::trace_events::CodeAndFlags;

impl Reading<'_, '_, '_> {
    /// Copies a reply and appends its return.
    pub(super) fn deliver_slot_reply(&mut self, ticket: SlotTicket, header: &ReplyHeader) -> Next {
        let process = self.thread.process;
        let received = match SlotPayload::Reply(&ticket, header).receive(self.thread) {
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
    /// when the peer has finished: a late copy of a large reply would otherwise land in the reply to a later
    /// call.
    pub(super) fn disown(&mut self, ticket: SlotTicket) {
        match ticket.is_over() {
            true => self.free_slot(&ticket),
            false => self.core.channels.orphans.push(ticket),
        }
    }
}
