//! Serves a call through a call slot (callee's side): takes it, delivers it, replies.
//! Not here: the call slot's memory (`shm::call_slot`), the choice of node and thread (`core::slot_calls`).
//! Facts: contract TX-02, TX-03, TX-17, TX-18, REF-13.

use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use sys::errno::{EFAULT, ENOSPC};

use super::Process;
use super::channel::NOBODY;
use super::core::slot_call::BoxedCall;
use super::core::thread::{Frame, Served};
use super::read::{Next, Reading};
use super::receive::{ReceiveError, SlotPayload};

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
