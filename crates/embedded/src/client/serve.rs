//! A call from its callee's side: delivered from its call slot; and the reply, through the call slot or through the broker.
//! Not here: taking calls in (`inbox`), calls from the broker (`deliver`), the call slot's memory (`shm::call_slot`), the
//! transaction for the broker (`send`).
//! Facts: contract TX-01 to TX-03, TX-12, TX-16 to TX-18, SCH-03, REF-13.

use std::io;

use abi::codes::br;
use abi::layout::TransactionData;
use abi::{BufferAddress, stream};
use zerocopy::IntoBytes;

use sys::errno::{EFAULT, ENOSPC};

use super::channel::NOBODY;
use super::core::slot_call::BoxedCall;
use super::core::thread::{Frame, Pending, Served};
use super::delivered::GivenBack;
use super::inherit::{self, Asked};
use super::read::{Next, Reading};
use super::receive::{Incoming, ReceiveError};
use super::send::Sending;
use super::wake::Wake;
use crate::payload::encode::SlotPayload;
use crate::priority::Restore;
use crate::rpc::protocol::{ThreadKey, Transact, TransactKind};
use crate::settings::Inherit;
use crate::shm::call_slot::{ReplyHeader, Shape, Source as _};
use crate::trace_events::CodeAndFlags;

impl Reading<'_, '_, '_> {
    /// Delivers a call: the thread serves it, and its return is appended.
    pub(super) fn deliver_slot_call(&mut self, mut call: BoxedCall) -> Next {
        let (process, node) = (self.thread.process, call.node);
        let header = &call.request.header;
        let received = Incoming::Request(&call).receive(self.thread);
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
        call.restore = self.inherit(Asked { caller: header.sched, node_flags: node.flags, oneway: false });
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

impl<'p: 'c, 'c> Sending<'_, 'p, 'c> {
    /// Executes `BC_REPLY(_SG)`.
    pub(super) fn reply(&mut self) -> io::Result<()> {
        let (process, slot) = (self.thread.process, self.thread.slot);
        let Some(served) = self.thread.thread().begin_reply() else {
            self.fail_locally();
            return Ok(());
        };
        self.thread.show_depth();
        let restore = served.restore();
        // Android's kernels keep the caller's priority until the caller is woken: otherwise a thread of
        // medium priority could run between reply and caller. Mainline restores before the caller can run
        // again (contract SCH-03).
        let restores_late = process.settings.inherit == Inherit::Rt;
        if !restores_late {
            inherit::restore(self.thread.who, restore, process.trace.as_ref());
        }
        let sent = match served {
            Served::CallSlot(call) => match self
                .encode()
                .filter(|encoded| encoded.shape().is_ok_and(|shape| call.channel.has_room(shape.len())))
            {
                Some(encoded) => {
                    self.reply_in_slot(call, &encoded);
                    self.thread.state.core.release_early(slot);
                    Ok(())
                }
                None => self.reply_to_slot_through_broker(call),
            },
            Served::Broker(call) => {
                process.show_serving(slot, self.thread.state.core.thread(slot));
                let kind = TransactKind::Reply { transaction: call.transaction };
                self.reply_through_broker(kind, (call.transaction, call.what))
            }
        };
        if restores_late {
            self.restore_late(restore);
        }
        sent
    }

    /// Sends a reply through the broker that its call slot cannot take.
    fn reply_to_slot_through_broker(&mut self, call: BoxedCall) -> io::Result<()> {
        call.channel.leave_to_broker(&call.request);
        let (kind, header) = (call.reply_through_broker(), &call.request.header);
        let answers = (header.mark, CodeAndFlags { flags: header.flags, code: header.code });
        self.thread.state.core.channels.keep_call(call);
        self.reply_through_broker(kind, answers)
    }

    /// Sends a reply through the broker. `answers`: the call's number and header, for traces.
    fn reply_through_broker(&mut self, kind: TransactKind, answers: (u32, CodeAndFlags)) -> io::Result<()> {
        self.thread.given_back = self.take_buffer_behind();
        let frees = self.thread.given_back.as_ref().map(|given_back| given_back.buffer.offset);
        let transact = Transact { kind, frees, ..self.blank() };
        let sent = self.send(Pending::Reply, transact, Some(answers));
        if sent.is_err() {
            self.put_back_buffer();
        }
        sent
    }

    /// Takes out of the map the buffer that the command after a reply gives back, if the broker filled it.
    fn take_buffer_behind(&mut self) -> Option<Box<GivenBack>> {
        let BufferAddress(address) = stream::free_buffer(self.behind)?;
        let buffer = self.thread.state.buffers.remove(address)?;
        let traced = self.thread.process.traced().and_then(|trace| trace.forget(address));
        Some(Box::new(GivenBack { address, buffer, traced }))
    }

    /// Puts that buffer back after a failed reply: the broker did not take it, and its command is still to
    /// come.
    pub(super) fn put_back_buffer(&mut self) {
        let Some(given_back) = self.thread.given_back.take() else { return };
        let GivenBack { address, buffer, traced } = *given_back;
        self.thread.state.buffers.insert(address, buffer);
        if let (Some(trace), Some(traced)) = (self.thread.process.traced(), traced) {
            trace.keep(address, traced);
        }
    }

    /// Wakes the caller, then restores the thread's priority.
    fn restore_late(&mut self, restore: Restore) {
        if restore.is_some() {
            let who = self.thread.who;
            self.thread.own().before =
                self.thread.unlocked(|process| inherit::restore(who, restore, process.trace.as_ref()));
        }
    }

    /// Replies through the call slot of the call.
    fn reply_in_slot(&mut self, call: BoxedCall, payload: &SlotPayload<'_>) {
        let (process, slot) = (self.thread.process, self.thread.slot);
        // A shape that no call slot holds fails below.
        let shape = payload.shape().unwrap_or_default();
        let acknowledgement = self.thread.state.core.begin_slot_reply(slot);
        if let Some(trace) = process.traced() {
            let what = CodeAndFlags { flags: self.data.flags, code: self.data.code };
            trace.slot_reply(self.thread.who, &call, what, shape);
        }
        let (channel, taken) = (&call.channel, call.request.taken());
        let cpu = sys::sched::current_cpu();
        let header =
            ReplyHeader { code: self.data.code, flags: self.data.flags, shape: Shape::default(), cpu };
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
            self.thread.state.core.refuse_slot_reply(slot, acknowledgement);
        }
        if wakes {
            self.thread.wake_later(Wake { channel: channel.clone(), slot: caller, call: None });
        }
        self.thread.state.core.channels.keep_call(call);
    }
}
