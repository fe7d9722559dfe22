//! Room: which channels and bindings there are, so that plain calls may pass the broker by.
//! Not here: the lanes themselves, their memory.
//!
//! A channel is made by the first plain call from one process to another; a binding lets calls of one
//! handle use it. The end of a process ends all its channels and all bindings in them at once: its
//! peers hear that as [`Item::PeerGone`], not binding by binding.

use std::collections::BTreeMap;

use super::Core;
use super::node::NodeKey;
use super::outside::{GATE_CLOSED, GATE_FROZEN, Outside};
use crate::embedded::protocol::{Item, ProcId};

/// Channels into one process: what its ready bits have room for; also the most out of one.
const CHANNELS_MAX: usize = 1024;

/// Where calls of a handle may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    channel: u32,
    binding: u32,
}

/// The ready bits of a process that are in use.
#[derive(Debug, Default)]
pub(super) struct Bits([u64; CHANNELS_MAX / 64]);

impl Bits {
    /// Takes the lowest free one.
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

/// A way for calls from one process to another.
#[derive(Debug)]
pub(super) struct Channel {
    caller: ProcId,
    callee: ProcId,
    bit: u32,
    /// One side is gone.
    closed: bool,
    /// One end has no use for it; both live.
    shut: bool,
    last_binding: u32,
    /// The caller's handle of each binding.
    bindings: BTreeMap<u32, u32>,
}

impl Core {
    /// After a call that a lane could have carried: the next one of this handle may go through a lane.
    pub(super) fn open_lane(
        &mut self,
        from: ProcId,
        handle: u32,
        node: NodeKey,
        to: ProcId,
        outside: &mut impl Outside,
    ) {
        let lanes = |proc: ProcId| {
            let client = self.procs.get(&proc).map(|p| &p.client);
            client.is_some_and(|client| client.lanes && client.map_size > 0)
        };
        let fit = lanes(from) && lanes(to) && from != to;
        let secret = self.nodes.get(&node).is_none_or(|node| node.wants_security_context());
        if !fit || secret || self.bound(from, handle).is_none_or(|bound| bound.is_some()) {
            return;
        }
        let channel = match self.routes.get(&(from, to)) {
            Some(&channel) => Some(channel),
            None => self.make_channel(from, to, outside),
        };
        if let Some(channel) = channel {
            self.bind(channel, handle, node, outside);
        }
    }

    fn make_channel(&mut self, from: ProcId, to: ProcId, outside: &mut impl Outside) -> Option<u32> {
        let caller = self.procs.get(&from).filter(|p| p.channels.len() < 2 * CHANNELS_MAX)?;
        let (caller_pid, caller_euid) = (caller.client.pid, caller.client.euid);
        let callee = self.procs.get_mut(&to)?;
        let (callee_pid, callee_euid) = (callee.client.pid, callee.client.euid);
        let bit = callee.bits.take()?;
        self.last_channel += 1;
        let channel = self.last_channel;
        if !outside.make_channel(channel, bit, from, to) {
            callee.bits.free(bit);
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
        outside.item(to, Item::Channel { channel, caller: false, bit, peer: from, peer_pid, peer_euid });
        let (peer_pid, peer_euid) = (callee_pid, callee_euid);
        outside.item(from, Item::Channel { channel, caller: true, bit, peer: to, peer_pid, peer_euid });
        Some(channel)
    }

    fn bind(&mut self, channel: u32, handle: u32, node: NodeKey, outside: &mut impl Outside) {
        let Some(way) = self.channels.get_mut(&channel) else { return };
        way.last_binding += 1;
        let (binding, caller, callee) = (way.last_binding, way.caller, way.callee);
        way.bindings.insert(binding, handle);
        self.set_bound(caller, handle, Some(Bound { channel, binding }));
        let Some(node) = self.nodes.get(&node) else { return };
        let (ptr, cookie, flags, number) = (node.ptr, node.cookie, node.flags, node.debug_id);
        outside.item(callee, Item::BindNode { channel, binding, ptr, cookie, flags });
        outside.item(caller, Item::BindHandle { channel, binding, handle, flags, node: number });
    }

    /// A handle is let go of: its binding ends. Handle 0 needs no reference, so it keeps its own.
    pub(super) fn unbind_handle(&mut self, proc: ProcId, handle: u32, outside: &mut impl Outside) {
        if handle == 0 {
            return;
        }
        let Some(Some(Bound { channel, binding })) = self.bound(proc, handle) else { return };
        self.set_bound(proc, handle, None);
        let Some(way) = self.channels.get_mut(&channel).filter(|way| !way.closed) else { return };
        way.bindings.remove(&binding);
        outside.item(way.caller, Item::Unbind { channel, binding });
        outside.item(way.callee, Item::Unbind { channel, binding });
    }

    /// The binding of a handle that can be called; `None` if there is no such handle.
    fn bound(&self, proc: ProcId, handle: u32) -> Option<Option<Bound>> {
        let proc = self.procs.get(&proc)?;
        if handle == 0 { Some(proc.manager_bound) } else { proc.refs.get(handle).map(|held| held.bound) }
    }

    fn set_bound(&mut self, proc: ProcId, handle: u32, bound: Option<Bound>) {
        let Some(proc) = self.procs.get_mut(&proc) else { return };
        if handle == 0 {
            proc.manager_bound = bound;
        } else if let Some(held) = proc.refs.get_mut(handle) {
            held.bound = bound;
        }
    }

    /// The caller of a channel whose callee this is: `Some(None)` if the caller is gone.
    pub(super) fn caller_of(&self, channel: u32, callee: ProcId) -> Option<Option<ProcId>> {
        let way = self.channels.get(&channel).filter(|way| way.callee == callee)?;
        Some((!way.closed).then_some(way.caller))
    }

    /// A process froze or thawed: what stands at the gates of the channels into it.
    pub(super) fn set_gates(&mut self, callee: ProcId, outside: &mut impl Outside) {
        let Some(proc) = self.procs.get(&callee) else { return };
        let gate = if proc.freezing.frozen { GATE_FROZEN } else { 0 };
        for channel in &proc.channels {
            if self.channels.get(channel).is_some_and(|way| way.callee == callee && !way.closed && !way.shut)
            {
                outside.set_gate(*channel, gate);
            }
        }
        if gate == 0 {
            // Whoever looked for a call while it was held, and sleeps again.
            outside.wake_all(callee);
        }
    }

    /// A process is gone: all its channels close, and each peer hears of it once.
    pub(super) fn close_channels(&mut self, gone: ProcId, outside: &mut impl Outside) {
        let Some(proc) = self.procs.get_mut(&gone) else { return };
        let mut peers = std::collections::BTreeSet::new();
        for channel in std::mem::take(&mut proc.channels) {
            let Some(way) = self.channels.get_mut(&channel) else { continue };
            if way.closed {
                // The other side went first, and was the last to know of it.
                self.channels.remove(&channel);
                outside.drop_channel(channel);
                continue;
            }
            way.closed = true;
            let (caller, callee) = (way.caller, way.callee);
            let bindings = std::mem::take(&mut way.bindings);
            self.routes.remove(&(caller, callee));
            outside.set_gate(channel, GATE_CLOSED);
            for handle in bindings.into_values() {
                self.set_bound(caller, handle, None);
            }
            peers.insert(if caller == gone { callee } else { caller });
        }
        for peer in peers {
            outside.item(peer, Item::PeerGone { peer: gone });
        }
    }

    /// The survivor of a closed channel is done with it.
    pub(super) fn drop_channel(&mut self, proc: ProcId, channel: u32, outside: &mut impl Outside) {
        if self.has_channel(proc, channel).is_none() {
            return;
        }
        let Some(way) = self.channels.get_mut(&channel) else { return };
        if !way.closed {
            // One end has no room for it. It stays known, so that no other is made in its place.
            way.shut = true;
            outside.set_gate(channel, GATE_CLOSED);
            return;
        }
        let Some(survivor) = self.procs.get_mut(&proc).filter(|p| p.channels.contains(&channel)) else {
            return;
        };
        survivor.channels.remove(&channel);
        if way.callee == proc {
            survivor.bits.free(way.bit);
        }
        self.channels.remove(&channel);
        outside.drop_channel(channel);
    }

    /// Whether this process has an end of this channel: then it may have its memory.
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
