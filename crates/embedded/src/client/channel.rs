//! One end of a channel: what is known of the peer, which call slots are in use, and how to wake a peer's
//! thread.
//! Not here: the memory's layout (`shm::call_slot`, `shm::doorbell`), which handles and nodes use the channel
//! (`core::channel_table`).

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sys::fixed_memory::FixedMemory;
use sys::sealed_memory::SealedMemory;

use crate::rpc::protocol::{ProcId, ThreadKey};
use crate::shm::Corrupt;
use crate::shm::call_slot::{self, Call, CallSlots, Request, SlotMemory};
use crate::shm::doorbell::{self, BellMemory, Doorbells};
use crate::trace_events::TaskId;

/// Stands for an errno in a call slot: the serving thread is gone.
pub(super) const NOBODY: i32 = 0;

/// One end of a channel. Fields change under the process's lock, except `closed` and the hints.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: u32,
    /// The channel's position in the callee's ready bits.
    pub(crate) bit: u32,
    pub(crate) peer: ProcId,
    pub(super) peer_pid: u32,
    pub(super) peer_euid: u32,
    pub(super) call_slots: CallSlots<SlotMemory>,
    /// The peer's doorbells.
    pub(super) bells: Doorbells<BellMemory>,
    /// Call slots in use by this process's threads (as caller).
    busy: AtomicU32,
    /// The peer is gone, or its shared memory was corrupt.
    closed: AtomicBool,
    /// The CPU where the peer was last seen, plus 1; 0 for none. A hint.
    peer_cpu: AtomicU32,
    /// Call slots whose call was taken and not answered (as callee).
    serving: AtomicU32,
    /// The newest binding that this process knows (as callee).
    pub(crate) last_binding: AtomicU32,
}

impl Channel {
    /// Makes an end from the channel's id and bit, its peer and the shared memory.
    pub(super) fn new(
        (id, bit): (u32, u32),
        (peer, peer_pid, peer_euid): (ProcId, u32, u32),
        (call_slots, bells): (CallSlots<SlotMemory>, Doorbells<BellMemory>),
    ) -> Self {
        Self {
            id,
            bit,
            peer,
            peer_pid,
            peer_euid,
            call_slots,
            bells,
            busy: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            peer_cpu: AtomicU32::new(0),
            serving: AtomicU32::new(0),
            last_binding: AtomicU32::new(0),
        }
    }

    /// Names a thread of the peer, or any of them, in trace events.
    pub(super) fn trace_name(&self, thread: Option<ThreadKey>) -> TaskId {
        let bell = thread.and_then(|thread| self.bells.slot(thread.slot));
        TaskId { pid: self.peer_pid, tid: bell.map_or(0, |bell| bell.tid()) }
    }

    /// Wakes a thread of the peer if it sleeps.
    pub(super) fn ring(&self, thread: ThreadKey) {
        if let Some(bell) = self.bells.slot(thread.slot)
            && bell.ring()
        {
            bell.wake();
        }
    }

    /// Marks this channel in the callee's ready bits.
    pub(super) fn post(&self) {
        self.bells.post(self.bit);
    }

    /// The CPU where the peer was last seen.
    pub(super) fn peer_cpu(&self) -> Option<u32> {
        self.peer_cpu.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(super) fn note_peer_cpu(&self, cpu: u32) {
        self.peer_cpu.store(cpu.saturating_add(1), Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether calls may go through it.
    pub(super) fn is_open(&self) -> bool {
        self.call_slots.gate() == 0 && !self.is_closed()
    }

    /// Whether the peer's area has room for a payload of `bytes`. If not, the broker decides: there, calls do
    /// not wait and fail before they are acknowledged (contract BUF-04).
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes.max(1) <= self.bells.room() as usize
    }

    /// Closes the channel because the peer is gone, or the broker.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Closes the channel because the peer left corrupt memory; later calls go through the broker.
    pub(super) fn close_as(&self, reason: Corrupt) {
        self.close();
        self.call_slots.close_as(reason);
    }

    /// Records a taken call; false if its call slot already has one, which no honest caller causes.
    pub(super) fn begin_serving(&self, call_slot: u32) -> bool {
        let is_first = !has_bit(&self.serving, call_slot);
        set_bit(&self.serving, call_slot, true);
        is_first
    }

    /// Records that a call is about to be answered: the next call may enter its slot from then on.
    pub(super) fn end_serving(&self, call_slot: u32) {
        set_bit(&self.serving, call_slot, false);
    }

    /// Marks a call as answered through the broker.
    pub(super) fn leave_to_broker(&self, request: &Request) {
        self.end_serving(request.call_slot);
        self.call_slots.replied_by_broker(request.taken());
    }

    /// Ends a call with an errno, or [`NOBODY`], and wakes the caller.
    pub(super) fn fail(&self, request: &Request, errno: i32) {
        self.end_serving(request.call_slot);
        self.call_slots.fail(request.taken(), errno);
        self.ring(request.header.thread);
    }

    /// Finds a call slot that no thread of this process uses.
    pub(super) fn unused_slot(&self) -> Option<u32> {
        let call_slot = self.busy.load(Ordering::Relaxed).trailing_ones();
        (call_slot < call_slot::CALL_SLOTS).then_some(call_slot)
    }

    /// Marks a call slot as used by a thread of this process.
    pub(super) fn use_slot(&self, call_slot: u32) {
        set_bit(&self.busy, call_slot, true);
    }

    /// Frees the call slot of a call that is over.
    pub(super) fn free_slot(&self, call: Call) {
        self.call_slots.release(call);
        set_bit(&self.busy, call.call_slot, false);
    }
}

fn has_bit(bits: &AtomicU32, index: u32) -> bool {
    bits.load(Ordering::Relaxed) >> index & 1 == 1
}

/// Sets one bit without a read-modify-write: only one thread at a time changes the word, or the word is a
/// hint.
fn set_bit(bits: &AtomicU32, index: u32, on: bool) {
    let before = bits.load(Ordering::Relaxed);
    let after = if on { before | 1 << index } else { before & !(1 << index) };
    if after != before {
        bits.store(after, Ordering::Relaxed);
    }
}

/// Maps the memory of a channel that the broker handed out.
pub(super) fn map_channel(
    descriptors: Vec<OwnedFd>,
) -> Option<(CallSlots<SlotMemory>, Doorbells<BellMemory>)> {
    let [call_slots, bells] = <[_; 2]>::try_from(descriptors).ok()?;
    let call_slots = FixedMemory::new(SealedMemory::map(call_slots, call_slot::SIZE).ok()?).ok()?;
    let bells = FixedMemory::new(SealedMemory::map(bells, doorbell::SIZE).ok()?).ok()?;
    Some((CallSlots::new(call_slots).ok()?, Doorbells::new(bells).ok()?))
}
