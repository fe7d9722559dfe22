//! Serves a call through a call slot (callee's side): takes it, delivers it, replies.
//! Not here: the call slot's memory (`shm::call_slot`), the choice of node and thread (`core::slot_calls`).
//! Facts: contract TX-02, TX-03, TX-17, TX-18, REF-13.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::{EFAULT, ENOSPC};

use super::Process;
use super::active_thread::ActiveThread;
use super::channel::{Channel, NOBODY};
use super::core::slot_call::BoxedCall;
use super::core::thread::{Frame, Served};
use super::read::{Next, Output};
use super::slot_payload::{ReceiveError, SlotPayload};
use super::wake::Wake;
use crate::priority::is_realtime;
use crate::rpc::protocol::{ProcId, ThreadKey};
use crate::settings::Inherit;
use crate::shm::Corrupt;
use crate::shm::call_slot::{ReplyHeader, Shape, Source};
use crate::trace_events::CodeAndFlags;

impl Process {
    /// CPU of the last caller through a call slot.
    pub(super) fn last_caller_cpu(&self) -> Option<u32> {
        self.caller_cpu.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// Taking calls.
impl ActiveThread<'_> {
    /// Takes in the calls of every marked channel.
    pub(super) fn take_in_slot_calls(&mut self) {
        if !self.state.core.channels.is_settled() {
            self.look_again();
        }
        // Call slots do not record the order of calls. Where policies are inherited, a real-time call goes
        // first: the thread that takes calls in was most likely boosted for it, and would lose the boost by
        // serving another.
        let rt_first = self.process.settings.inherit == Inherit::Rt;
        let mut postponed = Vec::new();
        for bit in self.process.bells.take_ready() {
            let Some(channel) = self.state.core.channels.inbound(bit).cloned() else { continue };
            for call_slot in channel.call_slots.called() {
                let Some(call) = self.take_call(&channel, call_slot) else { continue };
                match rt_first && !is_realtime(call.request.header.sched.policy) {
                    true => postponed.push(call),
                    false => self.state.core.accept_slot_call(call),
                }
            }
        }
        postponed.into_iter().for_each(|call| self.state.core.accept_slot_call(call));
    }

    /// Takes in the calls of one peer.
    #[cold]
    pub(super) fn take_in_calls_of(&mut self, peer: ProcId) {
        for channel in self.state.core.channels.inbound_of(peer) {
            for call_slot in channel.call_slots.called() {
                if let Some(call) = self.take_call(&channel, call_slot) {
                    self.state.core.accept_slot_call(call);
                }
            }
        }
    }

    /// Retries calls that could not be finished before.
    #[cold]
    fn look_again(&mut self) {
        let core = &mut self.state.core;
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
        let mut call = self.state.core.channels.spare_call(channel);
        let taken = match channel.call_slots.take_into(call_slot, &mut call.request) {
            // A second call at once: no honest caller makes one.
            Ok(true) if !channel.begin_serving(call_slot) => Err(Corrupt::SlotBusy),
            taken => taken,
        };
        match taken {
            Ok(true) => {
                let cpu = call.request.header.cpu.saturating_add(1);
                self.process.caller_cpu.store(cpu, Ordering::Relaxed);
                return Some(call);
            }
            Ok(false) => {}
            Err(corrupt) => channel.close_as(corrupt),
        }
        self.state.core.channels.keep_call(call);
        None
    }
}

/// Delivering calls and replying.
impl ActiveThread<'_> {
    /// Delivers a call: the thread serves it, and its return is appended.
    pub(super) fn deliver_slot_call(&mut self, mut call: BoxedCall, out: &mut Output<'_>) -> Next {
        let (process, node) = (self.process, call.node);
        let payload = SlotPayload::Request(&call.request);
        let header = &call.request.header;
        let received = self.receive(&call.channel, payload, header.flags, Some(node.pin));
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                let errno = match error {
                    ReceiveError::NoArea => NOBODY,
                    ReceiveError::NoRoom => ENOSPC,
                    // The cause may only be a caller that was stopped for long.
                    ReceiveError::Corrupt(_) => EFAULT,
                };
                call.channel.fail(&call.request, errno);
                if let ReceiveError::Corrupt(corrupt) = error {
                    call.channel.close_as(corrupt);
                }
                self.state.core.unpin(node.pin);
                return Next::More;
            }
        };
        call.restore = self.inherit(header.sched, node.flags, false);
        let data = TransactionData {
            target: node.ptr,
            cookie: node.cookie,
            code: header.code,
            flags: header.flags,
            sender_pid: call.channel.peer_pid as i32,
            sender_euid: call.channel.peer_euid,
            ..received
        };
        if let Some(trace) = process.traced() {
            trace.slot_call_delivered(&call, data.buffer);
        }
        call.channel.call_slots.note_server(call.request.taken(), self.slot);
        self.thread().stack.push(Frame::Serving(Served::CallSlot(call)));
        self.put(out, br::TRANSACTION, data.as_bytes());
        Next::Stop
    }

    /// Replies through the call slot of the call.
    pub(super) fn reply_in_slot(
        &mut self,
        call: BoxedCall,
        data: &TransactionData,
        payload: &(impl Source + ?Sized),
    ) {
        let (process, slot) = (self.process, self.slot);
        // A shape that no call slot holds fails below.
        let shape = payload.shape().unwrap_or_default();
        let acknowledgement = self.state.core.begin_slot_reply(slot);
        if let Some(trace) = process.traced() {
            let what = CodeAndFlags { flags: data.flags, code: data.code };
            trace.slot_reply(self.who, &call, what, shape);
        }
        let (channel, taken) = (&call.channel, call.request.taken());
        let cpu = sys::sched::current_cpu();
        let header = ReplyHeader { code: data.code, flags: data.flags, shape: Shape::default(), cpu };
        channel.end_serving(taken.call_slot);
        let ThreadKey { slot: caller, generation } = call.request.header.thread;
        let bell = channel.bells.slot(caller);
        let is_there = bell.as_ref().is_some_and(|bell| bell.belongs_to(generation));
        let sent = is_there && channel.call_slots.reply(taken, &header, payload).is_ok();
        if !sent {
            channel.call_slots.fail(taken, EFAULT);
        }
        let wakes = bell.is_some_and(|bell| bell.ring());
        if !sent || channel.is_closed() {
            self.state.core.refuse_slot_reply(slot, acknowledgement);
        }
        if wakes {
            self.wake_later(Wake { channel: channel.clone(), slot: caller, call: None });
        }
        self.state.core.channels.keep_call(call);
    }
}
