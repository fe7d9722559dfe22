//! Room: the reply to a call through a lane, from the side that waits for it.
//! Not here: the call (`caller`), the lane itself (`channel::lane`).
//! Facts: contract TX-01, TX-10, TX-17.

use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::{ExtendedError, TransactionData};
use zerocopy::IntoBytes;

use super::super::area::{Arriving, Lent};
use super::super::read::{Output, Step};
use super::super::state::{Calling, Frame, LaneReply, LaneTicket, State, Todo};
use super::super::{Guard, Process};
use super::{ENOSPC, NOBODY};
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane::{self, ReplyHeader};
use crate::embedded::marks::What;
use crate::embedded::protocol::ProcId;

/// How a call in a lane ended.
enum Ended {
    Replied(ReplyHeader),
    /// With this return.
    Refused(u32),
}

impl LaneTicket {
    /// Remembers what a reply says of the callee.
    fn saw_reply(&self, header: &ReplyHeader) {
        self.channel.saw_cpu(header.cpu);
        self.channel.note_watched(self.call.lane, header.watching);
    }
}

impl Process {
    /// Takes in the replies of a callee that answered before it went, also those to threads that serve somebody
    /// else meanwhile.
    pub(super) fn collect_last_replies(&self, st: &mut State, me: u32, peer: ProcId) {
        let answered = |frame: &Frame| match frame {
            Frame::Calling(Calling::Lane(ticket)) => ticket.channel.peer == peer && ticket.has_outcome(),
            _ => false,
        };
        let slots: Vec<u32> = st.threads.iter().flatten().map(|thread| thread.key.slot).collect();
        for slot in slots {
            for place in (0..st.thread(slot).stack.len()).rev() {
                if !st.thread(slot).stack.get(place).is_some_and(answered) {
                    continue;
                }
                if let Some(end) = self.outcome_in_lane(st, slot, place) {
                    self.end_in_lane(st, slot, place, end);
                    if slot != me {
                        self.ring(slot);
                    }
                }
            }
        }
    }

    /// Queues the reply that came in this thread's lane, if one did and it has read every call before.
    pub(in super::super) fn collect_lane_reply(&self, st: &mut State, slot: u32) {
        let thread = st.thread(slot);
        if thread.is_sending() || thread.has_unread() {
            return;
        }
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.stack.last() else { return };
        if !ticket.has_outcome() {
            return;
        }
        let place = thread.stack.len() - 1;
        if let Some(end) = self.outcome_in_lane(st, slot, place) {
            self.end_in_lane(st, slot, place, end);
        }
    }

    /// How the call at that place of a thread's stack ended, by its lane.
    fn outcome_in_lane(&self, st: &mut State, slot: u32, place: usize) -> Option<Ended> {
        let thread = st.thread(slot);
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.stack.get_mut(place) else { return None };
        self.local(slot).untold.store(false, Ordering::Relaxed);
        match ticket.channel.lanes.poll_reply(ticket.call) {
            Ok(None) => None,
            Ok(Some(lane::Outcome::RepliedByBroker)) => {
                ticket.by_broker = true;
                None
            }
            Ok(Some(lane::Outcome::Replied(header))) => {
                ticket.saw_reply(&header);
                Some(Ended::Replied(header))
            }
            Ok(Some(lane::Outcome::Failed(NOBODY))) => Some(Ended::Refused(br::DEAD_REPLY)),
            Ok(Some(lane::Outcome::Failed(errno))) => {
                let param = errno.saturating_neg();
                thread.extended_error = ExtendedError { id: 0, command: br::FAILED_REPLY, param };
                Some(Ended::Refused(br::FAILED_REPLY))
            }
            Err(corrupt) => {
                ticket.channel.close_as(corrupt);
                Some(Ended::Refused(br::FAILED_REPLY))
            }
        }
    }

    /// Ends the call at that place of a thread's stack.
    #[inline]
    fn end_in_lane(&self, st: &mut State, slot: u32, place: usize, end: Ended) {
        let thread = st.thread(slot);
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.take_frame(place) else { return };
        match end {
            Ended::Replied(header) => {
                thread.end(place, Todo::LaneReply(Box::new(LaneReply { ticket, header })));
                self.show_depth(thread);
            }
            Ended::Refused(word) => {
                thread.end(place, Todo::Word(word));
                self.show_depth(thread);
                self.leave_lane(st, &ticket);
            }
        }
    }

    /// Gives out the reply that this thread waits for from where it lies, in its lane; `None` for anything else.
    #[inline]
    pub(in super::super) fn take_lane_reply<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Option<Step>) {
        let thread = st.thread(slot);
        if !thread.has_lane_reply() {
            return (st, None);
        }
        let Some(Frame::Calling(Calling::Lane(ticket))) = thread.stack.pop() else { return (st, None) };
        self.local(slot).untold.store(false, Ordering::Relaxed);
        let (st, step) = match ticket.channel.lanes.reply_header(ticket.call) {
            Ok(header) => {
                ticket.saw_reply(&header);
                self.give_out_lane_reply(st, slot, ticket, &header, out)
            }
            Err(corrupt) => self.give_out_nonsense(st, slot, &ticket, corrupt, out),
        };
        (st, Some(step))
    }

    /// What is in place of a reply that no lane holds.
    #[cold]
    fn give_out_nonsense<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        ticket: &LaneTicket,
        corrupt: Corrupt,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        ticket.channel.close_as(corrupt);
        self.leave_lane(&mut st, ticket);
        self.put(slot, out, br::FAILED_REPLY, &[]);
        (st, Step::More)
    }

    /// Copies a large reply, without the lock.
    #[inline(never)]
    fn take_in_poured<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        ticket: &LaneTicket,
        offset: u64,
        arriving: &Arriving,
    ) -> (Guard<'p>, Result<(), Corrupt>) {
        let channel = &ticket.channel;
        self.copy_unlocked(st, slot, || {
            let copy = |piece| self.area.take_in(channel.lanes.memory(), piece, offset, arriving);
            channel.lanes.pieces_of_reply(ticket.call, arriving.sent(), || channel.is_closed(), copy)?;
            self.area.settle(offset, arriving)
        })
    }

    pub(in super::super) fn give_out_lane_reply<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        ticket: LaneTicket,
        header: &ReplyHeader,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let lanes = &ticket.channel.lanes;
        // Nearly all are data, and small.
        let arrived = match header.shape.objects {
            0 => lanes.whole_reply(ticket.call, header.shape.len()).and_then(|whole| {
                let lent = Lent::of(header.flags, None);
                self.area.take_in_plain(&mut st.live, (lanes.memory(), whole), lent)
            }),
            _ => None,
        };
        let Some((offset, place)) = arrived else {
            return self.give_out_any_lane_reply(st, slot, ticket, header, out);
        };
        self.leave_lane(&mut st, &ticket);
        self.return_lane_reply(&mut st, slot, ticket, header, (offset, place), out);
        (st, Step::Last)
    }

    /// The same of any reply, and where there is no room for it.
    #[inline(never)]
    fn give_out_any_lane_reply<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        ticket: LaneTicket,
        header: &ReplyHeader,
        out: &mut Output<'_>,
    ) -> (Guard<'p>, Step) {
        let shape = header.shape;
        let arriving = Arriving::new(shape, out.takes_vectors);
        let Some(offset) = st.live.alloc(arriving.layout.end, self.area.size()) else {
            st.thread(slot).extended_error =
                ExtendedError { id: 0, command: br::FAILED_REPLY, param: -ENOSPC };
            self.disown(&mut st, ticket);
            self.put(slot, out, br::FAILED_REPLY, &[]);
            return (st, Step::Last);
        };
        let channel = &ticket.channel;
        let copied = match channel.lanes.whole_reply(ticket.call, shape.sent()) {
            Some(piece) => {
                self.area.take_in(channel.lanes.memory(), piece, offset, &arriving);
                self.area.settle(offset, &arriving)
            }
            None => {
                let copied;
                (st, copied) = self.take_in_poured(st, slot, &ticket, offset, &arriving);
                copied
            }
        };
        self.leave_lane(&mut st, &ticket);
        if let Err(corrupt) = copied {
            channel.close_as(corrupt);
            st.live.free(offset);
            self.put(slot, out, br::DEAD_REPLY, &[]);
            return (st, Step::Last);
        }
        let place = self.keep(&mut st, offset, &arriving.layout, header.flags, None);
        out.vector = arriving.vector;
        self.return_lane_reply(&mut st, slot, ticket, header, (offset, place), out);
        (st, Step::Last)
    }

    /// Appends the return that tells of a reply, which lies at this offset.
    #[inline(always)] // in the usual one of its two callers is little else
    fn return_lane_reply(
        &self,
        st: &mut State,
        slot: u32,
        ticket: LaneTicket,
        header: &ReplyHeader,
        (offset, place): (u64, TransactionData),
        out: &mut Output<'_>,
    ) {
        if let Some(marks) = self.traced() {
            self.mark_lane_reply_delivered(marks, &ticket, header.shape, offset);
        }
        let ReplyHeader { code, flags, .. } = *header;
        let data = TransactionData { code, flags, sender_euid: ticket.channel.peer_euid, ..place };
        self.put(slot, out, br::REPLY, data.as_bytes());
        if let Some(marks) = self.traced() {
            self.mark_lane_reply_over(marks, &ticket, What { flags, code });
        }
        st.thread(slot).spares.keep(ticket.channel);
    }
}
