//! Keeps calls that come through call slots in order with the broker's records.
//! Not here: taking in either (the shell's `inbox`), what a call does (`slot_calls`).
//! Facts: contract LP-08.
//!
//! A call says how many records its callee's inbox had been given when it was published. Of a call and a record, one
//! of which was sent after the other's send had returned, the later one is accepted second:
//! - The call: its count includes the record, so it waits until that is accepted.
//! - The record: the call was marked before the record was written, so the shell, which takes in marked calls before it
//!   accepts a record that queues work, finds that call. The call's count does not include that record.
//!
//! Otherwise they are concurrent, and any order will do. A count is only a claim. Once the inbox is empty no call waits
//! any more; true counts are reached by then, because the broker counts a record that it has written.

use super::Core;
use super::slot_call::BoxedCall;
use crate::rpc::protocol::ProcId;

#[derive(Debug)]
pub(super) struct ArrivalOrder {
    /// Number of records accepted, which wraps.
    records: u32,
    /// Calls that count records not accepted yet, in the order in which they were taken in.
    waiting: Vec<BoxedCall>,
}

impl ArrivalOrder {
    pub(super) fn new() -> Self {
        Self { records: 0, waiting: Vec::with_capacity(16) }
    }
}

/// Whether this many records, accepted, are all that a call counts. Numbers wrap around.
fn is_due(call: &BoxedCall, records: u32) -> bool {
    records.wrapping_sub(call.request.header.behind).cast_signed() >= 0
}

impl Core {
    /// Accepts a call from a call slot, now or behind the records that it counts.
    pub(crate) fn take_in_slot_call(&mut self, call: BoxedCall) {
        match is_due(&call, self.order.records) {
            true => self.accept_slot_call(call),
            false => self.order.waiting.push(call),
        }
    }

    /// Counts a record that was accepted, and accepts the calls that waited for it.
    pub(crate) fn count_record(&mut self) {
        let records = self.order.records.wrapping_add(1);
        self.order.records = records;
        self.end_waits_where(|call| is_due(call, records));
    }

    /// Whether calls wait for records.
    pub(crate) fn has_calls_behind_records(&self) -> bool {
        !self.order.waiting.is_empty()
    }

    /// Accepts every call that waits: the inbox has no records.
    pub(crate) fn end_waits(&mut self) {
        self.end_waits_where(|_| true);
    }

    /// Accepts the calls of a peer that is gone: their nodes are about to be unbound.
    pub(super) fn end_waits_of(&mut self, peer: ProcId) {
        self.end_waits_where(|call| call.channel.peer == peer);
    }

    #[cfg(test)]
    pub(super) fn set_records(&mut self, records: u32) {
        self.order.records = records;
    }

    fn end_waits_where(&mut self, ends: impl Fn(&BoxedCall) -> bool) {
        if self.has_calls_behind_records() {
            let ended: Vec<_> = self.order.waiting.extract_if(.., |call| ends(call)).collect();
            ended.into_iter().for_each(|call| self.accept_slot_call(call));
        }
    }
}
