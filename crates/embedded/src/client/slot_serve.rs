//! Serves a call through a call slot (callee's side): takes it, delivers it, replies.
//! Not here: the call slot's memory (`shm::call_slot`), the choice of node and thread (`core::slot_calls`).
//! Facts: contract TX-02, TX-03, TX-17, TX-18, REF-13.

use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::{EFAULT, ENOSPC};

use super::Process;
use super::active_thread::ActiveThread;
use super::channel::NOBODY;
use super::core::slot_call::BoxedCall;
use super::core::thread::{Frame, Served};
use super::read::{Next, Reading};
use super::slot_payload::{ReceiveError, SlotPayload};
use super::wake::Wake;
use crate::rpc::protocol::ThreadKey;
use crate::shm::call_slot::{ReplyHeader, Shape, Source};
use crate::trace_events::CodeAndFlags;

impl Process {
    /// CPU of the last caller through a call slot.
    pub(super) fn last_caller_cpu(&self) -> Option<u32> {
        self.caller_cpu.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl Reading<'_, '_, '_> {
    /// Delivers a call: the thread serves it, and its return is appended.
    pub(super) fn deliver_slot_call(&mut self, mut call: BoxedCall) -> Next {
        let (process, node) = (self.thread.process, call.node);
        let header = &call.request.header;
        let received = SlotPayload::Request(&call).receive(self.thread);
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
                self.thread.state.core.unpin(node.pin);
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
        call.channel.call_slots.note_server(call.request.taken(), self.thread.slot);
        self.thread.thread().stack.push(Frame::Serving(Served::CallSlot(call)));
        self.put(br::TRANSACTION, data.as_bytes());
        Next::Stop
    }
}

impl ActiveThread<'_> {
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
