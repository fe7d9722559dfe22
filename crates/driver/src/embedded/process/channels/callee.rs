//! Room: a call through a lane, from the side that serves it.
//! Not here: the lane itself (`channel::lane`), who may use it (`super`).
//! Facts: contract TX-02, TX-03, ID-05, REF-13.

use std::sync::Arc;

use abi::Payload;
use abi::codes::br;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use super::super::gather::{read_data, vouched_data};
use super::super::read::{Output, Step};
use super::super::state::{Frame, LaneCall, NO_ERROR, Source, State, Todo};
use super::super::{Guard, Process};
use super::{Channel, EFAULT, EINVAL, ENOSPC};
use crate::embedded::channel::lane::{self, ReplyHeader};
use crate::embedded::protocol::Link;

impl Process {
    /// Takes in the calls of every channel that has some.
    pub(in super::super) fn drain_lanes(&self, st: &mut State, me: u32) {
        for ticket in st.channels.orphans.extract_if(.., |ticket| ticket.is_over()).collect::<Vec<_>>() {
            self.leave_lane(st, &ticket);
        }
        for bit in self.bells.take_ready() {
            let Some(channel) = st.channels.by_bit.get(bit as usize).and_then(Clone::clone) else { continue };
            if channel.is_closed() {
                continue;
            }
            loop {
                match channel.lanes.take_next() {
                    Ok(None) => break,
                    Ok(Some(request)) => self.accept_lane_call(st, me, &channel, request),
                    Err(corrupt) => {
                        channel.close_as(corrupt);
                        break;
                    }
                }
            }
        }
    }

    fn accept_lane_call(&self, st: &mut State, me: u32, channel: &Arc<Channel>, request: lane::Request) {
        let node = st.channels.nodes.get(&(channel.id, request.header.binding)).copied();
        let to = request.header.lineage.find(self.id);
        match node {
            Some(node) => {
                channel.saw_cpu(request.header.cpu);
                let call = LaneCall { channel: channel.clone(), request, node };
                self.route_call(st, me, to, Todo::LaneCall(call));
            }
            // Nothing that this caller was given (contract ID-05, REF-03).
            None => {
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
        let channel = call.channel.clone();
        let header = &call.request.header;
        let (size, flags, code) = (header.data_size, header.flags, header.code);
        let Some(offset) = st.live.alloc(size.into(), self.area.size()) else {
            call.fail(ENOSPC);
            return (st, Step::More);
        };
        let copied;
        (st, copied) = self.copying(st, size, || {
            channel.lanes.pieces_of_request(
                &call.request,
                || channel.is_closed(),
                |piece| {
                    self.area.copy_from(&channel.memory, piece.from, offset + piece.at as u64, piece.len);
                },
            )
        });
        if let Err(corrupt) = copied {
            channel.close_as(corrupt);
            st.live.free(offset);
            return (st, Step::More);
        }
        let node = call.node;
        st.channels.held.entry(node.ptr).or_default().calls += 1;
        let saved = self.inherit(header.sched, node.flags, false);
        let lineage = header.lineage.behind(Link { proc: channel.peer, thread: header.thread });
        st.thread(slot).stack.push(Frame::Serving { source: Source::Lane(call), lineage, saved });
        self.show_depth(st.thread(slot));
        let data = TransactionData {
            target: node.ptr,
            cookie: node.cookie,
            code,
            flags,
            sender_pid: channel.peer_pid as i32,
            sender_euid: channel.peer_euid,
            ..self.keep(&mut st, offset, size, flags, Some(node.ptr))
        };
        self.put(slot, out, br::TRANSACTION, data.as_bytes());
        (st, Step::Last)
    }

    /// Replies through the lane that the call came in.
    pub(in super::super) fn reply_in_lane<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        call: &LaneCall,
        data: &TransactionData,
        payload: Payload<'_>,
    ) -> Guard<'p> {
        drop(st);
        let channel = &call.channel;
        let mut copy = Vec::new();
        let bytes = match vouched_data(data, payload) {
            Some(bytes) => Some(bytes),
            None => read_data(data, &mut copy).ok().map(|()| &copy[..]),
        };
        let taken = call.request.taken();
        let header = ReplyHeader {
            code: data.code,
            flags: data.flags,
            data_size: data.data_size as u32,
            cpu: sys::sched::current_cpu(),
            watching: false,
        };
        let sent = bytes.is_some_and(|bytes| channel.lanes.reply(taken, &header, bytes).is_ok());
        if !sent {
            channel.lanes.fail(taken, EFAULT);
        }
        channel.ring(call.request.header.thread);
        if let (true, Some(bytes)) = (sent, bytes) {
            channel.lanes.pour_reply(taken, bytes);
        }
        let mut st = self.lock();
        let thread = st.thread(slot);
        thread.extended_error = NO_ERROR;
        // A reply that fails stops the write as an error does (contract TX-17).
        match sent {
            true => thread.push(Todo::Word(br::TRANSACTION_COMPLETE)),
            false => thread.refuse(br::TRANSACTION_COMPLETE),
        }
        st
    }
}
