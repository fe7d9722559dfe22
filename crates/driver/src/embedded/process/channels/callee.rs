//! Room: a call through a lane, from the side that serves it.
//! Not here: the lane itself (`channel::lane`), who may use it (`super`).
//! Facts: contract TX-02, TX-03, ID-05, REF-13.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use super::super::area::Arriving;
use super::super::outgoing::Outgoing;
use super::super::read::{Output, Step};
use super::super::state::{Frame, LaneCall, NO_ERROR, Source, State, Todo, Watched};
use super::super::{Guard, Process};
use super::{Channel, EFAULT, EINVAL, ENOSPC, Wake};
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane::{self, ReplyHeader, Shape};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::marks::What;
use crate::embedded::priority::is_realtime;
use crate::embedded::settings::Inherit;

/// Calls that wait until the more urgent ones have been given to somebody, in their order. The first one, which
/// most often is the only one, takes no memory.
#[derive(Default)]
struct Held {
    first: Option<(Arc<Channel>, lane::Request)>,
    others: Vec<(Arc<Channel>, lane::Request)>,
}

impl Held {
    fn push(&mut self, call: (Arc<Channel>, lane::Request)) {
        match self.first {
            None => self.first = Some(call),
            Some(_) => self.others.push(call),
        }
    }

    fn each(self, give: impl FnMut((Arc<Channel>, lane::Request))) {
        self.first.into_iter().chain(self.others).for_each(give);
    }
}

impl Process {
    /// Takes in the calls of every channel that has some.
    pub(in super::super) fn drain_lanes(&self, st: &mut State, me: u32) {
        if !st.channels.orphans.is_empty() {
            let over: Vec<_> = st.channels.orphans.extract_if(.., |ticket| ticket.is_over()).collect();
            over.iter().for_each(|ticket| self.leave_lane(st, ticket));
        }
        if !st.channels.early.is_empty() {
            let known = |(channel, request): &mut (Arc<Channel>, lane::Request)| {
                request.header.binding <= channel.last_binding.load(Ordering::Relaxed)
            };
            let known: Vec<_> = st.channels.early.extract_if(.., known).collect();
            known.into_iter().for_each(|(channel, request)| self.accept_lane_call(st, me, &channel, request));
        }
        let mut held = Held::default();
        for bit in self.bells.take_ready() {
            let State { threads, channels, .. } = &mut *st;
            let Some(Some(channel)) = channels.by_bit.get(bit as usize) else { continue };
            let Some(thread) = threads[me as usize].as_mut() else { continue };
            let channel = thread.spares.of(channel);
            let mut taken = 0;
            while !channel.is_closed() {
                // An honest caller has no more under way; what comes on top waits, and others have their turn.
                if taken == lane::LANES {
                    self.bells.post(bit);
                    break;
                }
                taken += 1;
                match channel.lanes.take_next() {
                    Ok(None) => break,
                    Ok(Some(request)) if self.may_wait(&request) => {
                        let channel = st.thread(me).spares.of(&channel);
                        held.push((channel, request));
                    }
                    Ok(Some(request)) => self.arrive(st, me, &channel, request),
                    Err(corrupt) => {
                        channel.close_as(corrupt);
                        break;
                    }
                }
            }
            st.thread(me).spares.keep(channel);
        }
        held.each(|(channel, request)| {
            self.arrive(st, me, &channel, request);
            st.thread(me).spares.keep(channel);
        });
    }

    /// Lanes do not tell which call came first. Where policies are inherited a real-time call goes before the others: the
    /// thread that takes them in was most likely raised for it, and would give that up to serve another one.
    fn may_wait(&self, request: &lane::Request) -> bool {
        self.settings.inherit == Inherit::Rt && !is_realtime(request.header.sched.policy)
    }

    /// Takes in the call of the lane that this thread watches.
    pub(in super::super) fn take_watched(&self, st: &mut State, slot: u32) {
        let thread = st.thread(slot);
        let Some(watched) = thread.watched.as_ref().filter(|watched| watched.has_call()) else { return };
        let (channel, lane) = (thread.spares.of(&watched.channel), watched.lane);
        match channel.lanes.take(lane) {
            Ok(None) => {}
            Ok(Some(request)) => self.arrive(st, slot, &channel, request),
            Err(corrupt) => channel.close_as(corrupt),
        }
        st.thread(slot).spares.keep(channel);
    }

    fn saw_caller(&self, cpu: u32) {
        self.caller_cpu.store(cpu.saturating_add(1), Ordering::Relaxed);
    }

    /// Where the last caller was.
    pub(in super::super) fn last_caller_cpu(&self) -> Option<u32> {
        self.caller_cpu.load(Ordering::Relaxed).checked_sub(1)
    }

    fn arrive(&self, st: &mut State, me: u32, channel: &Arc<Channel>, request: lane::Request) {
        if !channel.begin_serving(request.lane) {
            return channel.close_as(Corrupt::LaneBusy);
        }
        self.accept_lane_call(st, me, channel, request);
    }

    fn accept_lane_call(&self, st: &mut State, me: u32, channel: &Arc<Channel>, request: lane::Request) {
        let node = st.channels.nodes.get(&(channel.id, request.header.binding)).copied();
        let to = request.header.lineage.as_deref().and_then(|lineage| lineage.find(self.id));
        match node {
            Some(node) => {
                self.saw_caller(request.header.cpu);
                // From here on, not only once it is read: another thread may read of the node's end
                // before.
                st.channels.held.entry(node.ptr).or_default().calls += 1;
                let call = LaneCall { channel: st.thread(me).spares.of(channel), request, node };
                self.route_call(st, me, to, Todo::LaneCall(call));
            }
            // The caller heard of it first.
            None if request.header.binding > channel.last_binding.load(Ordering::Relaxed) => {
                st.channels.early.push((channel.clone(), request));
            }
            // Nothing that this caller was given (contract ID-05, REF-03).
            None => {
                channel.end_serving(request.lane);
                channel.lanes.fail(request.taken(), EINVAL);
                channel.ring(request.header.thread);
            }
        }
    }

    pub(in super::super) fn give_out_lane_call<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        call: LaneCall,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let channel = &call.channel;
        let header = &call.request.header;
        let (shape, flags, code) = (header.shape, header.flags, header.code);
        let arriving = Arriving::new(shape, out.takes_vectors);
        let Some(offset) = st.live.alloc(arriving.layout.end, self.area.size()) else {
            call.fail(ENOSPC);
            self.let_go(&mut st, slot, Some(call.node.ptr));
            return (st, Step::More);
        };
        let copied;
        (st, copied) = self.copying(st, slot, arriving.layout.end as usize, || {
            let copy = |piece| self.area.take_in(channel.lanes.memory(), piece, offset, &arriving);
            channel.lanes.pieces_of_request(&call.request, || channel.is_closed(), copy)?;
            self.area.settle(offset, &arriving)
        });
        if let Err(corrupt) = copied {
            // It may be no more than a caller that was stopped for long.
            call.fail(EFAULT);
            channel.close_as(corrupt);
            st.live.free(offset);
            self.let_go(&mut st, slot, Some(call.node.ptr));
            return (st, Step::More);
        }
        let node = call.node;
        let saved = self.inherit(&mut st, slot, header.sched, node.flags, false);
        let data = TransactionData {
            target: node.ptr,
            cookie: node.cookie,
            code,
            flags,
            sender_pid: channel.peer_pid as i32,
            sender_euid: channel.peer_euid,
            ..self.keep(&mut st, offset, &arriving.layout, flags, Some(node.ptr))
        };
        out.vector = arriving.vector;
        if let Some(marks) = self.traced() {
            self.mark_lane_call_delivered(marks, &call, offset);
        }
        st.thread(slot).stack.push(Frame::Serving { source: Source::Lane(call), saved });
        self.show_depth(st.thread(slot));
        self.put(slot, out, br::TRANSACTION, data.as_bytes());
        (st, Step::Last)
    }

    /// Replies through the lane that the call came in.
    pub(in super::super) fn reply_in_lane<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        call: LaneCall,
        data: &TransactionData,
        payload: &Outgoing<'_>,
    ) -> Guard<'p> {
        // Before the caller can go on: what it does next may come back to this very thread.
        let thread = st.thread(slot);
        let acknowledgement = thread.todo.len();
        thread.push(Todo::Word(br::TRANSACTION_COMPLETE));
        thread.extended_error = NO_ERROR;
        thread.release_held();
        if let Some(marks) = self.traced() {
            let what = What { flags: data.flags, code: data.code };
            self.mark_lane_reply(marks, &call, what, payload.sizes());
        }
        let taken = call.request.taken();
        let (caller, channel) = (call.request.header.thread, call.channel);
        let lane = taken.lane;
        let nonblocking = self.nonblocking.load(Ordering::Relaxed);
        let thread = st.thread(slot);
        let watching = !nonblocking
            && thread.stack.is_empty()
            && thread.waiter.as_deref().is_some_and(Waiter::will_spin);
        thread.watched = watching.then(|| Watched { channel: thread.spares.of(&channel), lane });
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
        if sent && payload.len() >= lane::CUT_FROM {
            self.unlock(st, slot);
            // As in a call: who sleeps is woken once all is there, who spins copies along.
            let asleep = channel.bells.slot(caller.slot).is_some_and(|bell| bell.is_sleeping());
            if asleep {
                channel.lanes.pour_reply(taken, payload);
            }
            channel.ring(caller);
            if !asleep {
                channel.lanes.pour_reply(taken, payload);
            }
            st = self.lock();
        }
        let wakes = payload.len() < lane::CUT_FROM || !sent;
        let wakes = wakes && channel.bells.slot(caller.slot).is_some_and(|bell| bell.ring());
        if !sent || channel.is_closed() {
            // A reply that fails, or that nobody waits for, stops the write as an error does (contract
            // TX-17, TX-18).
            let thread = st.thread(slot);
            thread.todo.refuse_word(acknowledgement, br::TRANSACTION_COMPLETE);
            thread.refused = true;
        }
        if wakes {
            self.wake_later(&mut st, slot, Wake { channel, slot: caller.slot, call: None });
        } else {
            st.thread(slot).spares.keep(channel);
        }
        st
    }
}
