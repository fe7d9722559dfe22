//! Room: the books of a process about its channels: which handles and nodes calls may use, and what they use.
//! Not here: when they change (`super`).

use std::collections::HashMap;
use std::sync::Arc;

use super::super::sched::Saved;
use super::super::state::{BoxedCall, LaneCall, LaneTicket, Quick};
use super::Channel;
use super::held::HeldNodes;
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane;

/// Calls of handles from this one on go through the broker: whatever lies in the inbox, the table stays small.
const MOST_HANDLES: usize = 1 << 16;

/// What calls of a handle go through.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) channel: Arc<Channel>,
    pub(super) number: u32,
    pub(super) flags: u32,
    /// The node's number, for people.
    pub(super) node: u32,
    /// Calls under way, and commands that wait for their end because they could end the handle.
    pub(super) calls: u32,
    pub(super) later: Vec<u32>,
}

/// What calls with a binding mean.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Node {
    pub(in super::super) ptr: u64,
    pub(in super::super) cookie: u64,
    pub(in super::super) flags: u32,
    /// Its place among those that calls hold.
    pub(in super::super) held: u32,
}

/// A channel in which calls come.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) channel: Arc<Channel>,
    /// Boxes of calls that were answered, for those to come: after the first ones none is made.
    spare: Vec<BoxedCall>,
}

impl Inbound {
    pub(super) fn new(channel: Arc<Channel>) -> Self {
        Self { channel, spare: Vec::with_capacity(lane::LANES as usize) }
    }

    /// Takes the call of one lane, if there is one.
    #[inline(always)] // the usual one of its two callers is the hot path
    pub(super) fn take(&mut self, lane: u32) -> Result<Option<BoxedCall>, Corrupt> {
        if self.spare.is_empty() {
            self.make_spare();
        }
        let taken = self.spare.last_mut().map(|spare| self.channel.lanes.take_into(lane, &mut spare.request));
        match taken {
            Some(Ok(true)) => Ok(self.spare.pop()),
            Some(Err(corrupt)) => Err(corrupt),
            _ => Ok(None),
        }
    }

    #[cold]
    fn make_spare(&mut self) {
        let (channel, request) = (self.channel.clone(), lane::Request::default());
        self.spare.push(Box::new(LaneCall {
            channel,
            request,
            node: Node::default(),
            found: (0, 0),
            saved: Saved::default(),
        }));
    }
}

/// See the room.
#[derive(Debug, Default)]
pub(in super::super) struct Channels {
    pub(super) outbound: HashMap<u32, Arc<Channel>>,
    pub(super) inbound: HashMap<u32, Arc<Channel>>,
    pub(super) by_bit: Vec<Option<Inbound>>,
    /// By handle; the broker gives the lowest ones out first, so there are hardly more places than handles.
    pub(super) handles: Vec<Option<Binding>>,
    pub(super) nodes: Quick<(u32, u32), Node>,
    /// Counts their changes.
    pub(super) renewals: u64,
    pub(super) held: HeldNodes,
    /// Calls whose threads exited; their lanes are free once they are answered.
    pub(super) orphans: Vec<LaneTicket>,
    /// Calls with bindings of which this process has not heard yet.
    pub(super) early: Vec<BoxedCall>,
}

impl Channels {
    /// Whether nothing waits to be looked at again.
    pub(in super::super) fn is_quiet(&self) -> bool {
        self.orphans.is_empty() && self.early.is_empty()
    }

    /// Finds what a call is for; whether its binding is known.
    #[inline]
    pub(super) fn find_node(&mut self, call: &mut LaneCall) -> bool {
        let found = (call.request.header.binding, self.renewals);
        // Before the first change there are none.
        call.found == found && self.renewals > 0 || self.look_up(call, found)
    }

    #[inline(never)]
    fn look_up(&self, call: &mut LaneCall, found: (u32, u64)) -> bool {
        let Some(node) = self.nodes.get(&(call.channel.id, found.0)) else { return false };
        (call.node, call.found) = (*node, found);
        true
    }

    /// The books of a channel in which calls come, unless it is gone.
    #[inline]
    pub(super) fn inbound(&mut self, channel: &Arc<Channel>) -> Option<&mut Inbound> {
        let inbound = self.by_bit.get_mut(channel.bit as usize)?.as_mut()?;
        Arc::ptr_eq(&inbound.channel, channel).then_some(inbound)
    }

    /// A call is over.
    #[inline]
    pub(in super::super) fn keep_box(&mut self, call: BoxedCall) {
        if let Some(inbound) = self.inbound(&call.channel) {
            inbound.spare.push(call);
        }
    }

    /// What calls of a handle go through; `None`: the broker.
    #[inline]
    pub(super) fn handle(&mut self, handle: u32) -> Option<&mut Binding> {
        self.handles.get_mut(handle as usize)?.as_mut()
    }

    pub(super) fn bind(&mut self, handle: u32, binding: Binding) {
        let place = handle as usize;
        if place >= MOST_HANDLES {
            return;
        }
        if self.handles.len() <= place {
            self.handles.resize_with(place + 1, || None);
        }
        self.handles[place] = Some(binding);
    }
}
