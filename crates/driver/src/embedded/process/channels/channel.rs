//! Room: a channel, seen from one end: what is known of the peer, which lanes are in use, and waking one
//! of its threads.
//! Not here: the memory's layout (`channel::lane`, `channel::doorbell`), which handles and nodes use it
//! (`super`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::super::sched;
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::doorbell::{BellMemory, Doorbells};
use crate::embedded::channel::lane::{self, Ahead, LaneMemory, Lanes};
use crate::embedded::marks::{Marks, Whom};
use crate::embedded::priority;
use crate::embedded::protocol::{ProcId, Sched, ThreadKey};

/// A channel, seen from one end.
#[derive(Debug)]
pub(in super::super) struct Channel {
    pub(in super::super) id: u32,
    /// Its place in the callee's ready bits.
    pub(super) bit: u32,
    pub(super) peer: ProcId,
    pub(super) peer_pid: u32,
    pub(super) peer_euid: u32,
    pub(super) lanes: Lanes<LaneMemory>,
    /// The peer's.
    pub(super) bells: Doorbells<BellMemory>,
    /// Lanes in use by this process's threads (as caller; changed under the lock).
    pub(super) busy: AtomicU32,
    /// The peer is gone, or made no sense.
    pub(super) closed: AtomicBool,
    /// The CPU where the peer was last seen.
    pub(super) peer_cpu: AtomicU32,
    /// Lanes that a thread of the callee said it would look at (as caller).
    pub(super) watched: AtomicU32,
    /// Lanes whose call was taken and not answered (as callee).
    pub(super) serving: [AtomicBool; lane::LANES as usize],
    /// The last binding that this process heard of (as callee; changed under the lock).
    pub(super) last_binding: AtomicU32,
}

impl Channel {
    /// Its number and place, its peer, and what they share.
    pub(super) fn new(
        (id, bit): (u32, u32),
        (peer, peer_pid, peer_euid): (ProcId, u32, u32),
        lanes: Lanes<LaneMemory>,
        bells: Doorbells<BellMemory>,
    ) -> Self {
        Self {
            id,
            bit,
            peer,
            peer_pid,
            peer_euid,
            lanes,
            bells,
            busy: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            peer_cpu: AtomicU32::new(0),
            watched: AtomicU32::new(0),
            serving: Default::default(),
            last_binding: AtomicU32::new(0),
        }
    }

    /// A thread of the peer, or any.
    pub(in super::super) fn whom(&self, thread: Option<ThreadKey>) -> Whom {
        let bell = thread.and_then(|thread| self.bells.slot(thread.slot));
        Whom { pid: self.peer_pid, tid: bell.map_or(0, |bell| bell.tid()) }
    }

    /// [`Ahead::step`].
    #[inline]
    pub(in super::super) fn get_ready(&self, ahead: &mut Ahead) -> bool {
        ahead.step(&self.lanes)
    }

    pub(super) fn ring(&self, thread: ThreadKey) {
        if let Some(bell) = self.bells.slot(thread.slot)
            && bell.ring()
        {
            bell.wake();
        }
    }

    pub(super) fn cpu_hint(&self) -> Option<u32> {
        self.peer_cpu.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(super) fn saw_cpu(&self, cpu: u32) {
        self.peer_cpu.store(cpu.saturating_add(1), Ordering::Relaxed);
    }

    pub(in super::super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether calls may go through it.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.lanes.gate() == 0 && !self.is_closed()
    }

    /// A peer that makes no sense loses its channel; calls go through the broker from then on.
    pub(super) fn close_as(&self, reason: Corrupt) {
        self.closed.store(true, Ordering::Relaxed);
        self.lanes.close_as(reason);
    }

    /// Remembers whether the callee watches a lane.
    pub(super) fn note_watched(&self, lane: u32, watched: bool) {
        let bits = self.watched.load(Ordering::Relaxed);
        let wanted = if watched { bits | 1 << lane } else { bits & !(1 << lane) };
        if wanted != bits {
            self.watched.store(wanted, Ordering::Relaxed);
        }
    }

    pub(super) fn is_watched(&self, lane: u32) -> bool {
        self.watched.load(Ordering::Relaxed) >> lane & 1 == 1
    }

    /// A call was taken; false if that lane has one already, which no honest caller does.
    pub(super) fn begin_serving(&self, lane: u32) -> bool {
        let Some(serving) = self.serving.get(lane as usize) else { return false };
        // Only under the process's lock.
        let before = serving.load(Ordering::Relaxed);
        serving.store(true, Ordering::Relaxed);
        !before
    }

    /// It is about to be answered: from then on there may be another.
    pub(super) fn end_serving(&self, lane: u32) {
        if let Some(serving) = self.serving.get(lane as usize) {
            serving.store(false, Ordering::Relaxed);
        }
    }

    /// A lane that no thread of this process uses.
    pub(super) fn free_lane(&self) -> Option<u32> {
        let lane = self.busy.load(Ordering::Relaxed).trailing_ones();
        (lane < lane::LANES).then_some(lane)
    }

    pub(super) fn mark(&self, lane: u32, busy: bool) {
        // Only under the process's lock.
        let bits = self.busy.load(Ordering::Relaxed);
        let bits = if busy { bits | 1 << lane } else { bits & !(1 << lane) };
        self.busy.store(bits, Ordering::Relaxed);
    }
}

/// A peer's thread that sleeps: found under the lock, woken without it.
#[derive(Debug)]
pub(in super::super) struct Wake {
    pub(in super::super) channel: Arc<Channel>,
    /// Slot of its bell.
    pub(super) slot: u32,
    /// For a call: how the caller is scheduled, and the flags of the node.
    pub(super) call: Option<(Sched, u32)>,
}

impl Wake {
    /// One system call, and before it those that raise the thread to its caller's priority where that
    /// passes on.
    pub(in super::super) fn carry_out(&self, marks: Option<&Marks>) {
        let Self { channel, slot, call } = self;
        let Some(bell) = channel.bells.slot(*slot) else { return };
        if let Some((caller, node_flags)) = *call {
            let thread = priority::Thread { pid: channel.peer_pid, tid: bell.tid() };
            let before = marks.and_then(|_| sched::of(thread.tid));
            let raised = priority::boost(thread, channel.bells.inherit(), caller, node_flags, false);
            if let (Some(marks), Some(before), Some(raised)) = (marks, before, raised) {
                marks.priority(Whom { pid: thread.pid, tid: thread.tid }, before, raised, raised);
            }
        }
        bell.wake();
    }
}
