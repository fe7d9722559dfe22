//! Room: what the threads of this process write into a trace, where that was asked for: each event in the
//! thread in which the kernel's driver has it, and before anybody else can act upon it.
//! Not here: what an event looks like, and whether any are wanted (`embedded::marks`).
//! Facts: contract TP-02 to TP-09, TP-15; `binder_transaction`, `binder_thread_read`, Linux 7.2.
//!
//! A call in a lane has a number of its caller's, which travels with it, and its reply has the next one. If
//! the caller does not trace there is none, and the callee leaves out what would name it. What goes through
//! the broker has the broker's number, for which its sender asks first.
//!
//! Marks are written under the process's lock where the call holds it: letting go of it for them would make
//! of a traced process another one. Nothing here is worth a look where nobody traces, so all of it is cold.

use std::io;

use super::state::{Answer, LaneCall, LaneTicket, Pending, Reply, State};
use super::{Process, sched, tid};
use crate::connection::Exchange;
use crate::embedded::channel::lane::Shape;
use crate::embedded::marks::{Fate, Marks, Sent, Sized, What, Whom};
use crate::embedded::priority::is_realtime;
use crate::embedded::protocol::{Delivery, Request, Sched, Transact, TransactKind};

const EIO: i32 = 5;

/// The calling thread.
pub(super) fn me() -> Whom {
    Whom { pid: std::process::id(), tid: tid() as u32 }
}

fn errno_of<T>(result: &io::Result<T>) -> i32 {
    result.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(EIO))
}

fn sized(number: u32, shape: Shape) -> Sized {
    let layout = shape.layout();
    let extra = layout.end - layout.scattered;
    Sized { number, data: layout.data_size, offsets: layout.offsets_size, extra }
}

/// Around an ioctl.
impl Process {
    /// An ioctl beside `BINDER_WRITE_READ`.
    pub(in crate::embedded) fn ioctl<T>(
        &self,
        request: u32,
        act: impl FnOnce(&Self) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(marks) = self.traced() {
            marks.ioctl(request);
        }
        let result = act(self);
        if let Some(marks) = self.traced() {
            marks.ioctl_done(errno_of(&result));
        }
        result
    }

    /// The write part is over.
    #[cold]
    pub(super) fn mark_written(&self, marks: &Marks, exchange: &Exchange<'_>, errno: Option<i32>) {
        if !exchange.write.is_empty() {
            marks.write_done(errno.unwrap_or(0));
        }
    }

    /// The ioctl is over, with its read part if it came to that.
    #[cold]
    pub(super) fn mark_end(&self, marks: &Marks, read: bool, result: &io::Result<()>) {
        if read {
            marks.read_done(errno_of(result));
        }
        marks.ioctl_done(errno_of(result));
    }

    /// A thread is about to wait, or to look.
    #[cold]
    pub(super) fn mark_wait(&self, marks: &Marks, st: &mut State, slot: u32, proc: bool) {
        let thread = st.thread(slot);
        marks.wait_for_work(proc, !thread.stack.is_empty(), !thread.todo.is_empty());
    }
}

/// Transactions in lanes.
impl Process {
    /// Sees to it that there are numbers for calls to come. Nobody waits for them: the broker may take its time as long
    /// as those last that there are, some ten thousands. Without any a call in a lane has no marks.
    #[cold]
    pub(super) fn stock_up(&self, marks: &Marks) {
        if self.settings.lanes && marks.wants_numbers() {
            self.post(&Request::Numbers {});
        }
    }

    /// They came. The broker answers in order, so the first ones are here before a handle's first call is answered, and
    /// only the next one is in a lane.
    pub(super) fn stocked(&self, answer: &Answer) {
        let [first, count, ..] = answer.words;
        if let Some(marks) = self.marks.as_ref().filter(|_| answer.errno == 0 && count > 0) {
            marks.give_numbers(first as u32, count as u32);
        }
    }

    /// A call is about to be published.
    #[cold]
    pub(super) fn mark_lane_call(
        &self,
        marks: &Marks,
        (node, to, what): (u32, Whom, What),
        shape: Shape,
    ) -> u32 {
        let number = marks.take_pair();
        if number != 0 {
            marks.transaction(&Sent { number, node, to, reply: false, what });
            marks.buffer(Fate::Taken, sized(number, shape));
        }
        number
    }

    /// A call that was published is taken back.
    #[cold]
    pub(super) fn mark_undone(&self, marks: &Marks, number: u32, shape: Shape) {
        if number != 0 {
            marks.buffer(Fate::Failed, sized(number, shape));
        }
    }

    /// A reply is about to be published, and the call over with it.
    #[cold]
    pub(super) fn mark_lane_reply(&self, marks: &Marks, call: &LaneCall, what: What, shape: Shape) {
        let header = &call.request.header;
        if header.mark == 0 {
            return;
        }
        let number = header.mark.wrapping_add(1);
        let to = call.channel.whom(Some(header.thread));
        marks.transaction(&Sent { number, node: 0, to, reply: true, what });
        marks.buffer(Fate::Taken, sized(number, shape));
        marks.freed(header.mark, me(), What { flags: header.flags, code: header.code });
    }

    /// A call is delivered, its buffer at this place.
    #[cold]
    pub(super) fn mark_lane_call_delivered(&self, marks: &Marks, call: &LaneCall, offset: u64) {
        let header = &call.request.header;
        if header.mark != 0 {
            marks.received(header.mark);
            marks.keep(self.area.base() + offset, sized(header.mark, header.shape));
        }
    }

    /// So is a reply; what is left to write follows its return.
    #[cold]
    pub(super) fn mark_lane_reply_delivered(
        &self,
        marks: &Marks,
        ticket: &LaneTicket,
        shape: Shape,
        offset: u64,
    ) {
        if ticket.mark != 0 {
            let number = ticket.mark + 1;
            marks.received(number);
            marks.keep(self.area.base() + offset, sized(number, shape));
        }
    }

    /// After the return that told of a reply.
    #[cold]
    pub(super) fn mark_lane_reply_over(&self, marks: &Marks, ticket: &LaneTicket, what: What) {
        if ticket.mark != 0 {
            marks.freed(ticket.mark + 1, me(), what);
        }
    }
}

/// Transactions through the broker.
impl Process {
    /// A transaction is about to go to the broker, which says first what will become of it. Its buffer, if it
    /// will have one.
    #[cold]
    pub(super) fn mark_sending(
        &self,
        marks: &Marks,
        slot: u32,
        transact: &Transact,
        answers: Option<(u32, What)>,
    ) -> io::Result<Option<Sized>> {
        let request = Request::Foretell { transact: *transact };
        let (st, answer) = self.ask(self.lock(), slot, Pending::Foretold, &request, &[])?;
        drop(st);
        if answer.errno != 0 {
            return Ok(None);
        }
        let [number, node, to, extra] = answer.words;
        let number = number as u32;
        let to = Whom { pid: to as u32, tid: (to >> 32) as u32 };
        let what = What { flags: transact.flags, code: transact.code };
        let reply = !matches!(transact.kind, TransactKind::Call { .. });
        marks.transaction(&Sent { number, node: node as u32, to, reply, what });
        let buffer = Sized { number, data: transact.data_size, offsets: transact.offsets_size, extra };
        if !answer.sender_stops {
            marks.buffer(Fate::Taken, buffer);
        }
        if let Some((number, what)) = answers.filter(|(number, _)| *number != 0) {
            marks.freed(number, me(), what);
        }
        Ok((!answer.sender_stops).then_some(buffer))
    }

    /// A call or oneway call is delivered, its buffer at this address.
    #[cold]
    pub(super) fn mark_delivered(&self, marks: &Marks, delivery: &Delivery, address: u64) {
        let Delivery { transaction, data_size, offsets_size, extra_size, .. } = *delivery;
        marks.received(transaction);
        let buffer = Sized { number: transaction, data: data_size, offsets: offsets_size, extra: extra_size };
        marks.keep(address, buffer);
    }

    /// So is a reply.
    #[cold]
    pub(super) fn mark_reply_delivered(&self, marks: &Marks, reply: &Reply, address: u64) {
        let Reply { number, data_size, offsets_size, extra_size, .. } = *reply;
        marks.received(number);
        marks.keep(address, Sized { number, data: data_size, offsets: offsets_size, extra: extra_size });
    }

    /// This thread was raised by the broker, which writes no marks, before it was woken.
    #[cold]
    pub(super) fn mark_raised(&self, marks: &Marks, before: Option<Sched>) {
        let now = sched::seen();
        if let Some(before) = before.filter(|_| is_realtime(now.policy)) {
            marks.priority(me(), before, now, now);
        }
    }
}
