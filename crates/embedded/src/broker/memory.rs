//! Memory that the broker shares with each client, and the core's access to it.
//! Not here: layouts (`shm`), the rules (`core`), sockets (`serve`).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use abi::codes::{bc, br, tf};
use sys::errno::EINVAL;
use sys::sealed_memory::SealedMemory;

use super::budget::Budgets;
use super::core::arena::{Arena, SIZE_MAX};
use super::core::{DirectCall, Host, ProcSnapshot, ThreadSnapshot};
use crate::priority;
use crate::rpc::codec::Message;
use crate::rpc::protocol::{Item, Link, OUTBOX_SIZE, ProcId, ThreadKey};
use crate::shm::Corrupt;
use crate::shm::call_slot::{self, CallSlots};
use crate::shm::doorbell::{self, Bell, Doorbells, NEED_RETURN};
use crate::shm::lease::{self, Lease, Range, Tag};
use crate::shm::ring::{self, Producer};

/// Looper bit of the state files: the thread waits for work (contract DBG-01).
const WAITING: u32 = 0x10;

/// Receiving area with the lease behind it.
#[derive(Debug)]
pub(super) struct ArenaMemory {
    pub(super) memory: Arc<SealedMemory>,
    /// Bytes in front of the lease that are used.
    pub(super) size: usize,
}

impl ArenaMemory {
    /// Creates a receiving area of `size` bytes (at most 4 MiB are used) with its lease.
    ///
    /// # Errors
    /// See [`SealedMemory::create`]; `EINVAL` for 0 bytes.
    pub(super) fn create(size: usize) -> io::Result<Self> {
        let size = size.min(SIZE_MAX);
        if size == 0 {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        Ok(Self { memory: Arc::new(SealedMemory::create(lease::arena_memory(size))?), size })
    }

    fn lease(&self) -> Lease<&SealedMemory> {
        Lease::at(&self.memory, lease::offset(self.size))
    }
}

/// Memories that the broker and one client share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The receiving area with its lease.
    pub(super) arena: Option<ArenaMemory>,
    pub(super) inbox: Arc<SealedMemory>,
    pub(super) outbox: SealedMemory,
    pub(super) doorbells: Arc<SealedMemory>,
}

impl Shared {
    /// Descriptors and bytes of the memory that every client has.
    pub(super) const DESCRIPTORS: usize = 3;
    pub(super) const BYTES: usize = ring::SIZE + OUTBOX_SIZE + doorbell::SIZE;

    /// Makes the memory of a client, without a receiving area.
    ///
    /// # Errors
    /// See [`SealedMemory::create`]; with the name of the memory that could not be created.
    pub(super) fn create() -> Result<Self, (&'static str, io::Error)> {
        let memory = |what, size| SealedMemory::create(size).map_err(|error| (what, error));
        Ok(Self {
            arena: None,
            inbox: Arc::new(memory("its inbox", ring::SIZE)?),
            outbox: memory("its outbox", OUTBOX_SIZE)?,
            doorbells: Arc::new(memory("its doorbells", doorbell::SIZE)?),
        })
    }
}

#[derive(Debug)]
struct ClientMemory {
    pid: u32,
    shared: Shared,
    producer: Producer<Arc<SealedMemory>>,
    bells: Doorbells<Arc<SealedMemory>>,
    /// Items that found no room in the ring.
    waiting: VecDeque<Item>,
    channels: BTreeSet<u32>,
    /// The client places buffers by itself.
    leased: bool,
}

#[derive(Debug)]
struct Channel {
    call_slots: CallSlots<Arc<SealedMemory>>,
    caller: ProcId,
    callee: ProcId,
    /// Pid of the caller, whose budget the channel is charged to.
    pid: u32,
    /// The channel's index in the callee's ready bits.
    bit: u32,
    /// The caller's and the callee's doorbells.
    doorbells: [Arc<SealedMemory>; 2],
}

/// Memory of all clients.
#[derive(Debug)]
pub(super) struct MemoryHost {
    clients: HashMap<ProcId, ClientMemory>,
    channels: HashMap<u32, Channel>,
    /// Calls through call slots at the last look: their channels and slots, their numbers, and the time of the first look, in ms.
    seen: HashMap<(u32, u32), (u32, u64)>,
    /// Clients that cannot be served any more, and why.
    failed: Vec<(ProcId, &'static str)>,
    began: Instant,
    pub(super) budgets: Budgets,
    /// Scratch buffer: ranges that one client has placed.
    placed: Vec<Range>,
}

impl MemoryHost {
    pub(super) fn new() -> Self {
        Self {
            clients: HashMap::new(),
            channels: HashMap::new(),
            seen: HashMap::new(),
            failed: Vec::new(),
            began: Instant::now(),
            budgets: Budgets::new(sys::limits::open_files().unwrap_or(1024)),
            placed: Vec::new(),
        }
    }

    /// Adds a client's memory.
    ///
    /// `leased`: it may place buffers in its receiving area by itself.
    pub(super) fn join(&mut self, proc: ProcId, pid: u32, shared: Shared, leased: bool) {
        const FITS: &str = "the memory was made as large as its layout";
        let client = ClientMemory {
            pid,
            producer: Producer::new(Arc::clone(&shared.inbox)).expect(FITS),
            bells: Doorbells::new(Arc::clone(&shared.doorbells)).expect(FITS),
            waiting: VecDeque::new(),
            channels: BTreeSet::new(),
            leased,
            shared,
        };
        self.clients.insert(proc, client);
    }

    /// A client maps its receiving area, which is charged to it already.
    pub(super) fn map(&mut self, proc: ProcId, arena: ArenaMemory) {
        if let Some(client) = self.clients.get_mut(&proc) {
            client.shared.arena = Some(arena);
        }
    }

    /// Removes a client's memory, which was charged to it. Channels stay until the rules drop them.
    pub(super) fn leave(&mut self, proc: ProcId) {
        let Some(ClientMemory { pid, shared, waiting, .. }) = self.clients.remove(&proc) else { return };
        self.budgets.waited(pid, waiting.len());
        self.budgets.give(pid, Shared::DESCRIPTORS, Shared::BYTES);
        if let Some(arena) = shared.arena {
            self.budgets.give(pid, 1, arena.memory.len());
        }
    }

    /// Takes the clients that cannot be served any more.
    pub(super) fn take_failed(&mut self) -> Vec<(ProcId, &'static str)> {
        std::mem::take(&mut self.failed)
    }

    /// Copies the first bytes of a client's outbox in place of what `bytes` held.
    pub(super) fn read_outbox(&self, proc: ProcId, len: usize, bytes: &mut Vec<u8>) {
        // No zeroing of bytes that are overwritten at once.
        bytes.resize(len, 0);
        if let Some(client) = self.clients.get(&proc) {
            client.shared.outbox.copy_out(0, bytes);
        }
    }

    /// Moves waiting items into a client's inbox, which has room again.
    pub(super) fn more(&mut self, proc: ProcId) {
        let Some(client) = self.clients.get_mut(&proc) else { return };
        while let Some(item) = client.waiting.pop_front() {
            match client.push(&item) {
                Ok(true) => {
                    client.ring(&item);
                    self.budgets.waited(client.pid, 1);
                }
                Ok(false) => return client.waiting.push_front(item),
                Err(_) => return self.fail(proc, CORRUPT_INBOX),
            }
        }
    }

    /// The memory of a channel and the other side's doorbells, for one of its two sides.
    pub(super) fn channel(&self, proc: ProcId, channel: u32) -> Option<[&SealedMemory; 2]> {
        let channel = self.channels.get(&channel)?;
        let other = match proc {
            caller if caller == channel.caller => 1,
            callee if callee == channel.callee => 0,
            _ => return None,
        };
        Some([channel.call_slots.memory(), &channel.doorbells[other]])
    }

    /// Whether a call is pending at a process; `is_idle` checks each of its channels.
    fn has_calls(&self, proc: ProcId, is_idle: impl Fn(&Channel) -> bool) -> bool {
        let Some(client) = self.clients.get(&proc) else { return false };
        let is_over = |channel: &Channel| match self.are_there(channel) {
            [true, true] => is_idle(channel),
            [true, false] => !channel.call_slots.has_reply(),
            // Nobody reads the reply, so the call is pending until it is taken.
            [false, _] => channel.call_slots.is_taken(),
        };
        let call_slot_in_use = |channel| self.channels.get(channel).is_some_and(|found| !is_over(found));
        // Before the failures and behind them: a failure that is read meanwhile, or a call that is made and
        // fails meanwhile, must not hide another call.
        let before: Vec<u32> = client.slots().map(|bell| bell.depth()).collect();
        let unread = client.unread();
        let failed = self.failed_calls(proc, client, &unread);
        let is_busy = |(bell, before): (Bell<'_, _>, u32)| {
            let its =
                |thread: &&ThreadKey| thread.slot == bell.number() && bell.belongs_to(thread.generation);
            bell.tid() != 0 && before.max(bell.depth()) as usize > failed.iter().filter(its).count()
        };
        client.slots().zip(before).any(is_busy)
            || client.bells.queued() != 0
            || unread.has_transaction
            || client.channels.iter().any(call_slot_in_use)
    }

    /// The thread of each call that failed while its process has not noticed: such a call is on the thread's stack,
    /// but not pending (contract FRZ-03).
    fn failed_calls(&self, proc: ProcId, client: &ClientMemory, unread: &Unread) -> Vec<ThreadKey> {
        let made = client.channels.iter().filter_map(|channel| self.channels.get(channel));
        let in_slots = made.filter(|channel| channel.caller == proc).flat_map(|channel| {
            let [_, callee_is_there] = self.are_there(channel);
            channel.call_slots.failed(!callee_is_there)
        });
        unread.refused.iter().copied().chain(in_slots).collect()
    }

    /// Whether the caller and the callee of a channel are there.
    fn are_there(&self, channel: &Channel) -> [bool; 2] {
        [channel.caller, channel.callee].map(|side| self.clients.contains_key(&side))
    }

    fn fail(&mut self, proc: ProcId, why: &'static str) {
        self.failed.push((proc, why));
    }
}

const CORRUPT_INBOX: &str = "it wrote an impossible count into its inbox";

/// Items that a client has not taken in, as far as they matter to a freeze.
#[derive(Debug, Default)]
struct Unread {
    /// A call, a oneway call or a reply is among it.
    has_transaction: bool,
    /// The threads whose calls were refused.
    refused: Vec<ThreadKey>,
}

impl Unread {
    fn note(&mut self, item: &Item) {
        match item {
            Item::Deliver { .. } | Item::Reply { .. } => self.has_transaction = true,
            Item::Refused { thread, .. } => self.refused.push(*thread),
            _ => {}
        }
    }
}

impl ClientMemory {
    fn unread(&self) -> Unread {
        let mut unread = Unread::default();
        let in_inbox = self.producer.unread().filter_map(|record| Item::decode(&record).ok());
        in_inbox.for_each(|item| unread.note(&item));
        self.waiting.iter().for_each(|item| unread.note(item));
        unread
    }

    /// Puts an item into the inbox, and counts it for callers. Items that find no room are not counted: calls may
    /// overtake them.
    fn push(&mut self, item: &Item) -> Result<bool, Corrupt> {
        let pushed = self.producer.push(&item.encode())?;
        if pushed {
            self.bells.set_records(self.producer.pushed());
        }
        Ok(pushed)
    }

    /// Wakes the threads that an item is for.
    fn ring(&self, item: &Item) {
        match addressee(item) {
            WakeTarget::Thread(key) => {
                if let Some(bell) = self.bells.slot(key.slot) {
                    self.boost(&bell, item);
                    wake(&bell);
                }
            }
            WakeTarget::Anyone => {
                if let Some(bell) = self.bells.ring_listener() {
                    self.boost(&bell, item);
                    bell.wake();
                } else if let Some(bell) = self.bells.listener_on_its_way() {
                    self.boost(&bell, item);
                }
            }
            // Any thread may be waiting for an answer through a channel.
            WakeTarget::Everyone => self.slots().for_each(|bell| wake(&bell)),
            WakeTarget::Nobody => {}
        }
    }

    /// Passes the priority of a call on before its thread is woken (contract SCH-09).
    fn boost(&self, bell: &Bell<'_, Arc<SealedMemory>>, item: &Item) {
        if let Item::Deliver { delivery } = item
            && priority::may_boost(self.bells.inherit(), || bell.only_polls())
        {
            let oneway = delivery.flags & tf::ONE_WAY != 0;
            let thread = priority::Thread { pid: self.pid, tid: bell.tid() };
            priority::boost(thread, delivery.sched, delivery.node_flags, oneway);
        }
    }

    fn slots(&self) -> impl Iterator<Item = Bell<'_, Arc<SealedMemory>>> {
        (0..self.bells.used()).filter_map(|slot| self.bells.slot(slot))
    }

    /// Receiving area and position of a range; `None` if it lies outside, which the rules never ask for.
    fn arena(&self, offset: u64, len: u64) -> Option<(&SealedMemory, usize)> {
        let arena = self.shared.arena.as_ref()?;
        let inside = offset.checked_add(len)? <= arena.size as u64;
        Some((&*arena.memory, usize::try_from(offset).ok().filter(|_| inside)?))
    }

    /// The lease of its receiving area, if it has one.
    fn lease(&self) -> Option<Lease<&SealedMemory>> {
        self.shared.arena.as_ref().filter(|_| self.leased).map(ArenaMemory::lease)
    }
}

fn wake(bell: &Bell<'_, Arc<SealedMemory>>) {
    if bell.ring() {
        bell.wake();
    }
}

/// Threads to wake for an item.
enum WakeTarget {
    Thread(ThreadKey),
    Anyone,
    Everyone,
    /// No thread: the item is read along with the next one.
    Nobody,
}

fn addressee(item: &Item) -> WakeTarget {
    match item {
        // The next thread that reads the inbox finds it.
        Item::Answer { thread, .. } if *thread == ThreadKey::NOBODY => WakeTarget::Nobody,
        Item::Answer { thread, .. } | Item::Reply { thread, .. } | Item::Refused { thread, .. } => {
            WakeTarget::Thread(*thread)
        }
        Item::Deliver { delivery } => delivery.to_thread.map_or(WakeTarget::Anyone, WakeTarget::Thread),
        Item::Work { thread, .. } => thread.map_or(WakeTarget::Anyone, WakeTarget::Thread),
        Item::PeerGone { .. } => WakeTarget::Everyone,
        Item::Channel { .. } | Item::BindNode { .. } | Item::BindHandle { .. } | Item::Unbind { .. } => {
            WakeTarget::Nobody
        }
    }
}

impl Host for MemoryHost {
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]) {
        if let Some((arena, at)) = self.clients.get(&proc).and_then(|p| p.arena(offset, bytes.len() as u64)) {
            arena.copy_in(at, bytes);
        }
    }

    fn zero(&mut self, proc: ProcId, offset: u64, len: u64) {
        if let Some((arena, at)) = self.clients.get(&proc).and_then(|p| p.arena(offset, len)) {
            arena.zero(at, len as usize);
        }
    }

    fn has_thread(&self, Link { proc, thread }: Link) -> bool {
        let bell = self.clients.get(&proc).and_then(|client| client.bells.slot(thread.slot));
        bell.is_some_and(|bell| bell.belongs_to(thread.generation))
    }

    fn suspend_lease(&mut self, proc: ProcId) -> Option<&[Range]> {
        self.clients.get(&proc)?.lease()?.suspend(&mut self.placed);
        Some(&self.placed)
    }

    fn resume_lease(&mut self, proc: ProcId, arena: &Arena) {
        let Some(client) = self.clients.get(&proc) else { return };
        let Some(lease) = client.lease() else { return };
        let entries = arena.placed().iter().filter(|range| range.len > 0).count();
        let gap = arena.largest_gaps(1).next().filter(|_| entries + lease::FEW_ENTRIES <= lease::ENTRIES);
        let room = gap.map_or(0, |gap| gap.len.min(call_slot::LARGEST as u32));
        if client.bells.room() != room {
            client.bells.set_room(room);
        }
        lease.resume(arena.largest_gaps(lease::GAPS), arena.placed());
    }

    fn placed(&self, proc: ProcId) -> Vec<Range> {
        let mut placed = Vec::new();
        if let Some(lease) = self.clients.get(&proc).and_then(ClientMemory::lease) {
            lease.placed(&mut placed);
        }
        placed
    }

    fn busy(&self, proc: ProcId) -> bool {
        self.has_calls(proc, |channel| channel.call_slots.is_idle())
    }

    fn settle(&mut self, proc: ProcId) -> bool {
        // The process may still call others.
        let settle = |channel: &Channel| match channel.callee == proc {
            true => channel.call_slots.hold(),
            false => channel.call_slots.is_idle(),
        };
        !self.has_calls(proc, settle)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn threads(&self, proc: ProcId) -> Vec<ThreadSnapshot> {
        let Some(client) = self.clients.get(&proc) else { return Vec::new() };
        let line = |bell: Bell<'_, _>| ThreadSnapshot {
            key: ThreadKey { slot: bell.number(), generation: bell.generation() },
            tid: bell.tid(),
            looper: bell.looper() & !NEED_RETURN | if bell.waits() { WAITING } else { 0 },
            ready: bell.is_ready(),
            serving: bell.serving(),
            need_return: bell.looper() & NEED_RETURN != 0,
            depth: bell.depth(),
        };
        client.slots().map(line).filter(|line| line.tid != 0).collect()
    }

    fn unread_calls(&self, callee: ProcId) -> Vec<(u32, u32)> {
        let Some(client) = self.clients.get(&callee) else { return Vec::new() };
        let channels =
            client.channels.iter().filter_map(|number| Some((*number, self.channels.get(number)?)));
        let unread =
            channels.filter(|(_, channel)| channel.callee == callee).flat_map(|(number, channel)| {
                let calls = channel.call_slots.under_way().filter(|call| call.server.is_none());
                calls.map(move |call| (number, call.header.binding))
            });
        unread.collect()
    }

    fn tagged(&self, proc: ProcId, tag: u32) -> u64 {
        let lease = self.clients.get(&proc).and_then(ClientMemory::lease);
        lease.map_or(0, |lease| lease.tagged(Tag::of_node(tag)) as u64)
    }

    fn direct_calls(&mut self) -> Vec<DirectCall> {
        let now = self.now_ms();
        let mut seen = HashMap::new();
        let mut calls = Vec::new();
        for (&channel, Channel { call_slots, caller, callee, .. }) in &self.channels {
            // What a caller that is gone has left, nobody waits for.
            if !self.clients.contains_key(caller) {
                continue;
            }
            for call in call_slots.under_way() {
                let place = (channel, call.call_slot);
                let before = self.seen.get(&place).filter(|(number, _)| *number == call.number);
                let since = before.map_or(now, |(_, since)| *since);
                seen.insert(place, (call.number, since));
                let (caller, callee, elapsed_ms) = (*caller, *callee, now.saturating_sub(since));
                calls.push(DirectCall { channel, caller, callee, call, elapsed_ms });
            }
        }
        self.seen = seen;
        calls.sort_by_key(|call| (call.channel, call.call.call_slot));
        calls
    }

    fn snapshot(&self, proc: ProcId) -> ProcSnapshot {
        let Some(ClientMemory { bells, .. }) = self.clients.get(&proc) else {
            return ProcSnapshot::default();
        };
        let (requested, started) = bells.pool();
        let counts = bells.counts();
        let times = |(word, counter): (u32, usize)| (word, counts.get(counter).copied().unwrap_or(0));
        let commands = bc::ALL.iter().map(|(_, word)| (*word, doorbell::of_command(*word)));
        // `BR_TRANSACTION_SEC_CTX` shares the counter of `BR_TRANSACTION`: both have the same number.
        let own = |(_, word): &&(&str, u32)| *word != br::TRANSACTION_SEC_CTX;
        let returns = br::ALL.iter().filter(own).map(|(_, word)| (*word, doorbell::of_return(*word)));
        let words = commands.chain(returns).map(times).filter(|(_, times)| *times > 0).collect();
        ProcSnapshot {
            requested,
            started,
            untaken: bells.untaken(),
            threads_ever: bells.threads_ever(),
            words,
        }
    }

    fn item(&mut self, to: ProcId, item: Item) {
        let Some(client) = self.clients.get_mut(&to) else { return };
        // Behind waiting items, to keep the order.
        let pushed = match client.waiting.is_empty() {
            true => client.push(&item),
            false => Ok(false),
        };
        match pushed {
            Ok(true) => client.ring(&item),
            Ok(false) if self.budgets.wait(client.pid) => client.waiting.push_back(item),
            // Undoes the count of an item that does not wait.
            Ok(false) => {
                self.budgets.waited(client.pid, 1);
                self.fail(to, "it does not read its inbox, and too much waits for it");
            }
            Err(_) => self.fail(to, CORRUPT_INBOX),
        }
    }

    fn make_channel(&mut self, channel: u32, bit: u32, caller: ProcId, callee: ProcId) -> bool {
        let of =
            |proc| self.clients.get(&proc).map(|client| (client.pid, Arc::clone(&client.shared.doorbells)));
        let (Some((pid, of_caller)), Some((_, of_callee))) = (of(caller), of(callee)) else { return false };
        // Without memory, descriptors or budget, these two processes keep using the broker.
        if self.budgets.take(pid, 1, 0).is_err() {
            return false;
        }
        let memory = SealedMemory::create(call_slot::SIZE).map(Arc::new).ok();
        let Some(call_slots) = memory.and_then(|memory| CallSlots::new(memory).ok()) else {
            self.budgets.give(pid, 1, 0);
            return false;
        };
        let doorbells = [of_caller, of_callee];
        self.channels.insert(channel, Channel { call_slots, caller, callee, pid, bit, doorbells });
        for side in [caller, callee] {
            if let Some(client) = self.clients.get_mut(&side) {
                client.channels.insert(channel);
            }
        }
        true
    }

    fn set_gate(&mut self, channel: u32, gate: u32) {
        let Some(Channel { call_slots, callee, bit, .. }) = self.channels.get(&channel) else { return };
        // A closed channel stays closed: either side may have closed it. Calls held in it stay held: the callee may
        // still be frozen, and callers back out.
        if gate != 0 {
            return call_slots.shut(gate);
        }
        call_slots.open(call_slot::FROZEN);
        let Some(client) = self.clients.get(callee) else { return };
        // A caller that was stopped between publishing its call and checking the gate now finds the gate open, and
        // waits. The callee's threads that were notified of the call found it held, so post it again.
        client.bells.post(*bit);
    }

    fn wake_all(&mut self, proc: ProcId) {
        let Some(client) = self.clients.get(&proc) else { return };
        client.slots().for_each(|bell| wake(&bell));
    }

    fn drop_channel(&mut self, channel: u32) {
        let Some(Channel { caller, callee, pid, .. }) = self.channels.remove(&channel) else { return };
        self.budgets.give(pid, 1, 0);
        for side in [caller, callee] {
            if let Some(client) = self.clients.get_mut(&side) {
                client.channels.remove(&channel);
            }
        }
    }
}

#[cfg(test)]
mod tests;
