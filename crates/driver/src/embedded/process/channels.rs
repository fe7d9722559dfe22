//! Room: calls that never see the broker: the books about which handles and nodes they may use.
//!
//! - [`channel`]: one end of a channel. - [`caller`], [`callee`]: their way through the lanes, seen from either end.
//!
//! Not here: the lanes' memory and states (`channel::lane`), the way through the broker (`transact`).
//! Facts: contract TX-01 to TX-06, TX-10, REF-13, BUF-05. What ends a handle or node while a call
//! uses it is held back here until the call is over, since the broker does not know of it.

mod callee;
mod caller;
mod channel;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::codes::{br, tf};
use abi::layout::TransactionData;
use abi::{CommandWord, Handle};
use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;

pub(super) use channel::{Channel, Wake};

use super::area::Lent;
use super::sched::Saved;
use super::state::{BoxedCall, Calling, Frame, LaneCall, LaneTicket, Quick, State, Todo, Watched};
use super::write::lets_go;
use super::{Guard, Process};
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::doorbell::{self, BellMemory, Doorbells};
use crate::embedded::channel::lane::{self, Ahead, LaneMemory, Lanes};
use crate::embedded::objects::Layout;
use crate::embedded::protocol::{Answers, Item, Lineage, Link, ProcId, Request, ThreadKey, TransactKind};

const EFAULT: i32 = 14;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
/// Calls of handles from this one on go through the broker: whatever lies in the inbox, the table stays small.
const MOST_HANDLES: usize = 1 << 16;
/// In place of an errno: the thread that served the call is gone.
const NOBODY: i32 = 0;

/// What calls of a handle go through.
#[derive(Debug)]
struct Binding {
    channel: Arc<Channel>,
    number: u32,
    flags: u32,
    /// The node's number, for people.
    node: u32,
    /// Calls under way, and commands that wait for their end because they could end the handle.
    calls: u32,
    later: Vec<u32>,
}

/// What calls with a binding mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    pub(super) ptr: u64,
    pub(super) cookie: u64,
    pub(super) flags: u32,
    /// Its place among those that calls hold.
    pub(super) held: u32,
}

/// A channel in which calls come.
#[derive(Debug)]
struct Inbound {
    channel: Arc<Channel>,
    /// Boxes of calls that were answered, for those to come: after the first ones none is made.
    spare: Vec<BoxedCall>,
}

impl Inbound {
    fn new(channel: Arc<Channel>) -> Self {
        Self { channel, spare: Vec::with_capacity(lane::LANES as usize) }
    }

    /// Takes the call of one lane, if there is one.
    #[inline(always)] // the usual one of its two callers is the hot path
    fn take(&mut self, lane: u32) -> Result<Option<BoxedCall>, Corrupt> {
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

/// A node that calls through lanes may hold, and what its owner is told after them.
#[derive(Debug)]
struct Held {
    ptr: u64,
    /// By which calls may name it.
    bindings: u32,
    calls: u32,
    later: Vec<(u32, [u64; 2])>,
}

impl Held {
    fn is_vacant(&self) -> bool {
        self.bindings == 0 && self.calls == 0 && self.later.is_empty()
    }
}

/// See the room.
#[derive(Debug, Default)]
pub(super) struct Channels {
    outbound: HashMap<u32, Arc<Channel>>,
    inbound: HashMap<u32, Arc<Channel>>,
    by_bit: Vec<Option<Inbound>>,
    /// By handle; the broker gives the lowest ones out first, so there are hardly more places than handles.
    handles: Vec<Option<Binding>>,
    nodes: Quick<(u32, u32), Node>,
    /// Counts their changes.
    renewals: u64,
    /// A node that has a binding has a place here, one for all of its channels.
    held: Vec<Held>,
    /// Calls whose threads exited; their lanes are free once they are answered.
    orphans: Vec<LaneTicket>,
    /// Calls with bindings of which this process has not heard yet.
    early: Vec<BoxedCall>,
}

impl Channels {
    /// Whether nothing waits to be looked at again.
    pub(super) fn is_quiet(&self) -> bool {
        self.orphans.is_empty() && self.early.is_empty()
    }

    /// Finds what a call is for; whether its binding is known.
    #[inline]
    fn find_node(&mut self, call: &mut LaneCall) -> bool {
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

    /// The place of a node that gets one more binding. Every call looks there, few bindings are made.
    fn hold(&mut self, ptr: u64) -> u32 {
        let known = self.held.iter().position(|held| held.ptr == ptr && !held.is_vacant());
        let place = known.or_else(|| self.held.iter().position(Held::is_vacant)).unwrap_or(self.held.len());
        if known.is_none() {
            let made = Held { ptr, bindings: 0, calls: 0, later: Vec::new() };
            match self.held.get_mut(place) {
                Some(vacant) => *vacant = made,
                None => self.held.push(made),
            }
        }
        self.held[place].bindings += 1;
        place as u32
    }

    /// The books of a channel in which calls come, unless it is gone.
    #[inline]
    fn inbound(&mut self, channel: &Arc<Channel>) -> Option<&mut Inbound> {
        let inbound = self.by_bit.get_mut(channel.bit as usize)?.as_mut()?;
        Arc::ptr_eq(&inbound.channel, channel).then_some(inbound)
    }

    /// A call is over.
    #[inline]
    pub(super) fn keep_box(&mut self, call: BoxedCall) {
        if let Some(inbound) = self.inbound(&call.channel) {
            inbound.spare.push(call);
        }
    }

    /// What calls of a handle go through; `None`: the broker.
    #[inline]
    fn handle(&mut self, handle: u32) -> Option<&mut Binding> {
        self.handles.get_mut(handle as usize)?.as_mut()
    }

    fn bind(&mut self, handle: u32, binding: Binding) {
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

impl LaneCall {
    /// Who waits for it, nearest first.
    pub(super) fn lineage(&self) -> Lineage {
        let header = &self.request.header;
        let caller = Link { proc: self.channel.peer, thread: header.thread };
        header.lineage.as_deref().unwrap_or(&Lineage::EMPTY).behind(caller)
    }

    pub(super) fn reply_through_broker(&self) -> TransactKind {
        TransactKind::LaneReply {
            channel: self.channel.id,
            lane: self.request.lane,
            thread: self.request.header.thread,
            call_flags: self.request.header.flags,
        }
    }

    /// Leaves the answer to the broker.
    pub(super) fn leave_to_broker(&self) {
        self.channel.end_serving(self.request.lane);
        self.channel.lanes.replied_by_broker(self.request.taken());
    }

    /// Nobody will answer any more.
    pub(super) fn dead(&self) {
        self.fail(NOBODY);
    }

    /// Answers with an errno and wakes the caller.
    pub(super) fn fail(&self, errno: i32) {
        self.channel.end_serving(self.request.lane);
        self.channel.lanes.fail(self.request.taken(), errno);
        self.channel.ring(self.request.header.thread);
    }
}

impl Watched {
    /// Where the reply to that lane's next call is expected to put its payload.
    pub(super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.lanes.next_reply(self.lane))
    }

    /// Whether there is a call.
    pub(super) fn has_call(&self) -> bool {
        self.channel.lanes.has_call(self.lane) && !self.channel.is_closed()
    }
}

impl LaneTicket {
    /// Where the next call is expected to put its payload.
    pub(super) fn ahead(&self) -> (&Channel, Ahead) {
        (&self.channel, self.channel.lanes.next_request(self.call))
    }

    /// Whether the lane has what this call waits for.
    pub(super) fn has_outcome(&self) -> bool {
        !self.by_broker && self.channel.lanes.is_answered(self.call)
    }

    /// Whether that is a reply.
    pub(super) fn has_reply(&self) -> bool {
        !self.by_broker && self.channel.lanes.has_reply(self.call)
    }

    /// Whether nothing more will happen to the call.
    fn is_over(&self) -> bool {
        self.channel.is_closed() || self.channel.lanes.is_answered(self.call)
    }

    /// Where the peer was last seen.
    pub(super) fn peer_cpu(&self) -> Option<u32> {
        self.channel.cpu_hint()
    }
}

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
                let held = st.channels.hold(ptr);
                let node = Node { ptr, cookie, flags, held };
                if let Some(other) = st.channels.nodes.insert((channel, binding), node) {
                    st.channels.held[other.held as usize].bindings -= 1;
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
                    st.channels.held[node.held as usize].bindings -= 1;
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
                held[node.held as usize].bindings -= 1;
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
        if !matches!(word, br::RELEASE | br::DECREFS) {
            return false;
        }
        match st.channels.held.iter_mut().find(|held| held.ptr == payload[0] && held.calls > 0) {
            Some(held) => {
                held.later.push((word, payload));
                true
            }
            None => false,
        }
    }

    /// The buffer of a call through a lane was given back: its node is let go.
    #[inline]
    pub(super) fn let_go(&self, st: &mut Guard<'_>, me: u32, node: Option<u32>) {
        let Some(node) = node else { return };
        let held = &mut st.channels.held[node as usize];
        held.calls -= 1;
        if held.calls == 0 && !held.later.is_empty() {
            self.tell_owner(st, me, node);
        }
    }

    /// What waited for the end of a node's last call.
    #[cold]
    fn tell_owner(&self, st: &mut State, me: u32, node: u32) {
        for (word, payload) in std::mem::take(&mut st.channels.held[node as usize].later) {
            self.route(st, me, Todo::Small(word, payload));
        }
    }

    /// A thread that waited for a call exits.
    pub(super) fn disown(&self, st: &mut State, ticket: LaneTicket) {
        st.channels.orphans.push(ticket);
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
        let clear = flags & tf::CLEAR_BUF != 0;
        st.live.lend(offset, Lent { clear, node });
        TransactionData {
            data_size: layout.data_size,
            offsets_size: layout.offsets_size,
            buffer: address,
            offsets: address + layout.offsets,
            ..TransactionData::default()
        }
    }
}
