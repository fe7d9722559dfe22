//! Room: calls that never see the broker: what becomes of channels, handles and nodes that they may use.
//!
//! - [`channel`]: one end of a channel. - [`books`]: all of them, and what calls use. - [`held`]: the nodes among that.
//! - [`caller`], [`callee`]: a call's way through the lanes, seen from either end. - [`reply`]: the end of it.
//! - [`calls`]: what it knows by itself.
//!
//! Not here: the lanes' memory and states (`channel::lane`), the way through the broker (`transact`).
//! Facts: contract TX-01 to TX-06, TX-10, REF-13, BUF-05. What ends a handle or node while a call
//! uses it is held back here until the call is over, since the broker does not know of it.

mod books;
mod callee;
mod caller;
mod calls;
mod channel;
mod held;
mod reply;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionData;
use abi::{CommandWord, Handle};
use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;

pub(super) use books::{Channels, Node};
pub(super) use channel::{Channel, Wake};

use super::area::Lent;
#[cfg(test)]
use super::state::Watched;
use super::state::{Calling, Frame, LaneTicket, State, Todo};
use super::write::lets_go;
use super::{Guard, Process};
use crate::embedded::channel::doorbell::{self, BellMemory, Doorbells};
use crate::embedded::channel::lane::{self, LaneMemory, Lanes};
use crate::embedded::objects::Layout;
use crate::embedded::protocol::{Answers, Item, ProcId, Request, ThreadKey};
use books::{Binding, Inbound};

const EFAULT: i32 = 14;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
/// In place of an errno: the thread that served the call is gone.
const NOBODY: i32 = 0;

/// The books.
impl Process {
    pub(super) fn accept_channel(&self, st: &mut State, item: Item) {
        match item {
            Item::Channel { channel, caller, bit, peer, peer_pid, peer_euid } => {
                let request = Request::TakeChannel { channel };
                let fetched = self.line.fetch(ThreadKey::NOBODY, &request);
                let memory = fetched.ok().filter(|(errno, _)| *errno == 0);
                let Some((lanes, bells)) = memory.and_then(|(_, descriptors)| open_channel(descriptors))
                else {
                    // Out of descriptors or memory: calls go through the broker as before, but for one that is in the
                    // lane already, which fails (`give_up_lane`).
                    return self.post(&Request::DropChannel { channel });
                };
                let peer = (peer, peer_pid, peer_euid);
                let made = Arc::new(Channel::new((channel, bit), peer, lanes, bells));
                if caller {
                    st.channels.outbound.insert(channel, made);
                } else {
                    let place = bit as usize;
                    if st.channels.by_bit.len() <= place {
                        st.channels.by_bit.resize_with(place + 1, || None);
                    }
                    st.channels.by_bit[place] = Some(Inbound::new(made.clone()));
                    st.channels.inbound.insert(channel, made);
                    // Its caller may know it sooner: a mark that nobody could make sense of comes back.
                    self.bells.post(bit);
                }
            }
            // Of a channel that could not be opened.
            Item::BindNode { channel, .. } if !st.channels.inbound.contains_key(&channel) => {}
            Item::BindNode { channel, binding, ptr, cookie, flags } => {
                st.channels.renewals += 1;
                let held = st.channels.held.bind(ptr);
                let node = Node { ptr, cookie, flags, held };
                if let Some(other) = st.channels.nodes.insert((channel, binding), node) {
                    st.channels.held.unbind(other.held);
                }
                if let Some(channel) = st.channels.inbound.get(&channel) {
                    channel.last_binding.store(binding, Ordering::Relaxed);
                }
            }
            Item::BindHandle { channel, binding, handle, flags, node } => {
                if let Some(channel) = st.channels.outbound.get(&channel).cloned() {
                    let made = Binding { channel, number: binding, flags, node, calls: 0, later: Vec::new() };
                    st.channels.bind(handle, made);
                }
            }
            Item::Unbind { channel, binding } => {
                st.channels.renewals += 1;
                if let Some(node) = st.channels.nodes.remove(&(channel, binding)) {
                    st.channels.held.unbind(node.held);
                }
                let ends = |bound: &mut Binding| bound.channel.id == channel && bound.number == binding;
                st.channels.handles.iter_mut().for_each(|place| drop(place.take_if(ends)));
            }
            _ => {}
        }
    }

    /// Every call that the peer has not answered is dead-replied; calls of the peer are served to
    /// their end and their replies dropped.
    pub(super) fn accept_peer_gone(&self, st: &mut State, me: u32, peer: ProcId) {
        // What it sent before its end counts.
        self.drain_lanes(st, me);
        let Channels { outbound, inbound, by_bit, handles, nodes, renewals, held, early, .. } =
            &mut st.channels;
        for (handle, place) in (0..).zip(handles) {
            // What waited for the end of its calls.
            let Some(bound) = place.take_if(|bound| bound.channel.peer == peer) else { continue };
            bound.later.iter().for_each(|&command| self.post(&Request::Count { command, handle }));
        }
        early.retain(|call| call.channel.peer != peer);
        st.threads.iter_mut().flatten().for_each(|thread| {
            thread.watched.take_if(|watched| watched.channel.peer == peer);
        });
        let gone = |channel: &Arc<Channel>| channel.peer == peer;
        for (id, channel) in outbound
            .extract_if(|_, channel| gone(channel))
            .chain(inbound.extract_if(|_, channel| gone(channel)))
        {
            channel.closed.store(true, Ordering::Relaxed);
            *renewals += 1;
            for (_, node) in nodes.extract_if(|(of, _), _| *of == id) {
                held.unbind(node.held);
            }
            self.post(&Request::DropChannel { channel: id });
        }
        by_bit.iter_mut().for_each(|place| drop(place.take_if(|inbound| gone(&inbound.channel))));
        st.threads.iter_mut().flatten().for_each(|thread| thread.spares.clean());
        self.collect_last_replies(st, me, peer);
        let waiting: Vec<(ThreadKey, Answers)> = st
            .threads
            .iter()
            .flatten()
            .flat_map(|thread| {
                thread.stack.iter().filter_map(|frame| match frame {
                    Frame::Calling(Calling::Lane(ticket)) if gone(&ticket.channel) => {
                        Some((thread.key, ticket.answers()))
                    }
                    _ => None,
                })
            })
            .collect();
        for (key, answers) in waiting {
            self.end_call(st, me, key, answers, Todo::Word(br::DEAD_REPLY), None);
        }
    }

    /// Holds a command back that could end a handle while a call of it is under way.
    pub(super) fn count_later(&self, st: &mut Guard<'_>, word: CommandWord, handle: Handle) -> bool {
        match st.channels.handle(handle.0) {
            Some(bound) if bound.calls > 0 && lets_go(word.0) => {
                bound.later.push(word.0);
                true
            }
            _ => false,
        }
    }

    /// Holds a return back that could end a node while a call holds it.
    pub(super) fn returned_later(&self, st: &mut Guard<'_>, word: u32, payload: [u64; 2]) -> bool {
        matches!(word, br::RELEASE | br::DECREFS) && st.channels.held.hold_back(payload[0], (word, payload))
    }

    /// The buffer of a call through a lane was given back: its node is let go.
    #[inline]
    pub(super) fn let_go(&self, st: &mut Guard<'_>, me: u32, node: Option<u32>) {
        let Some(node) = node else { return };
        if st.channels.held.end_call(node) {
            self.tell_owner(st, me, node);
        }
    }

    /// What waited for the end of a node's last call.
    #[cold]
    fn tell_owner(&self, st: &mut State, me: u32, node: u32) {
        for (word, payload) in st.channels.held.after_last(node) {
            self.route(st, me, Todo::Small(word, payload));
        }
    }

    /// Nobody will read the reply to a call: its thread exits, or there is no room. The lane is left once the peer, which
    /// may still copy a large reply, is done with it: it could copy into the reply to a later call.
    pub(super) fn disown(&self, st: &mut State, ticket: LaneTicket) {
        match ticket.is_over() {
            true => self.leave_lane(st, &ticket),
            false => st.channels.orphans.push(ticket),
        }
    }

    /// A call in a lane is over.
    #[inline]
    pub(super) fn leave_lane(&self, st: &mut State, ticket: &LaneTicket) {
        ticket.channel.lanes.release(ticket.call);
        ticket.channel.mark(ticket.call.lane, false);
        let Some(bound) = st.channels.handle(ticket.handle) else { return };
        if bound.channel.id != ticket.channel.id {
            return;
        }
        bound.calls = bound.calls.saturating_sub(1);
        if bound.calls == 0 && !bound.later.is_empty() {
            self.count_now(ticket.handle, std::mem::take(&mut bound.later));
        }
    }

    /// What waited for the end of a handle's last call.
    #[cold]
    fn count_now(&self, handle: u32, commands: Vec<u32>) {
        for command in commands {
            self.post(&Request::Count { command, handle });
        }
    }
}

fn open_channel(
    descriptors: Vec<std::os::fd::OwnedFd>,
) -> Option<(Lanes<LaneMemory>, Doorbells<BellMemory>)> {
    let [lanes, bells] = <[_; 2]>::try_from(descriptors).ok()?;
    let lanes = FixedMemory::new(SealedMemory::map(lanes, lane::SIZE).ok()?).ok()?;
    let bells = FixedMemory::new(SealedMemory::map(bells, doorbell::SIZE).ok()?).ok()?;
    Some((Lanes::new(lanes).ok()?, Doorbells::new(bells).ok()?))
}

#[cfg(any(test, feature = "fuzz"))]
impl Process {
    /// The lanes and the peer's doorbells of every channel, mapped once more.
    pub(in crate::embedded) fn take_channels(&self) -> Vec<[SealedMemory; 2]> {
        let st = self.lock();
        let ids: Vec<u32> = st.channels.outbound.keys().chain(st.channels.inbound.keys()).copied().collect();
        drop(st);
        let take = |channel: &u32| {
            let request = Request::TakeChannel { channel: *channel };
            let (_, descriptors) = self.line.fetch(ThreadKey::NOBODY, &request).ok()?;
            let [lanes, bells] = <[_; 2]>::try_from(descriptors).ok()?;
            let bells = SealedMemory::map(bells, doorbell::SIZE).ok()?;
            Some([SealedMemory::map(lanes, lane::SIZE).ok()?, bells])
        };
        ids.iter().filter_map(take).collect()
    }
}

#[cfg(test)]
impl Process {
    /// Has the calling thread watch that lane of a channel in which calls come.
    pub(super) fn watch(&self, lane: u32) {
        let mut st = self.lock();
        let slot = self.enter(&mut st).expect("a thread more");
        let channel = st.channels.inbound.values().next().expect("somebody has called").clone();
        st.thread(slot).watched = Some(Watched { channel, lane });
    }
}

/// What both ends do with a payload.
impl Process {
    /// Copies a payload without the lock, as that takes long.
    #[inline]
    fn copy_unlocked<'p, T>(&'p self, st: Guard<'p>, slot: u32, copy: impl FnOnce() -> T) -> (Guard<'p>, T) {
        self.unlock(st, slot);
        let copied = copy();
        (self.lock(), copied)
    }

    /// Remembers a buffer in the private area and says where it lies.
    fn keep(
        &self,
        st: &mut State,
        offset: u64,
        layout: &Layout,
        flags: u32,
        node: Option<u32>,
    ) -> TransactionData {
        let address = self.area.base() + offset;
        st.live.lend(offset, Lent::of(flags, node));
        TransactionData {
            data_size: layout.data_size,
            offsets_size: layout.offsets_size,
            buffer: address,
            offsets: address + layout.offsets,
            ..TransactionData::default()
        }
    }
}
