//! The client's core: threads, transaction stacks, queues, loopers, channel bindings and node pins of one
//! process, as a state machine without locks, system calls, clocks or I/O. Its inputs are the broker's
//! events, call slot events and the threads' commands; its outputs are [`Effect`]s.
//!
//! - [`thread`]: one thread's stack, queue and pending ends of calls.
//! - [`todo_queue`]: the queue of items that a thread is to read.
//! - [`threads`]: the table of threads, idle threads, the looper pool.
//! - [`routing`]: assigns work to threads.
//! - [`broker_items`]: applies the broker's items.
//! - [`arrival_order`]: which of calls through call slots and the broker's records comes first.
//! - [`slot_call`], [`slot_calls`]: a call through a call slot, and its effect on threads, handles and nodes.
//! - [`channel_table`]: the handles and nodes that calls through call slots may use.
//! - [`node_pins`]: nodes in use by such calls.
//!
//! Not here: the lock, waiting, shared memory, priorities and traces (the shell, [`super::active_thread`] and
//! its neighbours). A channel is opaque here: the core reads its numbers, never its memory.
//! Facts: contract sections 4 and 5; `binder_thread`, `binder_proc` in `binder.c`, Linux 7.2.

mod arrival_order;
mod broker_items;
pub(crate) mod channel_table;
mod node_pins;
mod routing;
pub(crate) mod slot_call;
mod slot_calls;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
mod threads;
mod todo_queue;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use abi::codes::br;

use crate::rpc::protocol::{Delivery, ProcId, Request};
use arrival_order::ArrivalOrder;
use channel_table::ChannelTable;
use slot_call::{BoxedCall, SlotReply, SlotTicket};
use thread::Thread;
pub(crate) use threads::{LooperPool, looper};

/// One item for a thread to read.
#[derive(Debug)]
pub(crate) enum Todo {
    /// A return without payload.
    Word(u32),
    /// A return from the error slot: the thread's writes stop until it is read (contract WR-13).
    Refusal(u32),
    /// A return with one or two words of payload.
    Small(u32, [u64; 2]),
    /// Work that the broker explains when it is read (contract REF-10).
    Work(u64),
    /// A call or oneway call through the broker.
    Call(Box<Delivery>),
    /// A call through a call slot.
    SlotCall(BoxedCall),
    /// The reply to this thread's call through the broker.
    Reply(Box<BrokerReply>),
    /// The reply to this thread's call, still in its call slot.
    SlotReply(SlotReply),
}

impl Todo {
    /// Whether the item is a call or a reply.
    pub(crate) fn is_transaction(&self) -> bool {
        self.is_call() || matches!(self, Self::Reply(_) | Self::SlotReply(_))
    }

    /// Whether the item is a call.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::SlotCall(_))
    }

    /// Whether the item ends a call without a reply.
    fn is_failure(&self) -> bool {
        matches!(self, Self::Word(br::FAILED_REPLY | br::DEAD_REPLY))
    }
}

/// A reply that came through the broker; its bytes lie in the arena.
#[derive(Debug)]
pub(crate) struct BrokerReply {
    pub(crate) code: u32,
    pub(crate) flags: u32,
    pub(crate) euid: u32,
    pub(crate) buffer: u64,
    pub(crate) data_size: u64,
    pub(crate) offsets_size: u64,
    pub(crate) extra_size: u64,
    /// Number of the reply; its descriptors are fetched by this number.
    pub(crate) number: u32,
    pub(crate) fds: u32,
}

/// An action of the shell, carried out in order before it releases the lock.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Publish the thread's new stack depth, and wake the thread if `wake` is set.
    Changed {
        /// Slot of the thread.
        slot: u32,
        /// Whether the thread has something to read.
        wake: bool,
    },
    /// Send the broker a request without waiting for its answer.
    Send(Box<Request>),
    /// Free the call slot of a call that is over.
    FreeSlot(Box<SlotTicket>),
    /// Answer a call with an errno.
    FailCall(BoxedCall, i32),
}

/// Hasher by one multiplication. The keys are small numbers and addresses chosen by this process or its
/// broker, so nobody can force collisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpreadHasher(u64);

impl Hasher for SpreadHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The map uses the low bits and the highest seven; addresses differ in the middle.
        self.0 ^ self.0 >> 32
    }
}

/// A map for the keys that [`SpreadHasher`] suits.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<SpreadHasher>>;

/// The core state of one process.
#[derive(Debug)]
pub(crate) struct Core {
    /// This process's id at the broker.
    id: ProcId,
    threads: threads::ThreadTable,
    /// Work that any thread may take.
    queue: VecDeque<Todo>,
    /// Whether the queue changed since the shell last showed its length.
    pub(crate) queue_changed: bool,
    /// Threads that wait for any work, the most recent last (contract LP-08).
    idle: Vec<u32>,
    /// Polling threads: they are told of work but are given none (contract POL-03).
    pollers: Vec<u32>,
    /// The thread that is taking in new work and would take any of it.
    seeker: Option<u32>,
    pub(crate) pool: LooperPool,
    pub(crate) channels: ChannelTable,
    order: ArrivalOrder,
    pub(crate) effects: Vec<Effect>,
}

impl Core {
    pub(crate) fn new(id: ProcId) -> Self {
        Self {
            id,
            threads: threads::ThreadTable::new(),
            queue: VecDeque::with_capacity(16),
            queue_changed: false,
            idle: Vec::with_capacity(16),
            pollers: Vec::new(),
            seeker: None,
            pool: LooperPool::default(),
            channels: ChannelTable::default(),
            order: ArrivalOrder::new(),
            effects: Vec::with_capacity(16),
        }
    }

    /// The thread in a slot.
    ///
    /// # Panics
    /// If the slot is empty: a slot number is used only by its own thread, inside one driver call.
    pub(crate) fn thread(&mut self, slot: u32) -> &mut Thread {
        self.threads.get_mut(slot).expect("a thread's slot is filled while it is in a call")
    }

    fn send(&mut self, request: Request) {
        self.effects.push(Effect::Send(Box::new(request)));
    }

    /// Has a thread's new depth published, and the thread woken if `wake`.
    pub(crate) fn changed(&mut self, slot: u32, wake: bool) {
        self.effects.push(Effect::Changed { slot, wake });
    }
}
