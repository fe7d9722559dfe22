//! Makes a call through a call slot (caller's side).
//! Not here: its reply (`slot_reply`), the call slot's memory (`shm::call_slot`).
//! Facts: contract TX-01, TX-06, TX-10, FRZ-03.

use abi::layout::TransactionData;

use super::active_thread::ActiveThread;
use super::channel::Channel;
use super::core::slot_call::SlotTicket;
use super::inherit;
use super::wake::Wake;
use crate::priority::is_realtime;
use crate::rpc::protocol::{Sched, ThreadKey};
use crate::shm::call_slot::{Call, RequestHeader, Shape, Source};
use crate::trace_events::CodeAndFlags;

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

impl ActiveThread<'_> {
    /// Calls through a call slot. Returns false if the handle has none or its gate is shut; the call then
    /// goes through the broker.
    pub(super) fn call_in_slot(&mut self, data: &TransactionData, payload: &(impl Source + ?Sized)) -> bool {
        let (process, slot, handle) = (self.process, self.slot, data.target as u32);
        let Ok(shape) = payload.shape() else { return false };
        let lineage = self.thread().lineage();
        let mine = inherit::sending(self.who, self.own().before);
        let key = self.thread().key;
        let state = &mut *self.state;
        let Some(bound) = state.core.channels.handle(handle) else { return false };
        let channel = &bound.channel;
        let Some(call_slot) =
            channel.unused_slot().filter(|_| channel.is_open() && channel.has_room(shape.len()))
        else {
            return false;
        };
        let to = lineage.as_deref().and_then(|lineage| lineage.find(channel.peer));
        let trace_number = process.traced().map_or(0, |trace| {
            let what = CodeAndFlags { flags: data.flags, code: data.code };
            trace.slot_call((bound.node, channel.trace_name(to), what), shape)
        });
        let header = RequestHeader {
            binding: bound.number,
            code: data.code,
            flags: data.flags,
            shape: Shape::default(),
            thread: key,
            cpu: sys::sched::current_cpu(),
            sched: mine,
            mark: trace_number,
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
            flags: data.flags,
            by_broker: false,
            trace_number,
        };
        let acknowledgement = self.state.core.begin_slot_call(slot, ticket);
        self.show_depth();
        if self.thread().awaited_slot().is_some_and(|ticket| announce(&ticket.channel, call)) {
            self.state.core.undo_slot_call(slot, acknowledgement);
            process.trace_undone(trace_number, shape);
            return false;
        }
        if let Some(ticket) = self.state.core.thread(slot).awaited_slot()
            && let Some(bell) = thread_to_wake(&ticket.channel, to, mine)
        {
            let channel = ticket.channel.clone();
            self.wake_later(Wake { channel, slot: bell, call: Some((mine, node_flags)) });
        }
        true
    }
}
