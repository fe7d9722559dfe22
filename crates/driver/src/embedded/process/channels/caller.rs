//! Room: a call through a lane, from the side that sends it.
//! Not here: its reply (`reply`), the lane itself (`channel::lane`), who may use it (`super`).
//! Facts: contract TX-01, TX-06, TX-10.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::Payload;
use abi::codes::br;
use abi::layout::{ExtendedError, TransactionData};

use super::super::outgoing::{outgoing, plain};
use super::super::state::{Calling, Frame, LaneTicket, NO_ERROR, State, Thread, Todo, index};
use super::super::{Guard, Process, sched};
use super::{Channel, Wake};
use crate::embedded::channel::lane::{self, RequestHeader, Shape, Source};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::marks::What;
use crate::embedded::priority::is_realtime;
use crate::embedded::protocol::{Sched, ThreadKey};

const EIO: i32 = 5;

/// A call that was published.
struct Begun {
    call: lane::Call,
    /// Where its acknowledgement is in its thread's queue, which only grows at its end meanwhile.
    acknowledgement: usize,
    /// The callee's thread that it is for, if not any.
    to: Option<ThreadKey>,
    mine: Sched,
    node_flags: u32,
    mark: u32,
}

/// The slot of the peer's thread to wake for a call, to that thread or any, of a caller who is scheduled so.
#[inline(always)] // nearly all calls wake somebody
fn whom_to_wake(channel: &Channel, to: Option<ThreadKey>, caller: Sched) -> Option<u32> {
    let bell = match to {
        Some(key) => channel.bells.slot(key.slot).filter(|bell| bell.needs_wake()),
        None => channel.bells.listener_to_wake().or_else(|| {
            // Nobody sleeps, so whoever comes back for work is raised: or it might not come soon.
            let on_its_way = || channel.bells.listener_on_its_way();
            is_realtime(caller.policy).then(on_its_way).flatten()
        }),
    };
    Some(bell?.number())
}

impl Process {
    /// Calls through a lane, if the handle has one; gives the lock back if it has none or the lane
    /// is shut, and the broker shall see to it.
    pub(in super::super) fn call_in_lane<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
    ) -> Result<Guard<'p>, Guard<'p>> {
        match plain(data, buffers_size, payload) {
            Some(bytes) => self.call_with(st, slot, data, bytes),
            None => self.call_with_parts(st, slot, data, buffers_size, payload),
        }
    }

    /// The same of a payload that has objects, or lies elsewhere.
    #[inline(never)]
    fn call_with_parts<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
    ) -> Result<Guard<'p>, Guard<'p>> {
        // What has no lane need not be laid out for it.
        let open = st.channels.handle(data.target as u32).is_some_and(|bound| bound.channel.is_open());
        match open.then(|| outgoing(data, buffers_size, payload)).flatten() {
            Some(outgoing) => self.call_with(st, slot, data, &outgoing),
            None => Err(st),
        }
    }

    #[inline(always)] // each kind of payload has a way of its own
    fn call_with<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        payload: &(impl Source + ?Sized),
    ) -> Result<Guard<'p>, Guard<'p>> {
        let Ok(shape) = payload.shape() else { return Err(st) };
        let handle = data.target as u32;
        let State { threads, channels, .. } = &mut *st;
        let (Some(bound), Some(thread)) = (channels.handle(handle), threads[index(slot)].as_mut()) else {
            return Err(st);
        };
        let (channel, node_flags) = (&bound.channel, bound.flags);
        if !channel.is_open() {
            return Err(st);
        }
        let Some(lane) = channel.free_lane() else { return Err(st) };
        let lineage = thread.lineage();
        let to = lineage.as_deref().and_then(|lineage| lineage.find(channel.peer));
        let mine = sched::sending(thread.before);
        let mark = match self.traced() {
            Some(marks) => {
                let what = What { flags: data.flags, code: data.code };
                self.mark_lane_call(marks, (bound.node, channel.whom(to), what), shape)
            }
            None => 0,
        };
        let header = RequestHeader {
            binding: bound.number,
            code: data.code,
            flags: data.flags,
            shape: Shape::default(),
            thread: thread.key,
            cpu: sys::sched::current_cpu(),
            sched: mine,
            mark,
            lineage,
        };
        let call = match channel.lanes.publish(lane, &header, payload) {
            Ok(call) => call,
            Err(corrupt) => {
                channel.close_as(corrupt);
                if let Some(marks) = self.traced() {
                    self.mark_undone(marks, mark, shape);
                }
                return Err(st);
            }
        };
        bound.calls += 1;
        thread.extended_error = NO_ERROR;
        let held = thread.spares.of(channel);
        let ticket = LaneTicket { channel: held, call, handle, flags: data.flags, by_broker: false, mark };
        thread.stack.push(Frame::Calling(Calling::Lane(ticket)));
        let acknowledgement = thread.acknowledge();
        self.show_depth(thread);
        channel.mark(lane, true);
        let quietly = to.is_none() && channel.is_watched(lane) && self.will_look(thread);
        let begun = || Begun { call, acknowledgement, to, mine, node_flags, mark };
        // A small payload is all there.
        if quietly || shape.len() >= lane::CUT_FROM {
            let channel = thread.spares.of(channel);
            return self.go_on_calling(st, slot, channel, &begun(), quietly, (shape, payload));
        }
        channel.bells.post(channel.bit);
        if channel.lanes.gate() != 0 && channel.lanes.back_out(call) {
            let channel = channel.clone();
            return self.call_undone(st, slot, &channel, &begun(), shape);
        }
        if let Some(bell) = whom_to_wake(channel, to, mine) {
            let wake =
                Wake { channel: thread.spares.of(channel), slot: bell, call: Some((mine, node_flags)) };
            self.wake_later(thread, wake);
        }
        Ok(st)
    }

    /// The rest of a call whose payload takes long to copy, or whose callee looks for it.
    #[inline(never)]
    fn go_on_calling<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        channel: Arc<Channel>,
        begun: &Begun,
        quietly: bool,
        (shape, payload): (Shape, &(impl Source + ?Sized)),
    ) -> Result<Guard<'p>, Guard<'p>> {
        // Only a large payload is worth letting go of the lock for.
        let mut held = Some(st);
        if shape.len() >= lane::CUT_FROM {
            held.take().map(|st| self.unlock(st, slot));
        }
        let gate = match quietly {
            true => channel.lanes.gate_after_publishing(),
            false => {
                // A callee that sleeps is woken once all is there: on this CPU it could only wait for
                // it. One that spins copies along.
                channel.lanes.pour_request(begun.call, payload);
                channel.bells.post(channel.bit);
                channel.lanes.gate()
            }
        };
        if gate != 0 && channel.lanes.back_out(begun.call) {
            let st = held.unwrap_or_else(|| self.lock());
            return self.call_undone(st, slot, &channel, begun, shape);
        }
        if quietly {
            self.local(slot).untold.store(true, Ordering::Relaxed);
            channel.lanes.pour_request(begun.call, payload);
        }
        let mut st = held.unwrap_or_else(|| self.lock());
        let thread = st.thread(slot);
        let bell = if quietly { None } else { whom_to_wake(&channel, begun.to, begun.mine) };
        match bell {
            Some(bell) => {
                let call = Some((begun.mine, begun.node_flags));
                self.wake_later(thread, Wake { channel, slot: bell, call });
            }
            None => thread.spares.keep(channel),
        }
        Ok(st)
    }

    /// Nobody took a call that found the gate shut.
    #[cold]
    fn call_undone<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        channel: &Channel,
        begun: &Begun,
        shape: Shape,
    ) -> Result<Guard<'p>, Guard<'p>> {
        // If the peer died meanwhile, the call has its end already.
        let undone = self.undo(&mut st, slot, channel, begun.call, begun.acknowledgement);
        if let (true, Some(marks)) = (undone, self.traced()) {
            self.mark_undone(marks, begun.mark, shape);
        }
        if undone { Err(st) } else { Ok(st) }
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

    /// Whether the thread is likely to look for its reply before it sleeps, so that it can tell the callee later.
    fn will_look(&self, thread: &Thread) -> bool {
        !self.nonblocking.load(Ordering::Relaxed) && thread.waiter.as_deref().is_some_and(Waiter::will_look)
    }

    /// Tells the callee of a call that it has not found by itself, once.
    pub(in super::super) fn tell(&self, slot: u32, ticket: Option<&LaneTicket>) {
        let untold = &self.local(slot).untold;
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

    /// Takes back a call that nobody took; false if it is over. `acknowledgement`: see [`Begun`].
    fn undo(
        &self,
        st: &mut Guard<'_>,
        slot: u32,
        channel: &Channel,
        call: lane::Call,
        acknowledgement: usize,
    ) -> bool {
        let thread = st.thread(slot);
        let mine = |frame: &mut Frame| match frame {
            Frame::Calling(Calling::Lane(other)) => other.call == call && other.channel.id == channel.id,
            _ => false,
        };
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.stack.pop_if(mine) else { return false };
        thread.todo.remove_word(acknowledgement);
        self.show_depth(st.thread(slot));
        self.leave_lane(st, &ticket);
        true
    }
}
