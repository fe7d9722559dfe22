//! A call through a call slot, from the caller's and the callee's side.
//! Not here: its effects (`slot_calls`), its memory (`shm::call_slot`).

use std::sync::Arc;

use crate::client::channel::Channel;
use crate::priority::Restore;
use crate::rpc::protocol::{Answers, Lineage, Link, TransactKind};
use crate::shm::call_slot::{self, ReplyHeader};
use crate::shm::lease::Tag;

/// The node of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) ptr: u64,
    pub(crate) cookie: u64,
    pub(crate) flags: u32,
    /// Place in the node pins.
    pub(crate) pin: u32,
    /// Mark of its calls' buffers.
    pub(crate) tag: Tag,
}

/// A boxed call: it is large, and its channel reuses the box for the next call.
pub(crate) type BoxedCall = Box<SlotCall>;

/// A call that arrived in a call slot.
#[derive(Debug)]
pub(crate) struct SlotCall {
    pub(crate) channel: Arc<Channel>,
    pub(crate) request: call_slot::Request,
    /// The called node, once the call was accepted.
    pub(crate) node: Node,
    /// Scheduling of the serving thread before the call, if the call changed it.
    pub(crate) restore: Restore,
}

impl SlotCall {
    pub(crate) fn new(channel: Arc<Channel>) -> Self {
        let (request, node) = (call_slot::Request::default(), Node::default());
        Self { channel, request, node, restore: Restore::default() }
    }

    /// The threads that wait for the call, the caller first.
    pub(crate) fn lineage(&self) -> Lineage {
        let header = &self.request.header;
        let caller = Link { proc: self.channel.peer, thread: header.thread };
        header.lineage.as_deref().unwrap_or(&Lineage::EMPTY).behind(caller)
    }

    /// The kind of a reply that is sent through the broker.
    pub(crate) fn reply_through_broker(&self) -> TransactKind {
        TransactKind::SlotReply {
            channel: self.channel.id,
            call_slot: self.request.call_slot,
            thread: self.request.header.thread,
            call_flags: self.request.header.flags,
        }
    }
}

/// A call that this process made in a call slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotTicket {
    pub(crate) channel: Arc<Channel>,
    pub(crate) call: call_slot::Call,
    pub(crate) handle: u32,
    /// `TF_*` bits of the call.
    pub(crate) flags: u32,
    /// The callee gave the reply to the broker.
    pub(crate) by_broker: bool,
    /// The call's number in trace events; 0 if this process does not trace.
    pub(crate) trace_number: u32,
}

impl SlotTicket {
    pub(crate) fn answers(&self) -> Answers {
        Answers::CallSlot { channel: self.channel.id, call_slot: self.call.call_slot }
    }
}

/// A reply in a call slot.
#[derive(Debug)]
pub(crate) struct SlotReply {
    pub(crate) ticket: SlotTicket,
    pub(crate) header: ReplyHeader,
}

/// How a call in a call slot ended.
#[derive(Debug)]
pub(crate) enum SlotEnd {
    Replied(ReplyHeader),
    /// The callee's thread is gone.
    Dead,
    /// The callee failed the call with this errno.
    Failed(i32),
    /// The reply is corrupt.
    Nonsense,
}
