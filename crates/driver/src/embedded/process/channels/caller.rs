//! Room: a call through a lane, from the side that waits for its reply.
//! Not here: the lane itself (`channel::lane`), who may use it (`super`).
//! Facts: contract TX-01, TX-06, TX-10, TX-17.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::Payload;
use abi::codes::br;
use abi::layout::{ExtendedError, TransactionData};
use sys::sealed_memory::SealedMemory;
use zerocopy::IntoBytes;

use super::super::gather::{read_data, vouched_data};
use super::super::read::{Output, Step};
use super::super::state::{Calling, Frame, LaneReply, LaneTicket, NO_ERROR, State, Todo};
use super::super::{Guard, Process, sched};
use super::{Channel, ENOSPC, NOBODY};
use crate::embedded::channel::doorbell::Bell;
use crate::embedded::channel::lane::{self, RequestHeader};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::priority;
use crate::embedded::protocol::{ProcId, Sched};

const EIO: i32 = 5;

impl Process {
    /// Calls through a lane, if the handle has one; gives the lock back if it has none or the lane
    /// is shut, and the broker shall see to it.
    pub(in super::super) fn call_in_lane<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        payload: Payload<'_>,
    ) -> Result<Guard<'p>, Guard<'p>> {
        let handle = data.target as u32;
        let Some(bound) = st.channels.handles.get(&handle) else { return Err(st) };
        let (channel, binding, node_flags) = (bound.channel.clone(), bound.number, bound.flags);
        if data.data_size > lane::LARGEST as u64 || channel.lanes.gate() != 0 || channel.is_closed() {
            return Err(st);
        }
        let Some(lane) = channel.free_lane() else { return Err(st) };
        let mut copy = Vec::new();
        let bytes = match vouched_data(data, payload) {
            Some(bytes) => bytes,
            None => match read_data(data, &mut copy) {
                Ok(()) => &copy[..],
                Err(_) => return Err(st),
            },
        };
        let thread = st.thread(slot);
        let lineage = thread.lineage();
        let to = lineage.as_deref().and_then(|lineage| lineage.find(channel.peer));
        let mine = sched::own();
        let header = RequestHeader {
            binding,
            code: data.code,
            flags: data.flags,
            data_size: bytes.len() as u32,
            thread: thread.key,
            cpu: sys::sched::current_cpu(),
            sched: mine,
            lineage,
        };
        let call = match channel.lanes.publish(lane, &header, bytes) {
            Ok(call) => call,
            Err(corrupt) => {
                channel.close_as(corrupt);
                return Err(st);
            }
        };
        let ticket =
            LaneTicket { channel: channel.clone(), call, handle, flags: data.flags, by_broker: false };
        thread.extended_error = NO_ERROR;
        thread.stack.push(Frame::Calling(Calling::Lane(ticket.clone())));
        let acknowledgement = thread.todo.len();
        thread.push_deferred(Todo::Word(br::TRANSACTION_COMPLETE));
        self.show_depth(st.thread(slot));
        channel.mark(lane, true);
        if let Some(bound) = st.channels.handles.get_mut(&handle) {
            bound.calls += 1;
        }
        let quietly = to.is_none() && channel.is_watched(lane) && self.will_spin(&mut st, slot);
        drop(st);
        let gate = match quietly {
            true => channel.lanes.gate_after_publishing(),
            false => {
                // A callee that sleeps is woken once all is there: on this CPU it could only wait for
                // it. One that spins copies along.
                channel.lanes.pour_request(call, bytes);
                channel.bells.post(channel.bit);
                channel.lanes.gate()
            }
        };
        if gate != 0 && channel.lanes.back_out(call) {
            let mut st = self.lock();
            // If the peer died meanwhile, the call has its end already.
            return if self.undo(&mut st, slot, &ticket, acknowledgement) { Err(st) } else { Ok(st) };
        }
        if quietly {
            self.locals[slot as usize].untold.store(true, Ordering::Relaxed);
            channel.lanes.pour_request(call, bytes);
        } else {
            let bell = match to {
                Some(key) => channel.bells.slot(key.slot).filter(|bell| bell.needs_wake()),
                None => channel.bells.listener_to_wake(),
            };
            wake(&channel, bell, mine, node_flags);
        }
        Ok(self.lock())
    }

    /// Ends a call that nobody will take: its channel was closed, and not because the peer is gone, which
    /// would have been told by now.
    pub(in super::super) fn give_up_lane(&self, st: &mut State, slot: u32) -> bool {
        let thread = st.thread(slot);
        let Some(ticket) = thread.awaited_lane().cloned() else { return false };
        let lanes = &ticket.channel.lanes;
        if lanes.gate() & lane::CLOSED == 0 || !lanes.back_out(ticket.call) {
            return false;
        }
        thread.extended_error = ExtendedError { id: 0, command: br::FAILED_REPLY, param: -EIO };
        thread.stack.pop();
        thread.push(Todo::Word(br::FAILED_REPLY));
        self.show_depth(st.thread(slot));
        self.leave_lane(st, &ticket);
        true
    }

    /// Whether the thread is likely to spin for its reply, so that it can tell the callee later.
    fn will_spin(&self, st: &mut Guard<'_>, slot: u32) -> bool {
        !self.nonblocking.load(Ordering::Relaxed)
            && st.thread(slot).waiter.as_ref().is_some_and(Waiter::will_spin)
    }

    /// Tells the callee of a call that it has not found by itself, once.
    pub(in super::super) fn tell(&self, slot: u32, ticket: Option<&LaneTicket>) {
        let untold = &self.locals[slot as usize].untold;
        let Some(LaneTicket { channel, call, .. }) = ticket.filter(|_| untold.load(Ordering::Relaxed)) else {
            return;
        };
        untold.store(false, Ordering::Relaxed);
        if channel.lanes.is_waiting(*call) {
            channel.note_watched(call.lane, false);
            channel.bells.post(channel.bit);
            // A thread that spins needs no boost: it runs at no real-time priority, nor does this one.
            if let Some(bell) = channel.bells.listener_to_wake() {
                bell.wake();
            }
        }
    }

    /// Takes back a call that nobody took; false if it is over. `acknowledgement`: where its own is in
    /// the thread's queue, which only grows at its end meanwhile.
    fn undo(&self, st: &mut Guard<'_>, slot: u32, ticket: &LaneTicket, acknowledgement: usize) -> bool {
        let thread = st.thread(slot);
        let mine = |frame: &Frame| match frame {
            Frame::Calling(Calling::Lane(other)) => {
                other.call == ticket.call && other.channel.id == ticket.channel.id
            }
            _ => false,
        };
        if !thread.stack.last().is_some_and(mine) {
            return false;
        }
        thread.stack.pop();
        thread.todo.remove(acknowledgement);
        self.show_depth(st.thread(slot));
        self.leave_lane(st, ticket);
        true
    }

    /// Takes in the replies of a callee that answered before it went.
    pub(super) fn collect_last_replies(&self, st: &mut State, me: u32, peer: ProcId) {
        let answered = st.threads.iter().flatten().filter(|thread| {
            let ticket = thread.awaited_lane();
            ticket.is_some_and(|ticket| ticket.channel.peer == peer && ticket.has_outcome())
        });
        let answered: Vec<u32> = answered.map(|thread| thread.key.slot).collect();
        for slot in answered {
            self.collect_lane_reply(st, slot);
            if slot != me {
                self.ring(slot);
            }
        }
    }

    /// Queues the reply that came in this thread's lane, if one did.
    pub(in super::super) fn collect_lane_reply(&self, st: &mut State, slot: u32) {
        let thread = st.thread(slot);
        if thread.is_sending() {
            return;
        }
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.stack.last_mut() else { return };
        if !ticket.has_outcome() {
            return;
        }
        self.locals[slot as usize].untold.store(false, Ordering::Relaxed);
        let ticket = match ticket.channel.lanes.poll_reply(ticket.call) {
            Ok(None) => return,
            Ok(Some(lane::Outcome::RepliedByBroker)) => {
                ticket.by_broker = true;
                return;
            }
            Ok(Some(lane::Outcome::Replied(header))) => {
                let ticket = ticket.clone();
                ticket.channel.saw_cpu(header.cpu);
                ticket.channel.note_watched(ticket.call.lane, header.watching);
                thread.stack.pop();
                thread.push(Todo::LaneReply(LaneReply { ticket, header }));
                self.show_depth(st.thread(slot));
                return;
            }
            Ok(Some(lane::Outcome::Failed(NOBODY))) => {
                let ticket = ticket.clone();
                thread.stack.pop();
                thread.push(Todo::Word(br::DEAD_REPLY));
                self.show_depth(st.thread(slot));
                return self.leave_lane(st, &ticket);
            }
            Ok(Some(lane::Outcome::Failed(errno))) => {
                thread.extended_error =
                    ExtendedError { id: 0, command: br::FAILED_REPLY, param: errno.saturating_neg() };
                ticket.clone()
            }
            Err(corrupt) => {
                ticket.channel.close_as(corrupt);
                ticket.clone()
            }
        };
        thread.stack.pop();
        thread.push(Todo::Word(br::FAILED_REPLY));
        self.show_depth(st.thread(slot));
        self.leave_lane(st, &ticket);
    }

    pub(in super::super) fn give_out_lane_reply<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        reply: &LaneReply,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let LaneReply { ticket, header } = reply;
        let channel = &ticket.channel;
        let size = header.data_size;
        let Some(offset) = st.live.alloc(size.into(), self.area.size()) else {
            st.thread(slot).extended_error =
                ExtendedError { id: 0, command: br::FAILED_REPLY, param: -ENOSPC };
            self.leave_lane(&mut st, ticket);
            self.put(slot, out, br::FAILED_REPLY, &[]);
            return (st, Step::Last);
        };
        let copied;
        (st, copied) = self.copying(st, size, || {
            channel.lanes.pieces_of_reply(
                ticket.call,
                size,
                || channel.is_closed(),
                |piece| {
                    self.area.copy_from(&channel.memory, piece.from, offset + piece.at as u64, piece.len);
                },
            )
        });
        self.leave_lane(&mut st, ticket);
        if let Err(corrupt) = copied {
            channel.close_as(corrupt);
            st.live.free(offset);
            self.put(slot, out, br::DEAD_REPLY, &[]);
            return (st, Step::Last);
        }
        let data = TransactionData {
            code: header.code,
            flags: header.flags,
            sender_euid: channel.peer_euid,
            ..self.keep(&mut st, offset, size, header.flags, None)
        };
        self.put(slot, out, br::REPLY, data.as_bytes());
        (st, Step::Last)
    }
}

/// Wakes the callee's thread, after raising it to the caller's priority where that passes on.
fn wake(channel: &Channel, bell: Option<Bell<'_, Arc<SealedMemory>>>, mine: Sched, node_flags: u32) {
    if let Some(bell) = bell {
        let thread = priority::Thread { pid: channel.peer_pid, tid: bell.tid() };
        priority::boost(thread, channel.bells.inherit(), mine, node_flags, false);
        bell.wake();
    }
}
