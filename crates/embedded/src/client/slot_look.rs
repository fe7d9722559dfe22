//! Looks at call slots without taking anything: for the reply to a call, or for a caller's next call.

use std::sync::Arc;

use super::channel::Channel;
use super::core::slot_call::SlotTicket;
use crate::shm::call_slot::Ahead;

impl SlotTicket {
    /// Expected payload range of the next call.
    pub(super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.call_slots.next_request(self.call))
    }

    /// Whether the awaited call has an outcome.
    pub(super) fn has_outcome(&self) -> bool {
        !self.by_broker && self.channel.call_slots.is_answered(self.call)
    }

    /// Whether the outcome is a reply.
    pub(super) fn has_reply(&self) -> bool {
        !self.by_broker && self.channel.call_slots.has_reply(self.call)
    }

    /// Whether the call has ended and no copy of its reply is under way.
    pub(super) fn is_over(&self) -> bool {
        self.channel.is_closed() || self.channel.call_slots.is_answered_whole(self.call)
    }
}

/// The call slot of the last call that a thread served. The thread looks there for the next call unasked.
#[derive(Debug)]
pub(super) struct WatchedSlot {
    pub(super) channel: Arc<Channel>,
    pub(super) call_slot: u32,
}

impl WatchedSlot {
    /// Expected payload range of the reply to the next call.
    pub(super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.call_slots.next_reply(self.call_slot))
    }

    /// Whether the slot has a call.
    pub(super) fn has_call(&self) -> bool {
        self.channel.call_slots.has_call(self.call_slot) && !self.channel.is_closed()
    }
}
