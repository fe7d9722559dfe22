//! Room: a call through a lane, from the side that serves it.
//! Not here: the lane itself (`channel::lane`), who may use it (`super`).
//! Facts: contract TX-02, TX-03, ID-05, REF-13.

use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use super::super::area::{Arriving, Lent};
use super::super::outgoing::Outgoing;
use super::super::read::{Output, Step};
use super::super::state::{BoxedCall, Frame, LaneCall, NO_ERROR, Source, State, Todo, Watched, index};
use super::super::{Guard, Process};
use super::{EFAULT, EINVAL, ENOSPC, Wake};
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane::{self, ReplyHeader, Shape};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::marks::What;
use crate::embedded::priority::is_realtime;
use crate::embedded::settings::Inherit;

/// Calls that wait until the more urgent ones have been given to somebody, in their order. The first one, which
/// most often is the only one, takes no memory.
#[derive(Default)]
struct Postponed {
    first: Option<BoxedCall>,
    others: Vec<BoxedCall>,
}

impl Postponed {
    fn push(&mut self, call: BoxedCall) {
        match self.first {
            None => self.first = Some(call),
            Some(_) => self.others.push(call),
        }
    }
}

impl Process {
    /// Takes in the calls of every channel that has some.
    pub(in super::super) fn drain_lanes(&self, st: &mut State, me: u32) {
        if !st.channels.is_quiet() {
            self.look_again(st, me);
        }
        let mut held = Postponed::default();
        for bit in self.bells.take_ready() {
            self.drain_channel(st, me, bit, &mut held);
        }
        if let Some(first) = held.first {
            self.arrive(st, me, first);
            held.others.into_iter().for_each(|call| self.arrive(st, me, call));
        }
    }

    /// At what could not be finished before.
    #[cold]
    fn look_again(&self, st: &mut State, me: u32) {
        let over: Vec<_> = st.channels.orphans.extract_if(.., |ticket| ticket.is_over()).collect();
        over.iter().for_each(|ticket| self.leave_lane(st, ticket));
        let known = |call: &mut BoxedCall| {
            call.request.header.binding <= call.channel.last_binding.load(Ordering::Relaxed)
        };
        let known: Vec<_> = st.channels.early.extract_if(.., known).collect();
        known.into_iter().for_each(|call| self.accept_lane_call(st, me, call));
    }

    fn drain_channel(&self, st: &mut State, me: u32, bit: u32, held: &mut Postponed) {
        let Some(Some(inbound)) = st.channels.by_bit.get(bit as usize) else { return };
        for lane in inbound.channel.lanes.called() {
            let Some(Some(inbound)) = st.channels.by_bit.get_mut(bit as usize) else { return };
            if inbound.channel.is_closed() {
                return;
            }
            match inbound.take(lane) {
                Ok(None) => {}
                Ok(Some(call)) => match self.may_wait(&call) {
                    true => held.push(call),
                    false => self.arrive(st, me, call),
                },
                Err(corrupt) => return inbound.channel.close_as(corrupt),
            }
        }
    }

    /// Lanes do not tell which call came first. Where policies are inherited a real-time call goes before the others: the
    /// thread that takes them in was most likely raised for it, and would give that up to serve another one.
    fn may_wait(&self, call: &LaneCall) -> bool {
        self.settings.inherit == Inherit::Rt && !is_realtime(call.request.header.sched.policy)
    }

    /// Takes the call of the lane that this thread watches; `None` also if it is none for it to serve at once. Whatever
    /// lies there is looked at once for each reply: a peer that plays with it must not keep this thread, which has the
    /// lock, busy. An honest caller who is missed so tells.
    #[inline]
    pub(in super::super) fn take_watched(&self, st: &mut State, slot: u32) -> Option<BoxedCall> {
        let State { threads, channels, .. } = &mut *st;
        let thread = threads[index(slot)].as_mut()?;
        let Watched { channel, lane } = thread.watched.take_if(|watched| watched.has_call())?;
        let taken = channels.inbound(&channel).map_or(Ok(None), |inbound| inbound.take(lane));
        if let Err(corrupt) = taken {
            channel.close_as(corrupt);
        }
        thread.spares.keep(channel);
        let mut call = taken.ok()??;
        // Another thread may wait further out in its chain.
        if call.request.header.lineage.is_some() || !channels.find_node(&mut call) {
            self.arrive(st, slot, call);
            return None;
        }
        if !call.channel.begin_serving(lane) {
            call.channel.close_as(Corrupt::LaneBusy);
            return None;
        }
        self.saw_caller(call.request.header.cpu);
        channels.held.call(call.node.held);
        Some(call)
    }

    /// Takes in the call of the lane that this thread watches, for whoever may serve it.
    #[inline(never)]
    pub(in super::super) fn take_in_watched(&self, st: &mut State, slot: u32) {
        if let Some(call) = self.take_watched(st, slot) {
            self.route(st, slot, Todo::LaneCall(call));
        }
    }

    fn saw_caller(&self, cpu: u32) {
        self.caller_cpu.store(cpu.saturating_add(1), Ordering::Relaxed);
    }

    /// Where the last caller was.
    pub(in super::super) fn last_caller_cpu(&self) -> Option<u32> {
        self.caller_cpu.load(Ordering::Relaxed).checked_sub(1)
    }

    fn arrive(&self, st: &mut State, me: u32, call: BoxedCall) {
        if !call.channel.begin_serving(call.request.lane) {
            return call.channel.close_as(Corrupt::LaneBusy);
        }
        self.accept_lane_call(st, me, call);
    }

    fn accept_lane_call(&self, st: &mut State, me: u32, mut call: BoxedCall) {
        if !st.channels.find_node(&mut call) {
            return refuse_lane_call(st, call);
        }
        let header = &call.request.header;
        let to = header.lineage.as_deref().and_then(|lineage| lineage.find(self.id));
        self.saw_caller(header.cpu);
        // From here on, not only once it is read: another thread may read of the node's end
        // before.
        st.channels.held.call(call.node.held);
        self.route_call(st, me, to, Todo::LaneCall(call));
    }

    #[inline(never)] // as `reply`
    pub(in super::super) fn give_out_lane_call<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        call: BoxedCall,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let (header, lanes) = (&call.request.header, &call.channel.lanes);
        // Nearly all are data, and small.
        let arrived = match header.shape.objects {
            0 => lanes.whole_request(&call.request).and_then(|whole| {
                let lent = Lent::of(header.flags, Some(call.node.held));
                self.area.take_in_plain(&mut st.live, (lanes.memory(), whole), lent)
            }),
            _ => None,
        };
        match arrived {
            Some(arrived) => {
                self.return_lane_call(&mut st, slot, call, arrived, out);
                (st, Step::Last)
            }
            None => self.give_out_any_lane_call(st, slot, call, out),
        }
    }

    /// The same of any call, and where there is no room for it.
    #[inline(never)]
    fn give_out_any_lane_call<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        call: BoxedCall,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let arriving = Arriving::new(call.request.header.shape, out.takes_vectors);
        let Some(offset) = st.live.alloc(arriving.layout.end, self.area.size()) else {
            self.fail_lane_call(&mut st, slot, &call, ENOSPC);
            return (st, Step::More);
        };
        let small = (arriving.layout.end as usize) < lane::CUT_FROM;
        let lanes = &call.channel.lanes;
        let copied = match lanes.whole_request(&call.request).filter(|_| small) {
            Some(whole) => {
                self.area.take_in(lanes.memory(), whole, offset, &arriving);
                self.area.settle(offset, &arriving)
            }
            None => {
                let copied;
                (st, copied) = self.copy_large_request(st, slot, &call, offset, &arriving);
                copied
            }
        };
        if let Err(corrupt) = copied {
            // It may be no more than a caller that was stopped for long.
            self.fail_lane_call(&mut st, slot, &call, EFAULT);
            call.channel.close_as(corrupt);
            st.live.free(offset);
            return (st, Step::More);
        }
        let (flags, node) = (call.request.header.flags, call.node.held);
        let place = self.keep(&mut st, offset, &arriving.layout, flags, Some(node));
        out.vector = arriving.vector;
        self.return_lane_call(&mut st, slot, call, (offset, place), out);
        (st, Step::Last)
    }

    /// Has the thread serve a call, which lies at this offset, and appends the return that tells of it.
    #[inline(always)] // in the usual one of its two callers is little else
    fn return_lane_call(
        &self,
        st: &mut State,
        slot: u32,
        mut call: BoxedCall,
        (offset, place): (u64, TransactionData),
        out: &mut Output<'_>,
    ) {
        let node = call.node;
        call.saved = self.inherit(st, slot, call.request.header.sched, node.flags, false);
        let data = TransactionData {
            target: node.ptr,
            cookie: node.cookie,
            code: call.request.header.code,
            flags: call.request.header.flags,
            sender_pid: call.channel.peer_pid as i32,
            sender_euid: call.channel.peer_euid,
            ..place
        };
        if let Some(marks) = self.traced() {
            self.mark_lane_call_delivered(marks, &call, offset);
        }
        let thread = st.thread(slot);
        thread.stack.push(Frame::Serving(Source::Lane(call)));
        self.show_depth(thread);
        self.put(slot, out, br::TRANSACTION, data.as_bytes());
    }

    /// Copies a payload to its place without the lock.
    #[inline(never)]
    fn copy_large_request<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        call: &LaneCall,
        offset: u64,
        arriving: &Arriving,
    ) -> (Guard<'p>, Result<(), Corrupt>) {
        let channel = &call.channel;
        self.copy_unlocked(st, slot, || {
            let copy = |piece| self.area.take_in(channel.lanes.memory(), piece, offset, arriving);
            channel.lanes.pieces_of_request(&call.request, || channel.is_closed(), copy)?;
            self.area.settle(offset, arriving)
        })
    }

    /// A call that nobody will read.
    #[cold]
    fn fail_lane_call(&self, st: &mut Guard<'_>, slot: u32, call: &LaneCall, errno: i32) {
        call.fail(errno);
        self.let_go(st, slot, Some(call.node.held));
    }

    /// Replies through the lane that the call came in, with a payload that has objects, or lies elsewhere.
    #[inline(never)]
    pub(in super::super) fn reply_with_parts<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        call: BoxedCall,
        data: &TransactionData,
        payload: &Outgoing<'_>,
    ) -> Guard<'p> {
        self.reply_in_lane(st, slot, call, data, payload)
    }

    /// Replies through the lane that the call came in.
    #[inline(always)] // each kind of payload has a way of its own
    pub(in super::super) fn reply_in_lane<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        call: BoxedCall,
        data: &TransactionData,
        payload: &(impl lane::Source + ?Sized),
    ) -> Guard<'p> {
        // One that no lane holds fails below.
        let shape = payload.shape().unwrap_or_default();
        // Before the caller can go on: what it does next may come back to this very thread.
        let thread = st.thread(slot);
        let acknowledgement = thread.acknowledge();
        thread.urgent = true;
        thread.extended_error = NO_ERROR;
        thread.release_held();
        if let Some(marks) = self.traced() {
            let what = What { flags: data.flags, code: data.code };
            self.mark_lane_reply(marks, &call, what, shape);
        }
        let (channel, taken) = (&call.channel, call.request.taken());
        let caller = channel.bells.slot(call.request.header.thread.slot);
        let lane = taken.lane;
        let watching = thread.stack.is_empty()
            && thread.waiter.as_deref().is_some_and(Waiter::will_look)
            && !self.nonblocking.load(Ordering::Relaxed);
        thread.watched = watching.then(|| Watched { channel: thread.spares.of(channel), lane });
        let header = ReplyHeader {
            code: data.code,
            flags: data.flags,
            shape: Shape::default(),
            cpu: sys::sched::current_cpu(),
            watching,
        };
        channel.end_serving(lane);
        let sent = channel.lanes.reply(taken, &header, payload).is_ok();
        if !sent {
            channel.lanes.fail(taken, EFAULT);
        }
        let wakes = match sent && shape.len() >= lane::CUT_FROM {
            false => caller.is_some_and(|bell| bell.ring()),
            true => {
                st = self.pour_reply(st, slot, &call, payload);
                false
            }
        };
        if !sent || call.channel.is_closed() {
            // A reply that fails, or that nobody waits for, stops the write as an error does (contract
            // TX-17, TX-18).
            let thread = st.thread(slot);
            thread.todo.refuse_word(acknowledgement, br::TRANSACTION_COMPLETE);
            thread.refused = true;
        }
        if wakes {
            let thread = st.thread(slot);
            let channel = thread.spares.of(&call.channel);
            let slot_there = call.request.header.thread.slot;
            self.wake_later(thread, Wake { channel, slot: slot_there, call: None });
        }
        st.channels.keep_box(call);
        st
    }

    /// Copies a large reply without the lock, and wakes the caller.
    #[inline(never)]
    fn pour_reply<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        call: &LaneCall,
        payload: &(impl lane::Source + ?Sized),
    ) -> Guard<'p> {
        self.unlock(st, slot);
        let (channel, caller) = (&call.channel, call.request.header.thread);
        // As in a call: who sleeps is woken once all is there, who spins copies along.
        let asleep = channel.bells.slot(caller.slot).is_some_and(|bell| bell.is_sleeping());
        if asleep {
            channel.lanes.pour_reply(call.request.taken(), payload);
        }
        channel.ring(caller);
        if !asleep {
            channel.lanes.pour_reply(call.request.taken(), payload);
        }
        self.lock()
    }
}

/// A call with a binding that is not known.
#[cold]
fn refuse_lane_call(st: &mut State, call: BoxedCall) {
    let LaneCall { channel, request, .. } = &*call;
    if request.header.binding > channel.last_binding.load(Ordering::Relaxed) {
        // The caller heard of it first.
        return st.channels.early.push(call);
    }
    // Nothing that this caller was given (contract ID-05, REF-03).
    call.fail(EINVAL);
}
