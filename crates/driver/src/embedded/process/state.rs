//! Room: what a process knows of itself: its threads, their stacks and queues, the pool, the buffers
//! that were delivered.
//! Not here: how work gets in (`inbox`, `lanes`) and out (`read`), waiting (`wait`).
//! Locks: everything here is behind the process's one lock; no other process ever waits for it.
//! Facts: contract sections 4 and 5; `binder_thread`, `binder_proc` in `binder.c`, Linux 7.2.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::codes::br;
use abi::layout::ExtendedError;

use super::area::Live;
use super::channels::{Channel, Channels, Node, Wake};
use super::sched::Saved;
use super::spares::Spares;
use super::todos::Todos;
use crate::embedded::channel::doorbell::SLOTS;
use crate::embedded::channel::lane::{self, ReplyHeader};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::marks::What;
use crate::embedded::protocol::{Answers, Delivery, Lineage, Returns, Sched, ThreadKey};

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

/// One level of a thread's transaction stack.
#[derive(Debug)]
pub(super) enum Frame {
    /// A call that the thread serves.
    Serving(Source),
    /// A call that the thread waits for.
    Calling(Calling),
}

/// Where a call that is being served came from.
#[derive(Debug)]
pub(super) enum Source {
    /// The broker.
    Broker(Box<BrokerCall>),
    /// A lane.
    Lane(BoxedCall),
}

impl Source {
    /// How the thread was scheduled before it served the call.
    #[inline]
    pub(super) fn saved(&self) -> Saved {
        match self {
            Self::Broker(call) => call.saved,
            Self::Lane(call) => call.saved,
        }
    }
}

/// A call from the broker that a thread serves.
#[derive(Debug)]
pub(super) struct BrokerCall {
    /// Its number.
    pub(super) transaction: u32,
    /// Who waits for it, nearest first.
    pub(super) lineage: Lineage,
    pub(super) what: What,
    /// How the thread was scheduled before.
    pub(super) saved: Saved,
}

/// What a thread waits for.
#[derive(Debug)]
pub(super) enum Calling {
    /// A call that went through the broker, by its number.
    Broker(u32),
    /// A call in a lane.
    Lane(LaneTicket),
}

/// What the broker's answer to a thread's open request turns into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// Nothing but the answer itself.
    Plain,
    /// A two-way call.
    Call,
    /// A oneway call.
    Oneway,
    /// A reply.
    Reply,
    /// Nothing yet: what becomes of the transaction that it sends next.
    Foretold,
}

/// The broker's answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) errno: i32,
    pub(super) sender_stops: bool,
    pub(super) words: [u64; 4],
    pub(super) returns: Returns,
}

/// A thread that used the connection.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) key: ThreadKey,
    pub(super) tid: i32,
    /// [`looper`] bits.
    pub(super) looper: u32,
    pub(super) stack: Vec<Frame>,
    pub(super) todo: Todos,
    /// Calls that came while it was engaged.
    pub(super) early: Vec<Todo>,
    /// Ends of calls, each for when the stack is no deeper than this.
    held: Vec<(usize, Todo)>,
    /// Whether something in `todo` is worth waking for: deferred items are not (contract WR-15).
    pub(super) urgent: bool,
    /// Whether a refusal waits in `todo`.
    pub(super) refused: bool,
    pub(super) extended_error: ExtendedError,
    /// The number of the last request, and what its answer turns into.
    pub(super) seq: u32,
    pub(super) pending: Pending,
    pub(super) answer: Option<Answer>,
    /// How it waits, and what it learnt of that; the thread has it while it waits.
    pub(super) waiter: Option<Box<Waiter>>,
    /// How it was scheduled before anybody could boost it: as it entered the driver, or since it waits for any
    /// work. Kept only where real-time policies are inherited.
    pub(super) before: Option<Sched>,
    /// It looks for work, and will take whatever comes first.
    pub(super) seeks: bool,
    /// The lane that it served last, which it looks at first while it spins for more.
    pub(super) watched: Option<Watched>,
    /// Whom to wake once the lock is free.
    pub(super) wake: Option<Wake>,
    pub(super) spares: Spares,
}

/// No failure (contract IOC-06).
pub(super) const NO_ERROR: ExtendedError = ExtendedError { id: 0, command: br::OK, param: 0 };

impl Thread {
    pub(super) fn new(key: ThreadKey, tid: i32) -> Self {
        Self {
            key,
            tid,
            looper: 0,
            stack: Vec::with_capacity(8),
            todo: Todos::new(),
            early: Vec::new(),
            held: Vec::new(),
            urgent: false,
            refused: false,
            extended_error: NO_ERROR,
            seq: 0,
            pending: Pending::Plain,
            answer: None,
            waiter: None,
            before: None,
            seeks: false,
            watched: None,
            wake: None,
            spares: Spares::default(),
        }
    }

    /// Queues something that is worth waking for.
    #[inline]
    pub(super) fn push(&mut self, todo: Todo) {
        self.push_deferred(todo);
        self.urgent = true;
    }

    /// Queues something that can wait for the next real thing.
    #[inline]
    pub(super) fn push_deferred(&mut self, todo: Todo) {
        self.todo.push(todo);
    }

    /// Queues the acknowledgement of a transaction that it sends, which can wait in a call; where it is among what
    /// there is to read.
    #[inline]
    pub(super) fn acknowledge(&mut self) -> usize {
        let before = self.todo.len();
        self.todo.push_word(br::TRANSACTION_COMPLETE);
        before
    }

    /// Fills the error slot (contract WR-12).
    pub(super) fn refuse(&mut self, word: u32) {
        self.refused = true;
        self.push(Todo::Refusal(word));
    }

    /// Takes the oldest thing to read, if that is the one that most often is.
    #[inline]
    pub(super) fn pop_word(&mut self) -> Option<u32> {
        let word = self.todo.pop_word()?;
        self.urgent &= !self.todo.is_empty();
        Some(word)
    }

    /// Takes the oldest thing to read, if it is not one for [`pop_word`](Self::pop_word).
    #[inline]
    pub(super) fn pop_other(&mut self) -> Option<Todo> {
        let todo = self.todo.pop_other()?;
        if self.todo.is_empty() {
            self.urgent = false;
        }
        if matches!(todo, Todo::Refusal(_)) {
            self.refused = false;
        }
        Some(todo)
    }

    /// Length of its stack, with the transactions that it has not read.
    pub(super) fn depth(&self) -> u32 {
        self.stack.len() as u32 + self.todo.transactions()
    }

    /// Whether it may take what any thread may take (contract WR-10, LP-09).
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.stack.is_empty() && self.todo.is_empty() && self.held.is_empty()
    }

    /// Whether it sent a transaction to the broker and has no answer yet.
    pub(super) fn is_sending(&self) -> bool {
        self.pending != Pending::Plain
    }

    /// Whether it must not find a call yet: before it has read what became of its transaction it would take that
    /// for the next one's, and of two calls it would find the second before the end of the first.
    pub(super) fn is_engaged(&self) -> bool {
        self.is_sending() || matches!(self.stack.last(), Some(Frame::Serving(_))) || self.todo.has_call()
    }

    /// Whether it has been given a transaction that it has not read.
    pub(super) fn has_unread(&self) -> bool {
        self.todo.transactions() > 0
    }

    /// Takes a frame out of its stack, at `place`, which ends the call there.
    #[inline]
    pub(super) fn take_frame(&mut self, place: usize) -> Option<Frame> {
        for (depth, _) in &mut self.held {
            *depth -= usize::from(*depth > place);
        }
        match place + 1 == self.stack.len() {
            true => self.stack.pop(),
            false => (place < self.stack.len()).then(|| self.stack.remove(place)),
        }
    }

    /// Whether it may read now how the call ended that it waits for.
    #[inline]
    pub(super) fn may_end(&self) -> bool {
        self.held.is_empty() && !self.is_sending() && !self.has_unread()
    }

    /// Has it read the end of the call whose frame was at `place`, once it may; whether that is now.
    #[inline]
    pub(super) fn end(&mut self, place: usize, end: Todo) -> bool {
        if place == self.stack.len() && self.may_end() {
            self.push(end);
            return true;
        }
        self.held.push((place, end));
        self.release_held()
    }

    /// What it will not read any more, as it exits.
    pub(super) fn unread(self) -> impl Iterator<Item = Todo> {
        let held = self.held.into_iter().map(|(_, end)| end);
        self.todo.into_iter().chain(self.early).chain(held)
    }

    /// Queues the ends of calls that it may learn of now; whether there were any. The kernel unwinds
    /// a chain of calls from its far end: a thread never learns of a call's end while it serves, or
    /// has yet to read, one that came back to it from there. It would take that for its next one's.
    #[inline]
    pub(super) fn release_held(&mut self) -> bool {
        !self.held.is_empty() && self.release_some()
    }

    #[cold]
    fn release_some(&mut self) -> bool {
        if self.is_sending() || self.todo.has_call() {
            return false;
        }
        let before = self.held.len();
        while let Some(at) = self.held.iter().rposition(|(depth, _)| *depth >= self.stack.len()) {
            let (_, todo) = self.held.remove(at);
            self.push(todo);
        }
        self.held.len() < before
    }

    /// The threads that wait for what this thread serves; `None` if it serves nothing.
    #[inline]
    pub(super) fn lineage(&self) -> Option<Box<Lineage>> {
        if self.stack.is_empty() { None } else { self.lineage_of_last() }
    }

    #[inline(never)]
    fn lineage_of_last(&self) -> Option<Box<Lineage>> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Serving(Source::Broker(call)) => Some(Box::new(call.lineage)),
            Frame::Serving(Source::Lane(call)) => Some(Box::new(call.lineage())),
            Frame::Calling(_) => None,
        })
    }

    /// The lane of its last call that is not over, whatever the thread serves meanwhile.
    pub(super) fn last_lane(&self) -> Option<&LaneTicket> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Calling(Calling::Lane(ticket)) => Some(ticket),
            _ => None,
        })
    }

    /// Whether the reply that it waits for lies in its lane and is all that it has to read but for words. It stays
    /// there until it is read.
    #[inline]
    pub(super) fn has_lane_reply(&self) -> bool {
        self.awaited_lane().is_some_and(LaneTicket::has_reply) && self.may_end()
    }

    /// The lane that this thread waits for, to look at without the lock.
    #[inline]
    pub(super) fn lane_to_look_at(&mut self) -> Option<LaneTicket> {
        let Some(Frame::Calling(Calling::Lane(ticket))) = self.stack.last() else { return None };
        Some(LaneTicket { channel: self.spares.of(&ticket.channel), ..*ticket })
    }

    /// The lane that this thread waits for, if it waits for one.
    #[inline]
    pub(super) fn awaited_lane(&self) -> Option<&LaneTicket> {
        match self.stack.last() {
            Some(Frame::Calling(Calling::Lane(ticket))) => Some(ticket),
            _ => None,
        }
    }
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
