//! Room: the memory that the broker shares with each client, and everything that the rules do to it.
//! Not here: layouts (`channel`), the rules (`core`), sockets (`serve`).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use abi::codes::{bc, br, tf};
use sys::sealed_memory::SealedMemory;

use super::core::outside::{GATE_CLOSED, GATE_FROZEN};
use super::core::{Outside, Shown, ThreadLine};
use crate::embedded::channel::doorbell::{self, Bell, Doorbells, NEED_RETURN};
use crate::embedded::channel::lane::{self, Lanes};
use crate::embedded::channel::ring::{self, Producer};
use crate::embedded::priority;
use crate::embedded::protocol::codec::Message;
use crate::embedded::protocol::{Item, OUTBOX_SIZE, ProcId, ThreadKey};

/// Most bytes of a receiving area that are used (contract OPN-06).
const ARENA_MAX: usize = 4 << 20;

/// Looper bit of the state files: the thread waits for work (contract DBG-01).
const WAITING: u32 = 0x10;

/// Items that may wait for one client. Nobody who reads at all comes near it.
const WAITING_MAX: usize = 1 << 16;

/// What the broker and one client share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) arena: Option<SealedMemory>,
    pub(super) inbox: Arc<SealedMemory>,
    pub(super) outbox: SealedMemory,
    pub(super) doorbells: Arc<SealedMemory>,
}

impl Shared {
    /// Makes the memory of a client that asked for so many bytes of receiving area.
    ///
    /// # Errors
    /// As [`SealedMemory::create`], with what could not be made.
    pub(super) fn create(map_size: usize) -> Result<Self, (&'static str, io::Error)> {
        let memory = |what, size| SealedMemory::create(size).map_err(|error| (what, error));
        Ok(Self {
            arena: match map_size.min(ARENA_MAX) {
                0 => None,
                size => Some(memory("its receiving area", size)?),
            },
            inbox: Arc::new(memory("its inbox", ring::SIZE)?),
            outbox: memory("its outbox", OUTBOX_SIZE)?,
            doorbells: Arc::new(memory("its doorbells", doorbell::SIZE)?),
        })
    }
}

#[derive(Debug)]
struct Place {
    pid: u32,
    shared: Shared,
    producer: Producer<Arc<SealedMemory>>,
    bells: Doorbells<Arc<SealedMemory>>,
    /// Items for which the ring had no room.
    waiting: VecDeque<Item>,
    channels: BTreeSet<u32>,
}

#[derive(Debug)]
struct Channel {
    lanes: Lanes<Arc<SealedMemory>>,
    memory: Arc<SealedMemory>,
    caller: ProcId,
    callee: ProcId,
    /// Its place in the callee's ready bits.
    bit: u32,
    /// The caller's and the callee's doorbells.
    doorbells: [Arc<SealedMemory>; 2],
}

/// All clients' memory.
#[derive(Debug)]
pub(super) struct World {
    places: HashMap<ProcId, Place>,
    channels: HashMap<u32, Channel>,
    /// Clients that cannot be served any more, and why.
    failed: Vec<(ProcId, &'static str)>,
    began: Instant,
}

impl World {
    pub(super) fn new() -> Self {
        Self { places: HashMap::new(), channels: HashMap::new(), failed: Vec::new(), began: Instant::now() }
    }

    /// A client's memory joins.
    pub(super) fn join(&mut self, proc: ProcId, pid: u32, shared: Shared) {
        const FITS: &str = "the memory was made as large as its layout";
        let place = Place {
            pid,
            producer: Producer::new(Arc::clone(&shared.inbox)).expect(FITS),
            bells: Doorbells::new(Arc::clone(&shared.doorbells)).expect(FITS),
            waiting: VecDeque::new(),
            channels: BTreeSet::new(),
            shared,
        };
        self.places.insert(proc, place);
    }

    /// A client's memory goes. Channels stay until the rules drop them.
    pub(super) fn leave(&mut self, proc: ProcId) {
        self.places.remove(&proc);
    }

    /// Takes the clients that cannot be served any more.
    pub(super) fn take_failed(&mut self) -> Vec<(ProcId, &'static str)> {
        std::mem::take(&mut self.failed)
    }

    /// Copies the first bytes of a client's outbox in place of what `bytes` held.
    pub(super) fn read_outbox(&self, proc: ProcId, len: usize, bytes: &mut Vec<u8>) {
        // Bytes that are overwritten at once need not be 0 first.
        bytes.resize(len, 0);
        if let Some(place) = self.places.get(&proc) {
            place.shared.outbox.copy_out(0, bytes);
        }
    }

    /// The client's inbox has room again.
    pub(super) fn more(&mut self, proc: ProcId) {
        let Some(place) = self.places.get_mut(&proc) else { return };
        while let Some(item) = place.waiting.front() {
            match place.producer.push(&item.encode()) {
                Ok(true) => {
                    place.ring(item);
                    place.waiting.pop_front();
                }
                Ok(false) => return,
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
        Some([&channel.memory, &channel.doorbells[other]])
    }

    /// Whether something is pending at a process, by a look at each of its channels.
    fn has_calls(&self, proc: ProcId, is_idle: impl Fn(&Channel) -> bool) -> bool {
        let Some(place) = self.places.get(&proc) else { return false };
        let lane_in_use = |channel| self.channels.get(channel).is_some_and(|found| !is_idle(found));
        place.slots().any(|bell| bell.tid() != 0 && bell.depth() != 0)
            || place.bells.queued() != 0
            || !place.waiting.is_empty()
            || ring::has_records(&place.shared.inbox)
            || place.channels.iter().any(lane_in_use)
    }

    fn fail(&mut self, proc: ProcId, why: &'static str) {
        self.failed.push((proc, why));
    }
}

const CORRUPT_INBOX: &str = "it wrote an impossible count into its inbox";

impl Place {
    /// Wakes whoever an item is for.
    fn ring(&self, item: &Item) {
        match addressee(item) {
            To::Thread(key) => {
                if let Some(bell) = self.bells.slot(key.slot) {
                    self.boost(&bell, item);
                    wake(&bell);
                }
            }
            To::Anyone => {
                if let Some(bell) = self.bells.ring_listener() {
                    self.boost(&bell, item);
                    bell.wake();
                } else if let Some(bell) = self.bells.listener_on_its_way() {
                    self.boost(&bell, item);
                }
            }
            // Whichever of them waits for an answer through a channel.
            To::Everyone => self.slots().for_each(|bell| wake(&bell)),
            To::Nobody => {}
        }
    }

    /// Passes the priority of a call on before its thread is woken (contract SCH-09).
    fn boost(&self, bell: &Bell<'_, Arc<SealedMemory>>, item: &Item) {
        if let Item::Deliver { delivery } = item {
            let oneway = delivery.flags & tf::ONE_WAY != 0;
            let thread = priority::Thread { pid: self.pid, tid: bell.tid() };
            priority::boost(thread, self.bells.inherit(), delivery.sched, delivery.node_flags, oneway);
        }
    }

    fn slots(&self) -> impl Iterator<Item = Bell<'_, Arc<SealedMemory>>> {
        (0..self.bells.used()).filter_map(|slot| self.bells.slot(slot))
    }

    /// Whether a range lies in the receiving area; what the rules ask for always does.
    fn arena(&self, offset: u64, len: u64) -> Option<(&SealedMemory, usize)> {
        let arena = self.shared.arena.as_ref()?;
        let inside = offset.checked_add(len)? <= arena.len() as u64;
        Some((arena, usize::try_from(offset).ok().filter(|_| inside)?))
    }
}

fn wake(bell: &Bell<'_, Arc<SealedMemory>>) {
    if bell.ring() {
        bell.wake();
    }
}

/// Who must wake up for an item.
enum To {
    Thread(ThreadKey),
    Anyone,
    Everyone,
    /// It is read along with whatever comes next.
    Nobody,
}

fn addressee(item: &Item) -> To {
    match item {
        // Found by whoever looks next.
        Item::Answer { thread, .. } if *thread == ThreadKey::NOBODY => To::Nobody,
        Item::Answer { thread, .. } | Item::Reply { thread, .. } | Item::Refused { thread, .. } => {
            To::Thread(*thread)
        }
        Item::Deliver { delivery } => delivery.to_thread.map_or(To::Anyone, To::Thread),
        Item::Work { thread, .. } => thread.map_or(To::Anyone, To::Thread),
        Item::PeerGone { .. } => To::Everyone,
        Item::Channel { .. } | Item::BindNode { .. } | Item::BindHandle { .. } | Item::Unbind { .. } => {
            To::Nobody
        }
    }
}

impl Outside for World {
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]) {
        if let Some((arena, at)) = self.places.get(&proc).and_then(|p| p.arena(offset, bytes.len() as u64)) {
            arena.copy_in(at, bytes);
        }
    }

    fn zero(&mut self, proc: ProcId, offset: u64, len: u64) {
        if let Some((arena, at)) = self.places.get(&proc).and_then(|p| p.arena(offset, len)) {
            arena.zero(at, len as usize);
        }
    }

    fn busy(&self, proc: ProcId) -> bool {
        self.has_calls(proc, |channel| channel.lanes.is_idle())
    }

    fn settle(&mut self, proc: ProcId) -> bool {
        // It may go on to call others.
        let settle = |channel: &Channel| match channel.callee == proc {
            true => channel.lanes.hold(),
            false => channel.lanes.is_idle(),
        };
        !self.has_calls(proc, settle)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn threads(&self, proc: ProcId) -> Vec<ThreadLine> {
        let Some(place) = self.places.get(&proc) else { return Vec::new() };
        let line = |bell: Bell<'_, _>| ThreadLine {
            key: ThreadKey { slot: bell.number(), generation: bell.generation() },
            tid: bell.tid(),
            looper: bell.looper() & !NEED_RETURN | if bell.waits() { WAITING } else { 0 },
            ready: bell.is_ready(),
            serving: bell.serving(),
            need_return: bell.looper() & NEED_RETURN != 0,
            depth: bell.depth(),
        };
        place.slots().map(line).filter(|line| line.tid != 0).collect()
    }

    fn shown(&self, proc: ProcId) -> Shown {
        let Some(Place { bells, .. }) = self.places.get(&proc) else { return Shown::default() };
        let (requested, started) = bells.pool();
        let counts = bells.counts();
        let times = |(word, counter): (u32, usize)| (word, counts.get(counter).copied().unwrap_or(0));
        let commands = bc::ALL.iter().map(|(_, word)| (*word, doorbell::of_command(*word)));
        // It has the number of the one without a context, and so its counter.
        let own = |(_, word): &&(&str, u32)| *word != br::TRANSACTION_SEC_CTX;
        let returns = br::ALL.iter().filter(own).map(|(_, word)| (*word, doorbell::of_return(*word)));
        let words = commands.chain(returns).map(times).filter(|(_, times)| *times > 0).collect();
        Shown { requested, started, untaken: bells.untaken(), threads_ever: bells.threads_ever(), words }
    }

    fn item(&mut self, to: ProcId, item: Item) {
        let Some(place) = self.places.get_mut(&to) else { return };
        // Behind those that wait, so that the order stays.
        let pushed = if place.waiting.is_empty() { place.producer.push(&item.encode()) } else { Ok(false) };
        match pushed {
            Ok(true) => place.ring(&item),
            Ok(false) if place.waiting.len() < WAITING_MAX => place.waiting.push_back(item),
            Ok(false) => self.fail(to, "it does not read its inbox, and too much waits for it"),
            Err(_) => self.fail(to, CORRUPT_INBOX),
        }
    }

    fn make_channel(&mut self, channel: u32, bit: u32, caller: ProcId, callee: ProcId) -> bool {
        let doorbells = |proc| self.places.get(&proc).map(|place| Arc::clone(&place.shared.doorbells));
        let (Some(of_caller), Some(of_callee)) = (doorbells(caller), doorbells(callee)) else { return false };
        // Without memory, or descriptors, these two go on through the broker.
        let Ok(memory) = SealedMemory::create(lane::SIZE).map(Arc::new) else { return false };
        let Ok(lanes) = Lanes::new(Arc::clone(&memory)) else { return false };
        let doorbells = [of_caller, of_callee];
        self.channels.insert(channel, Channel { lanes, memory, caller, callee, bit, doorbells });
        for side in [caller, callee] {
            if let Some(place) = self.places.get_mut(&side) {
                place.channels.insert(channel);
            }
        }
        true
    }

    fn set_gate(&mut self, channel: u32, gate: u32) {
        let Some(Channel { lanes, callee, bit, .. }) = self.channels.get(&channel) else { return };
        for (asked, bit) in [(GATE_FROZEN, lane::FROZEN), (GATE_CLOSED, lane::CLOSED)] {
            if gate & asked != 0 {
                lanes.shut(bit);
            }
        }
        // A closed channel stays closed: either side may have closed it, too. What it holds stays held: its callee may
        // still be frozen, and its callers back out.
        if gate != 0 {
            return;
        }
        lanes.open(lane::FROZEN);
        let Some(place) = self.places.get(callee) else { return };
        // A caller that stopped all the while between publishing and its look at the gate finds it open, and waits. Whoever
        // was told of its call, any thread or a certain one, found it held.
        place.bells.post(*bit);
    }

    fn wake_all(&mut self, proc: ProcId) {
        let Some(place) = self.places.get(&proc) else { return };
        place.slots().for_each(|bell| wake(&bell));
    }

    fn drop_channel(&mut self, channel: u32) {
        let Some(Channel { caller, callee, .. }) = self.channels.remove(&channel) else { return };
        for side in [caller, callee] {
            if let Some(place) = self.places.get_mut(&side) {
                place.channels.remove(&channel);
            }
        }
    }
}

#[cfg(test)]
mod tests;
