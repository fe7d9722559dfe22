//! Looks at call slots without taking anything: for the outcome of a call.

use super::core::slot_call::SlotTicket;

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
