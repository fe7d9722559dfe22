//! Room: what a call in a lane knows by itself: who waits for it, how it ends, how far it is.
//! Not here: its way ([`super::caller`], [`super::callee`]).

use super::super::state::{LaneCall, LaneTicket, Watched};
use super::{Channel, NOBODY};
use crate::embedded::channel::lane::Ahead;
use crate::embedded::protocol::{Lineage, Link, TransactKind};

impl LaneCall {
    /// Who waits for it, nearest first.
    pub(in super::super) fn lineage(&self) -> Lineage {
        let header = &self.request.header;
        let caller = Link { proc: self.channel.peer, thread: header.thread };
        header.lineage.as_deref().unwrap_or(&Lineage::EMPTY).behind(caller)
    }

    pub(in super::super) fn reply_through_broker(&self) -> TransactKind {
        TransactKind::LaneReply {
            channel: self.channel.id,
            lane: self.request.lane,
            thread: self.request.header.thread,
            call_flags: self.request.header.flags,
        }
    }

    /// Leaves the answer to the broker.
    pub(in super::super) fn leave_to_broker(&self) {
        self.channel.end_serving(self.request.lane);
        self.channel.lanes.replied_by_broker(self.request.taken());
    }

    /// Nobody will answer any more.
    pub(in super::super) fn dead(&self) {
        self.fail(NOBODY);
    }

    /// Answers with an errno and wakes the caller.
    pub(in super::super) fn fail(&self, errno: i32) {
        self.channel.end_serving(self.request.lane);
        self.channel.lanes.fail(self.request.taken(), errno);
        self.channel.ring(self.request.header.thread);
    }
}

impl Watched {
    /// Where the reply to that lane's next call is expected to put its payload.
    pub(in super::super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.lanes.next_reply(self.lane))
    }

    /// Whether there is a call.
    pub(in super::super) fn has_call(&self) -> bool {
        self.channel.lanes.has_call(self.lane) && !self.channel.is_closed()
    }
}

impl LaneTicket {
    /// Where the next call is expected to put its payload.
    pub(in super::super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.lanes.next_request(self.call))
    }

    /// Whether the lane has what this call waits for.
    pub(in super::super) fn has_outcome(&self) -> bool {
        !self.by_broker && self.channel.lanes.is_answered(self.call)
    }

    /// Whether that is a reply.
    pub(in super::super) fn has_reply(&self) -> bool {
        !self.by_broker && self.channel.lanes.has_reply(self.call)
    }

    /// Whether nothing more will happen to the call, and nobody copies its reply any more.
    pub(super) fn is_over(&self) -> bool {
        self.channel.is_closed() || self.channel.lanes.is_answered_whole(self.call)
    }

    /// Where the peer was last seen.
    pub(in super::super) fn peer_cpu(&self) -> Option<u32> {
        self.channel.cpu_hint()
    }
}
