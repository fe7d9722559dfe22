//! Effects of calls through call slots on threads, handles and nodes, for caller and callee.
//! Not here: the call itself (`slot_call`), the call slots' memory (`shm::call_slot`; in the shell
//! `call`, `serve`, `inbox`).
//! Facts: contract TX-01 to TX-06, TX-10, TX-17, TX-18, REF-13, ID-05.

use std::sync::atomic::Ordering;

use abi::codes::{bc, br};

use sys::errno::{EINVAL, EIO};

use super::slot_call::{BoxedCall, SlotEnd, SlotReply, SlotTicket};
use super::thread::{Awaited, Frame, NO_ERROR, failed};
use super::{Core, Effect, Todo};
use crate::rpc::protocol::Request;

/// Calls made by this process.
impl Core {
    /// Records a published call; returns the place of its acknowledgement in the thread's queue.
    pub(crate) fn begin_slot_call(&mut self, slot: u32, ticket: SlotTicket) -> usize {
        if let Some(bound) = self.channels.handle(ticket.handle) {
            bound.calls += 1;
        }
        let thread = self.thread(slot);
        thread.extended_error = NO_ERROR;
        thread.stack.push(Frame::Calling(Awaited::CallSlot(ticket)));
        thread.acknowledge()
    }

    /// Takes back a call that the callee did not take. `acknowledgement`: see
    /// [`begin_slot_call`](Self::begin_slot_call).
    pub(crate) fn undo_slot_call(&mut self, slot: u32, acknowledgement: usize) {
        let thread = self.thread(slot);
        let Some(Frame::Calling(Awaited::CallSlot(ticket))) = thread.stack.pop() else { return };
        thread.todo.remove_acknowledgement(acknowledgement);
        self.free_call_slot(ticket);
    }

    /// Ends the awaited call of a thread that nobody will take, because its channel was closed.
    pub(crate) fn give_up_slot_call(&mut self, slot: u32) {
        let thread = self.thread(slot);
        if let Some(place) = thread.awaited_slot().map(|_| thread.stack.len() - 1) {
            self.end_slot_call(slot, place, SlotEnd::Failed(EIO));
        }
    }

    /// Ends the call at `place` of a thread's stack; returns whether the thread may read the end now. The reply
    /// stays in its call slot until it is read.
    pub(crate) fn end_slot_call(&mut self, slot: u32, place: usize, end: SlotEnd) -> bool {
        let thread = self.thread(slot);
        let Some(Frame::Calling(Awaited::CallSlot(ticket))) = thread.take_frame(place) else { return false };
        let word = match end {
            SlotEnd::Replied(header) => {
                return thread.end(place, Todo::SlotReply(SlotReply { ticket, header }));
            }
            SlotEnd::Dead => br::DEAD_REPLY,
            SlotEnd::Nonsense => br::FAILED_REPLY,
            SlotEnd::Failed(errno) => {
                thread.extended_error = failed(errno);
                br::FAILED_REPLY
            }
        };
        let now = thread.end(place, Todo::Word(word));
        self.free_call_slot(ticket);
        now
    }

    pub(super) fn free_call_slot(&mut self, ticket: SlotTicket) {
        self.slot_call_over(&ticket);
        self.effects.push(Effect::FreeSlot(Box::new(ticket)));
    }

    /// Records the end of a call; sends the commands held until the handle's last call.
    pub(crate) fn slot_call_over(&mut self, ticket: &SlotTicket) {
        let Some(bound) = self.channels.handle(ticket.handle) else { return };
        if bound.channel.id != ticket.channel.id {
            return;
        }
        bound.calls = bound.calls.saturating_sub(1);
        if bound.calls == 0 && !bound.later.is_empty() {
            for command in std::mem::take(&mut bound.later) {
                self.send(Request::Count { command, handle: ticket.handle });
            }
        }
    }

    /// Holds a command back that could end a handle while one of its calls is under way, of which the broker
    /// does not know.
    pub(crate) fn hold_count(&mut self, command: u32, handle: u32) -> bool {
        match self.channels.handle(handle) {
            Some(bound) if bound.calls > 0 && matches!(command, bc::RELEASE | bc::DECREFS) => {
                bound.later.push(command);
                true
            }
            _ => false,
        }
    }
}

/// Calls received by this process.
impl Core {
    /// Accepts a call from a call slot: finds its node and a thread.
    pub(crate) fn accept_slot_call(&mut self, call: BoxedCall) {
        let Some(call) = self.admit(call) else { return };
        let lineage = call.request.header.lineage.as_deref();
        let to = lineage.and_then(|lineage| lineage.find(self.id));
        self.route_call(to, Todo::SlotCall(call));
    }

    /// Finds the node of a call and pins it. A call without a known node waits or fails.
    fn admit(&mut self, mut call: BoxedCall) -> Option<BoxedCall> {
        let binding = call.request.header.binding;
        let Some(node) = self.channels.node((call.channel.id, binding)) else {
            match binding > call.channel.last_binding.load(Ordering::Relaxed) {
                // The caller learned of the binding before this process.
                true => self.channels.early.push(call),
                // The caller was never given this binding (contract ID-05, REF-03).
                false => self.effects.push(Effect::FailCall(call, EINVAL)),
            }
            return None;
        };
        call.node = node;
        // Pinned now, not when it is read: another thread may read of the node's end first.
        self.channels.pins.pin(node.pin);
        Some(call)
    }

    /// Accepts the early calls whose bindings are now known.
    pub(crate) fn accept_early_calls(&mut self) {
        let known = |call: &mut BoxedCall| {
            call.request.header.binding <= call.channel.last_binding.load(Ordering::Relaxed)
        };
        let known: Vec<_> = self.channels.early.extract_if(.., known).collect();
        known.into_iter().for_each(|call| self.accept_slot_call(call));
    }

    /// Releases a node's pin, when a call's buffer is given back or the call failed. After the last one the
    /// node's owner gets the held returns.
    pub(crate) fn unpin(&mut self, pin: u32) {
        for (word, payload) in self.channels.pins.unpin(pin) {
            self.route(Todo::Small(word, payload));
        }
    }

    /// Holds back a return that could end a node while a call pins it.
    pub(crate) fn hold_return(&mut self, word: u32, payload: [u64; 2]) -> bool {
        matches!(word, br::RELEASE | br::DECREFS) && self.channels.pins.hold_back(payload[0], (word, payload))
    }

    /// Queues the acknowledgement of a reply that is about to be published; returns its place in the thread's
    /// queue. It must come first: the caller may continue at once, and its next call may come to this very
    /// thread.
    pub(crate) fn begin_slot_reply(&mut self, slot: u32) -> usize {
        let thread = self.thread(slot);
        let acknowledgement = thread.acknowledge();
        thread.urgent = true;
        thread.extended_error = NO_ERROR;
        thread.release_held();
        acknowledgement
    }

    /// Refuses a reply that failed or that nobody waits for: the write stops as at an error (contract TX-17,
    /// TX-18).
    pub(crate) fn refuse_slot_reply(&mut self, slot: u32, acknowledgement: usize) {
        let thread = self.thread(slot);
        thread.todo.refuse_acknowledgement(acknowledgement, br::TRANSACTION_COMPLETE);
        thread.refused = true;
    }
}
