//! The channels of a process, with the handles and nodes that calls through them may use.
//! Not here: the events that change the table (`broker_items`, `slot_calls`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::QuickMap;
use super::node_pins::NodePins;
use super::slot_call::{BoxedCall, Node, SlotCall, SlotTicket};
use crate::client::channel::Channel;
use crate::rpc::protocol::ProcId;
use crate::shm::call_slot::CALL_SLOTS;

/// Handles from this number on always use the broker. Bounds the table, whatever the broker says.
const MAX_HANDLES: usize = 1 << 16;

/// The route of a handle's calls through a channel.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) channel: Arc<Channel>,
    pub(crate) number: u32,
    /// Flags of the node.
    pub(crate) flags: u32,
    /// The node's number in trace events.
    pub(crate) node: u32,
    /// Number of calls that have not ended.
    pub(super) calls: u32,
    /// Commands held until those calls end, because they could end the handle.
    pub(super) later: Vec<u32>,
}

impl Binding {
    pub(super) fn new(channel: Arc<Channel>, number: u32, flags: u32, node: u32) -> Self {
        Self { channel, number, flags, node, calls: 0, later: Vec::new() }
    }
}

/// A channel with incoming calls.
#[derive(Debug)]
struct Inbound {
    channel: Arc<Channel>,
    /// Boxes of answered calls, for reuse: a steady stream of calls allocates nothing.
    spare: Vec<BoxedCall>,
}

/// All channels of a process, with their bindings.
#[derive(Debug, Default)]
pub(crate) struct ChannelTable {
    /// Channels in which this process calls, by channel id.
    pub(super) outbound: HashMap<u32, Arc<Channel>>,
    /// Channels in which this process is called, by bit in its ready bits.
    inbound: Vec<Option<Inbound>>,
    /// Bindings by handle. The broker assigns the lowest numbers first, so gaps are few.
    handles: Vec<Option<Binding>>,
    /// Nodes by channel and binding.
    nodes: QuickMap<(u32, u32), Node>,
    pub(super) pins: NodePins,
    /// Calls of exited threads; their call slots become free once answered.
    pub(crate) orphans: Vec<SlotTicket>,
    /// Calls with bindings that the broker has not announced yet.
    pub(super) early: Vec<BoxedCall>,
}

impl ChannelTable {
    /// Adds a channel in which this process calls.
    pub(crate) fn add_outbound(&mut self, channel: Arc<Channel>) {
        self.outbound.insert(channel.id, channel);
    }

    /// Adds a channel in which this process is called.
    pub(crate) fn add_inbound(&mut self, channel: Arc<Channel>) {
        let place = channel.bit as usize;
        if self.inbound.len() <= place {
            self.inbound.resize_with(place + 1, || None);
        }
        self.inbound[place] = Some(Inbound { channel, spare: Vec::with_capacity(CALL_SLOTS as usize) });
    }

    /// The inbound channel of a ready bit.
    pub(crate) fn inbound(&self, bit: u32) -> Option<&Arc<Channel>> {
        self.inbound.get(bit as usize)?.as_ref().map(|inbound| &inbound.channel)
    }

    /// Whether no orphaned or early call has to be checked again.
    pub(crate) fn is_settled(&self) -> bool {
        self.orphans.is_empty() && self.early.is_empty()
    }

    /// A box for a call from this channel, reused if possible.
    pub(crate) fn spare_call(&mut self, channel: &Arc<Channel>) -> BoxedCall {
        let kept = self.inbound_mut(channel).and_then(|inbound| inbound.spare.pop());
        kept.unwrap_or_else(|| Box::new(SlotCall::new(channel.clone())))
    }

    /// Keeps the box of an ended call for reuse.
    pub(crate) fn keep_call(&mut self, call: BoxedCall) {
        if let Some(inbound) = self.inbound_mut(&call.channel) {
            inbound.spare.push(call);
        }
    }

    fn inbound_mut(&mut self, channel: &Arc<Channel>) -> Option<&mut Inbound> {
        let inbound = self.inbound.get_mut(channel.bit as usize)?.as_mut()?;
        Arc::ptr_eq(&inbound.channel, channel).then_some(inbound)
    }

    /// The route of a handle's calls; `None`: through the broker.
    pub(crate) fn handle(&mut self, handle: u32) -> Option<&mut Binding> {
        self.handles.get_mut(handle as usize)?.as_mut()
    }

    pub(super) fn bind_handle(&mut self, handle: u32, binding: Binding) {
        let place = handle as usize;
        if place >= MAX_HANDLES {
            return;
        }
        if self.handles.len() <= place {
            self.handles.resize_with(place + 1, || None);
        }
        self.handles[place] = Some(binding);
    }

    /// The node of a binding.
    pub(super) fn node(&self, binding: (u32, u32)) -> Option<Node> {
        self.nodes.get(&binding).copied()
    }

    pub(super) fn bind_node(&mut self, (channel, binding): (u32, u32), node: Node) {
        let mut inbound = self.inbound.iter().flatten().map(|inbound| &inbound.channel);
        // `None`: the channel could not be opened.
        let Some(open) = inbound.find(|inbound| inbound.id == channel) else { return };
        open.last_binding.store(binding, Ordering::Relaxed);
        let pin = self.pins.bind(node.ptr);
        if let Some(other) = self.nodes.insert((channel, binding), Node { pin, ..node }) {
            self.pins.unbind(other.pin);
        }
    }

    pub(super) fn unbind(&mut self, channel: u32, number: u32) {
        if let Some(node) = self.nodes.remove(&(channel, number)) {
            self.pins.unbind(node.pin);
        }
        let ends = |bound: &mut Binding| bound.channel.id == channel && bound.number == number;
        self.handles.iter_mut().for_each(|place| drop(place.take_if(ends)));
    }

    /// Removes a peer. Returns the held commands with their handles, and the peer's channels.
    pub(super) fn remove_peer(&mut self, peer: ProcId) -> (Vec<(u32, u32)>, Vec<Arc<Channel>>) {
        let mut commands = Vec::new();
        for (handle, place) in (0..).zip(&mut self.handles) {
            if let Some(bound) = place.take_if(|bound| bound.channel.peer == peer) {
                commands.extend(bound.later.into_iter().map(|command| (command, handle)));
            }
        }
        self.early.retain(|call| call.channel.peer != peer);
        let of_peer = |channel: &Arc<Channel>| channel.peer == peer;
        let mut gone: Vec<_> =
            self.outbound.extract_if(|_, channel| of_peer(channel)).map(|(_, channel)| channel).collect();
        for place in &mut self.inbound {
            gone.extend(place.take_if(|inbound| of_peer(&inbound.channel)).map(|inbound| inbound.channel));
        }
        for channel in &gone {
            for (_, node) in self.nodes.extract_if(|(of, _), _| *of == channel.id) {
                self.pins.unbind(node.pin);
            }
        }
        (commands, gone)
    }

    /// Closes all channels.
    pub(crate) fn close_all(&self) {
        let inbound = self.inbound.iter().flatten().map(|inbound| &inbound.channel);
        self.outbound.values().chain(inbound).for_each(|channel| channel.close());
    }

    /// Ids of all channels.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn ids(&self) -> Vec<u32> {
        let inbound = self.inbound.iter().flatten().map(|inbound| inbound.channel.id);
        self.outbound.keys().copied().chain(inbound).collect()
    }
}
