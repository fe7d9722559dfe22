//! Table of channels and bindings, through which plain calls bypass the broker.
//!
//! The first plain call from one process to another makes a channel; a binding lets calls to one handle use it. When
//! a process ends, all its channels end with their bindings: a peer receives one [`Item::PeerGone`], not one item
//! per binding.

use std::collections::BTreeMap;

use super::Core;
use super::host::Host;
use super::node::NodeKey;
use crate::rpc::protocol::{Item, ProcId};
use crate::shm::call_slot::{CLOSED, FROZEN};

/// Most channels into one process (its ready bits hold no more), and most out of one.
const CHANNELS_MAX: usize = 1024;

/// Channel and binding of a handle's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    channel: u32,
    binding: u32,
}

/// Set of a process's ready bits that are in use.
#[derive(Debug, Default)]
pub(super) struct ReadyBits([u64; CHANNELS_MAX / 64]);

impl ReadyBits {
    /// Takes the lowest free bit.
    fn take(&mut self) -> Option<u32> {
        let (at, word) = self.0.iter_mut().enumerate().find(|(_, word)| **word != u64::MAX)?;
        let bit = word.trailing_ones();
        *word |= 1 << bit;
        Some(at as u32 * 64 + bit)
    }

    fn free(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut(bit as usize / 64) {
            *word &= !(1 << (bit % 64));
        }
    }
}

/// Channel for calls from one process to another.
#[derive(Debug)]
pub(super) struct Channel {
    caller: ProcId,
    callee: ProcId,
    bit: u32,
    /// One side has ended.
    closed: bool,
    /// One side cannot use the channel; both live.
    shut: bool,
    last_binding: u32,
    /// The caller's handle of each binding.
    bindings: BTreeMap<u32, u32>,
}

impl Core {
    /// Binds a handle after a call that fits a call slot: the handle's next call may go through one.
    pub(super) fn open_call_slot(
        &mut self,
        from: ProcId,
        handle: u32,
        node: NodeKey,
        to: ProcId,
        host: &mut impl Host,
    ) {
        let call_slots = |proc: ProcId| {
            let client = self.procs.get(&proc).map(|p| &p.client);
            client.is_some_and(|client| client.call_slots && client.map_size > 0)
        };
        let fit = call_slots(from) && call_slots(to) && from != to;
        let secret = self.nodes.get(&node).is_none_or(|node| node.wants_security_context());
        if !fit || secret || self.bound(from, handle).is_none_or(|bound| bound.is_some()) {
            return;
        }
        let channel = match self.routes.get(&(from, to)) {
            Some(&channel) => Some(channel),
            None => self.make_channel(from, to, host),
        };
        if let Some(channel) = channel {
            self.bind(channel, handle, node, host);
        }
    }

    fn make_channel(&mut self, from: ProcId, to: ProcId, host: &mut impl Host) -> Option<u32> {
        let caller = self.procs.get(&from).filter(|p| p.channels.len() < 2 * CHANNELS_MAX)?;
        let (caller_pid, caller_euid) = (caller.client.pid, caller.client.euid);
        let callee = self.procs.get_mut(&to)?;
        let (callee_pid, callee_euid) = (callee.client.pid, callee.client.euid);
        let bit = callee.ready_bits.take()?;
        self.last_channel += 1;
        let channel = self.last_channel;
        if !host.make_channel(channel, bit, from, to) {
            callee.ready_bits.free(bit);
            return None;
        }
        callee.channels.insert(channel);
        if let Some(caller) = self.procs.get_mut(&from) {
            caller.channels.insert(channel);
        }
        let made = Channel {
            caller: from,
            callee: to,
            bit,
            closed: false,
            shut: false,
            last_binding: 0,
            bindings: BTreeMap::new(),
        };
        self.channels.insert(channel, made);
        self.routes.insert((from, to), channel);
        let (peer_pid, peer_euid) = (caller_pid, caller_euid);
        host.item(to, Item::Channel { channel, caller: false, bit, peer: from, peer_pid, peer_euid });
        let (peer_pid, peer_euid) = (callee_pid, callee_euid);
        host.item(from, Item::Channel { channel, caller: true, bit, peer: to, peer_pid, peer_euid });
        Some(channel)
    }

    fn bind(&mut self, channel: u32, handle: u32, node: NodeKey, host: &mut impl Host) {
        let Some(way) = self.channels.get_mut(&channel) else { return };
        way.last_binding += 1;
        let (binding, caller, callee) = (way.last_binding, way.caller, way.callee);
        way.bindings.insert(binding, handle);
        self.set_bound(caller, handle, Some(Bound { channel, binding }));
        let Some(node) = self.nodes.get_mut(&node) else { return };
        if node.tag == 0
            && let Some(owner) = self.procs.get_mut(&callee)
        {
            node.tag = owner.tags.take(|tag| host.tagged(callee, tag) > 0);
        }
        let (ptr, cookie, flags, number, tag) = (node.ptr, node.cookie, node.flags, node.debug_id, node.tag);
        host.item(callee, Item::BindNode { channel, binding, ptr, cookie, flags, tag });
        host.item(caller, Item::BindHandle { channel, binding, handle, flags, node: number });
    }

    /// Ends the binding of a released handle. Handle 0 needs no reference, so it keeps its binding.
    pub(super) fn unbind_handle(&mut self, proc: ProcId, handle: u32, host: &mut impl Host) {
        if handle == 0 {
            return;
        }
        let Some(Some(Bound { channel, binding })) = self.bound(proc, handle) else { return };
        self.set_bound(proc, handle, None);
        let Some(way) = self.channels.get_mut(&channel).filter(|way| !way.closed) else { return };
        way.bindings.remove(&binding);
        host.item(way.caller, Item::Unbind { channel, binding });
        host.item(way.callee, Item::Unbind { channel, binding });
    }

    /// Binding of a callable handle; `None` if the handle does not exist.
    fn bound(&self, proc: ProcId, handle: u32) -> Option<Option<Bound>> {
        let proc = self.procs.get(&proc)?;
        if handle == 0 { Some(proc.manager_bound) } else { proc.refs.get(handle).map(|held| held.bound) }
    }

    /// The node that a binding of a channel leads to.
    pub(super) fn bound_node(&self, channel: u32, binding: u32) -> Option<NodeKey> {
        let way = self.channels.get(&channel)?;
        let caller = self.procs.get(&way.caller)?;
        match *way.bindings.get(&binding)? {
            0 => self.contexts.get(&caller.context)?.manager,
            handle => Some(caller.refs.get(handle)?.node),
        }
    }

    /// Number of calls through call slots that hold a node of this process as their target: those that no thread has
    /// read, and those whose buffer is not freed. In this order: a call that is being read may be both, but not neither.
    pub(super) fn slot_calls_to(&self, owner: ProcId, key: NodeKey, host: &impl Host) -> u64 {
        let is_to = |(channel, binding): &(u32, u32)| self.bound_node(*channel, *binding) == Some(key);
        let unread = host.unread_calls(owner).iter().filter(|call| is_to(call)).count() as u64;
        let tag = self.nodes.get(&key).map_or(0, |node| node.tag);
        unread + if tag == 0 { 0 } else { host.tagged(owner, tag) }
    }

    fn set_bound(&mut self, proc: ProcId, handle: u32, bound: Option<Bound>) {
        let Some(proc) = self.procs.get_mut(&proc) else { return };
        if handle == 0 {
            proc.manager_bound = bound;
        } else if let Some(held) = proc.refs.get_mut(handle) {
            held.bound = bound;
        }
    }

    /// Caller of a channel into this process: `Some(None)` if the caller has ended.
    pub(super) fn caller_of(&self, channel: u32, callee: ProcId) -> Option<Option<ProcId>> {
        let way = self.channels.get(&channel).filter(|way| way.callee == callee)?;
        Some((!way.closed).then_some(way.caller))
    }

    /// Sets the gates of the channels into a process that froze or thawed.
    pub(super) fn set_gates(&mut self, callee: ProcId, host: &mut impl Host) {
        let Some(proc) = self.procs.get(&callee) else { return };
        let gate = if proc.freezing.frozen { FROZEN } else { 0 };
        for channel in &proc.channels {
            if self.channels.get(channel).is_some_and(|way| way.callee == callee && !way.closed && !way.shut)
            {
                host.set_gate(*channel, gate);
            }
        }
        if gate == 0 {
            // Threads that looked for a call while the gate held it sleep again.
            host.wake_all(callee);
        }
    }

    /// Closes all channels of a process that ended and notifies each peer once.
    pub(super) fn close_channels(&mut self, gone: ProcId, host: &mut impl Host) {
        let Some(proc) = self.procs.get_mut(&gone) else { return };
        let mut peers = std::collections::BTreeSet::new();
        for channel in std::mem::take(&mut proc.channels) {
            let Some(way) = self.channels.get_mut(&channel) else { continue };
            if way.closed {
                // The other side ended earlier, and no one else uses the channel.
                self.channels.remove(&channel);
                host.drop_channel(channel);
                continue;
            }
            way.closed = true;
            let (caller, callee) = (way.caller, way.callee);
            let bindings = std::mem::take(&mut way.bindings);
            self.routes.remove(&(caller, callee));
            host.set_gate(channel, CLOSED);
            for handle in bindings.into_values() {
                self.set_bound(caller, handle, None);
            }
            peers.insert(if caller == gone { callee } else { caller });
        }
        for peer in peers {
            host.item(peer, Item::PeerGone { peer: gone });
        }
    }

    /// Drops a closed channel that its surviving side no longer uses.
    pub(super) fn drop_channel(&mut self, proc: ProcId, channel: u32, host: &mut impl Host) {
        if self.has_channel(proc, channel).is_none() {
            return;
        }
        let Some(way) = self.channels.get_mut(&channel) else { return };
        if !way.closed {
            // One side has no room for the channel. It stays in the table, so that no other is made in its place.
            way.shut = true;
            host.set_gate(channel, CLOSED);
            return;
        }
        let Some(survivor) = self.procs.get_mut(&proc).filter(|p| p.channels.contains(&channel)) else {
            return;
        };
        survivor.channels.remove(&channel);
        if way.callee == proc {
            survivor.ready_bits.free(way.bit);
        }
        self.channels.remove(&channel);
        host.drop_channel(channel);
    }

    /// Whether a process is a side of a channel and may map its memory.
    #[must_use]
    pub fn has_channel(&self, proc: ProcId, channel: u32) -> Option<ProcId> {
        let way = self.channels.get(&channel)?;
        match proc {
            _ if proc == way.caller => Some(way.callee),
            _ if proc == way.callee => Some(way.caller),
            _ => None,
        }
    }
}
