//! Writes trace events, if the process traces. Each event is written by the same thread as in the kernel
//! driver, and before another thread can react to it.
//! Not here: the form of an event, and whether any are wanted (`embedded::trace_events`).
//! Facts: contract TP-02 to TP-09, TP-15; `binder_transaction`, `binder_thread_read`, Linux 7.2.
//!
//! The caller numbers a call in a call slot. The number travels with the call; the reply has the next number.
//! A caller that does not trace sends no number, and the callee omits the events that would need it.
//! Transactions through the broker have the broker's number, which the sender requests first.
//!
//! Events are written under the process's lock where the call holds it: releasing the lock for them would
//! change the traced behaviour.

use std::io;

use sys::errno::EIO;

use super::Process;
use super::core::BrokerReply;
use super::core::slot_call::{SlotCall, SlotTicket};
use super::core::thread::Answer;
use super::identity::Identity;
use crate::priority::is_realtime;
use crate::rpc::protocol::{Delivery, NUMBERS, Request, Sched};
use crate::shm::call_slot::Shape;
use crate::trace_events::{BufferSizes, CodeAndFlags, Fate, Sent, TaskId, TraceWriter};
use driver::connection::Exchange;

fn errno_of<T>(result: &io::Result<T>) -> i32 {
    result.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(EIO))
}

fn sized(number: u32, shape: Shape) -> BufferSizes {
    let layout = shape.layout();
    let extra = layout.end - layout.scattered;
    BufferSizes { number, data: layout.data_size, offsets: layout.offsets_size, extra }
}

/// Events of ioctls.
impl Process {
    /// Runs an ioctl other than `BINDER_WRITE_READ` between its events.
    pub(crate) fn ioctl<T>(&self, request: u32, act: impl FnOnce(&Self) -> io::Result<T>) -> io::Result<T> {
        if let Some(marks) = self.traced() {
            marks.ioctl(request);
        }
        let result = act(self);
        if let Some(marks) = self.traced() {
            marks.done("ioctl", errno_of(&result));
        }
        result
    }
}

impl TraceWriter {
    /// Traces the end of the write part.
    pub(super) fn written(&self, exchange: &Exchange<'_>, errno: Option<i32>) {
        if !exchange.write.is_empty() {
            self.done("write", errno.unwrap_or(0));
        }
    }

    /// Traces the end of the ioctl, and of its read part if it had one.
    pub(super) fn ended(&self, read: bool, result: &io::Result<()>) {
        if read {
            self.done("read", errno_of(result));
        }
        self.done("ioctl", errno_of(result));
    }
}

/// Events of transactions in call slots.
impl Process {
    /// Requests numbers for later calls before the last ones are used up. No call waits for them: a call in a
    /// call slot without a number has no events.
    pub(super) fn request_trace_numbers(&self, marks: &TraceWriter) {
        if self.settings.call_slots && marks.wants_numbers() {
            self.send(&Request::Numbers { count: NUMBERS });
        }
    }

    /// Stores numbers from the broker. The broker answers in order: the first numbers arrive before the
    /// answer to a handle's first call, and only its next call uses a call slot.
    pub(super) fn take_trace_numbers(&self, answer: &Answer) {
        let [first, count, ..] = answer.words;
        if let Some(marks) = self.trace.as_ref().filter(|_| answer.errno == 0 && count > 0) {
            marks.give_numbers(first as u32, count as u32);
        }
    }

    /// Traces that a published call is taken back.
    pub(super) fn trace_undone(&self, number: u32, shape: Shape) {
        if number != 0
            && let Some(marks) = self.traced()
        {
            marks.buffer(Fate::Failed, sized(number, shape));
        }
    }
}

impl TraceWriter {
    /// Traces a call that is about to be published.
    pub(super) fn slot_call(&self, (node, to, what): (u32, TaskId, CodeAndFlags), shape: Shape) -> u32 {
        let number = self.take_pair();
        if number != 0 {
            self.transaction(&Sent { number, node, to, reply: false, what });
            self.buffer(Fate::Taken, sized(number, shape));
        }
        number
    }

    /// Traces a reply that is about to be published, which ends the call.
    pub(super) fn slot_reply(&self, who: Identity, call: &SlotCall, what: CodeAndFlags, shape: Shape) {
        let header = &call.request.header;
        if header.mark == 0 {
            return;
        }
        let number = header.mark.wrapping_add(1);
        let to = call.channel.trace_name(Some(header.thread));
        self.transaction(&Sent { number, node: 0, to, reply: true, what });
        self.buffer(Fate::Taken, sized(number, shape));
        self.freed(header.mark, who.named(), CodeAndFlags { flags: header.flags, code: header.code });
    }

    /// Traces a delivered call with its buffer at `address`.
    pub(super) fn slot_call_delivered(&self, call: &SlotCall, address: u64) {
        let header = &call.request.header;
        if header.mark != 0 {
            self.received(header.mark);
            self.keep(address, sized(header.mark, header.shape));
        }
    }

    /// Traces a delivered reply; the remaining events follow its return.
    pub(super) fn slot_reply_delivered(&self, ticket: &SlotTicket, shape: Shape, address: u64) {
        if ticket.trace_number != 0 {
            let number = ticket.trace_number + 1;
            self.received(number);
            self.keep(address, sized(number, shape));
        }
    }

    /// Traces the end of a reply, after its return.
    pub(super) fn slot_reply_over(&self, who: Identity, ticket: &SlotTicket, what: CodeAndFlags) {
        if ticket.trace_number != 0 {
            self.freed(ticket.trace_number + 1, who.named(), what);
        }
    }
}

/// Events of transactions through the broker.
impl TraceWriter {
    /// Traces a delivered call or oneway call with its buffer at `address`.
    pub(super) fn call_delivered(&self, delivery: &Delivery, address: u64) {
        let Delivery { transaction, data_size, offsets_size, extra_size, .. } = *delivery;
        self.received(transaction);
        let buffer =
            BufferSizes { number: transaction, data: data_size, offsets: offsets_size, extra: extra_size };
        self.keep(address, buffer);
    }

    /// Traces a delivered reply.
    pub(super) fn reply_delivered(&self, reply: &BrokerReply, address: u64) {
        let BrokerReply { number, data_size, offsets_size, extra_size, .. } = *reply;
        self.received(number);
        self.keep(address, BufferSizes { number, data: data_size, offsets: offsets_size, extra: extra_size });
    }

    /// Traces a boost by the broker, which raised this thread before waking it and writes no events.
    pub(super) fn raised(&self, who: Identity, before: Option<Sched>) {
        let Some(details) = self.of_details() else { return };
        let now = who.scheduling_now();
        if let Some(before) = before.filter(|_| is_realtime(now.policy)) {
            details.priority(who.named(), before, now, now);
        }
    }
}
