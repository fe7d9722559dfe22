//! Room: what a process knows of itself: its threads, what there is for them to do, the pool, the buffers
//! that were delivered.
//!
//! - [`thread`]: one thread, with its stack and its queue.
//!
//! Not here: how work gets in (`inbox`, `channels`) and out (`read`), waiting (`wait`).
//! Locks: everything here is behind the process's one lock; no other process ever waits for it.
//! Facts: contract sections 4 and 5; `binder_thread`, `binder_proc` in `binder.c`, Linux 7.2.

mod thread;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(super) use thread::{Answer, BrokerCall, Calling, Frame, NO_ERROR, Pending, Source, Thread};

use super::area::Live;
use super::channels::{Channel, Channels, Node};
use super::sched::Saved;
use crate::embedded::channel::doorbell::SLOTS;
use crate::embedded::channel::lane::{self, ReplyHeader};
use crate::embedded::marks;
use crate::embedded::protocol::{Answers, Delivery, ThreadKey};

/// Keys here are small numbers and addresses that this process or its broker chose, so that a
/// multiplication spreads them well enough and nobody can choose them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
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
        // The table looks at the low bits and the highest seven; addresses differ in the middle.
        self.0 ^ self.0 >> 32
    }
}

/// A map with quick keys.
pub(super) type Quick<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Bits of a looper, as the state file prints them (contract DBG-01).
pub(super) mod looper {
    pub(in super::super) const REGISTERED: u32 = 1;
    pub(in super::super) const ENTERED: u32 = 2;
    pub(in super::super) const EXITED: u32 = 4;
    pub(in super::super) const INVALID: u32 = 8;
    pub(in super::super) const POLL: u32 = 0x20;
}

/// One thing for a thread to read.
#[derive(Debug)]
pub(super) enum Todo {
    /// A return without payload.
    Word(u32),
    /// The same from the error slot: until it is read, the thread's writes stop (contract WR-13).
    Refusal(u32),
    /// A return with one or two words of payload.
    Small(u32, [u64; 2]),
    /// Whatever the broker says of it when it is read (contract REF-10).
    Work(u64),
    /// A call or oneway that came through the broker.
    Call(Box<Delivery>),
    /// A call that came through a lane.
    LaneCall(BoxedCall),
    /// The answer to this thread's call, through the broker.
    Reply(Box<Reply>),
    /// The answer to this thread's call, in its lane. Few come this way: a thread most often reads it right from there.
    LaneReply(Box<LaneReply>),
}

impl Todo {
    /// Whether it is a call, or the answer to one.
    pub(super) fn is_transaction(&self) -> bool {
        self.is_call() || matches!(self, Self::Reply(_) | Self::LaneReply(_))
    }

    /// Whether it is a call.
    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::LaneCall(_))
    }
}

/// A call that came in a lane, as it changes hands: it is large, and its channel keeps the box for the next one.
pub(super) type BoxedCall = Box<LaneCall>;

/// A call that came in a lane.
#[derive(Debug)]
pub(super) struct LaneCall {
    pub(super) channel: Arc<Channel>,
    pub(super) request: lane::Request,
    /// What it is for; known once it was accepted.
    pub(super) node: Node,
    /// By which binding, and as of which change of those: the box's next call most often is for the same.
    pub(super) found: (u32, u64),
    /// How the thread that serves it was scheduled before.
    pub(super) saved: Saved,
}

/// A lane that a thread looks at without being told.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) channel: Arc<Channel>,
    pub(super) lane: u32,
}

/// A call of this process in a lane.
#[derive(Clone, Debug)]
pub(super) struct LaneTicket {
    pub(super) channel: Arc<Channel>,
    pub(super) call: lane::Call,
    pub(super) handle: u32,
    /// `TF_*` bits of the call.
    pub(super) flags: u32,
    /// The callee gave its reply to the broker.
    pub(super) by_broker: bool,
    /// The call's number in traces, 0 if this process does not trace.
    pub(super) mark: u32,
}

impl LaneTicket {
    pub(super) fn answers(&self) -> Answers {
        Answers::Lane { channel: self.channel.id, lane: self.call.lane }
    }
}

/// A reply in a lane.
#[derive(Debug)]
pub(super) struct LaneReply {
    pub(super) ticket: LaneTicket,
    pub(super) header: ReplyHeader,
}

/// A reply in the arena.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u32,
    pub(super) flags: u32,
    pub(super) euid: u32,
    pub(super) buffer: u64,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) extra_size: u64,
    /// Of the reply; it names its descriptors, too.
    pub(super) number: u32,
    pub(super) fds: u32,
}

/// The pool of loopers (contract LP-02 to LP-05).
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) max: u32,
    pub(super) started: u32,
    pub(super) requested: bool,
}

/// A delivered buffer in the arena that was not given back yet.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Where it lies in the arena.
    pub(super) offset: u64,
    /// Descriptors of FD objects that nobody took over yet, by the object's address.
    pub(super) descriptors: Vec<(u64, OwnedFd)>,
    /// Descriptors of FDA objects: closed with the buffer (contract OBJ-13).
    pub(super) array: Vec<OwnedFd>,
}

/// A buffer that the broker takes back together with a reply, and that is out of the books meanwhile: its place may be
/// another's by now, of which some other thread reads before the one that replied goes on.
#[derive(Debug)]
pub(super) struct GivenBack {
    pub(super) address: u64,
    pub(super) buffer: Buffer,
    /// What is to be traced of it.
    pub(super) mark: Option<marks::Sized>,
}

/// Threads by slot, each in memory of its own: finding one takes few instructions, and a call does it often.
type Slots = Box<[Option<Box<Thread>>; SLOTS as usize]>;

/// A slot as an index of an array of so many; slots are only given out below that, and now the compiler knows.
#[inline(always)]
pub(super) fn index(slot: u32) -> usize {
    (slot % SLOTS) as usize
}

/// See the room.
#[derive(Debug)]
pub(super) struct State {
    /// By slot.
    pub(super) threads: Slots,
    by_tid: HashMap<i32, u32>,
    /// What any thread may take.
    pub(super) queue: VecDeque<Todo>,
    /// Threads that wait for it, the most recent last (contract LP-08).
    pub(super) idle: Vec<u32>,
    /// Threads that poll, which learn of work but are given none (contract POL-03).
    pub(super) pollers: Vec<u32>,
    pub(super) pool: Pool,
    /// Those in the arena, by address.
    pub(super) buffers: Quick<u64, Buffer>,
    pub(super) channels: Channels,
    /// The private area's parts in use.
    pub(super) live: Live,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            threads: Box::new([const { None }; SLOTS as usize]),
            by_tid: HashMap::new(),
            queue: VecDeque::with_capacity(16),
            idle: Vec::with_capacity(16),
            pollers: Vec::new(),
            pool: Pool::default(),
            buffers: Quick::with_capacity_and_hasher(16, BuildHasherDefault::default()),
            channels: Channels::default(),
            live: Live::new(),
        }
    }

    /// The record of a thread, by slot.
    ///
    /// # Panics
    /// If the slot is empty: a slot number is only held by its own thread, inside one call.
    #[inline]
    pub(super) fn thread(&mut self, slot: u32) -> &mut Thread {
        self.threads[index(slot)].as_mut().expect("a thread's slot is filled while it is in a call")
    }

    /// The same of whoever does something, which may have exited meanwhile.
    #[inline]
    pub(super) fn thread_if_any(&mut self, slot: u32) -> Option<&mut Thread> {
        self.threads.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The same, and what any thread may take.
    #[inline]
    pub(super) fn thread_and_queue(&mut self, slot: u32) -> (&mut Thread, &VecDeque<Todo>) {
        let thread = self.threads[index(slot)].as_mut();
        (thread.expect("a thread's slot is filled while it is in a call"), &self.queue)
    }

    /// The slot of a thread that still is the one meant.
    #[inline]
    pub(super) fn slot_of(&self, key: ThreadKey) -> Option<u32> {
        let thread = self.threads[index(key.slot)].as_ref()?;
        (thread.key == key).then_some(key.slot)
    }

    /// The slot of a thread by its kernel number.
    pub(super) fn find(&self, tid: i32) -> Option<u32> {
        self.by_tid.get(&tid).copied()
    }

    /// A slot for a thread to come; `None` if all are taken.
    pub(super) fn free_slot(&self) -> Option<u32> {
        self.threads.iter().position(Option::is_none).map(|slot| slot as u32)
    }

    /// Makes a thread's record.
    pub(super) fn enter(&mut self, key: ThreadKey, tid: i32) {
        self.threads[index(key.slot)] = Some(Box::new(Thread::new(key, tid)));
        self.by_tid.insert(tid, key.slot);
    }

    /// Forgets a thread.
    pub(super) fn exit(&mut self, slot: u32) -> Option<Box<Thread>> {
        let thread = self.threads.get_mut(slot as usize)?.take()?;
        self.by_tid.remove(&thread.tid);
        Some(thread)
    }
}
