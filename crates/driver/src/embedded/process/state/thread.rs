//! Room: one thread: the calls that it serves and waits for, what it is to read, and when it may.
//! Not here: the queue of that (`super::super::todos`), who changes it (`super`).
//! Facts: contract sections 4 and 5; `binder_thread`, Linux 7.2.

use abi::codes::br;
use abi::layout::ExtendedError;

use super::super::channels::Wake;
use super::super::sched::Saved;
use super::super::spares::Spares;
use super::super::todos::Todos;
use super::{BoxedCall, GivenBack, LaneTicket, Todo, Watched};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::marks::What;
use crate::embedded::protocol::{Lineage, Returns, Sched, ThreadKey};

/// One level of a thread's transaction stack.
#[derive(Debug)]
pub(in super::super) enum Frame {
    /// A call that the thread serves.
    Serving(Source),
    /// A call that the thread waits for.
    Calling(Calling),
}

/// Where a call that is being served came from.
#[derive(Debug)]
pub(in super::super) enum Source {
    /// The broker.
    Broker(Box<BrokerCall>),
    /// A lane.
    Lane(BoxedCall),
}

impl Source {
    /// How the thread was scheduled before it served the call.
    #[inline]
    pub(in super::super) fn saved(&self) -> Saved {
        match self {
            Self::Broker(call) => call.saved,
            Self::Lane(call) => call.saved,
        }
    }
}

/// A call from the broker that a thread serves.
#[derive(Debug)]
pub(in super::super) struct BrokerCall {
    /// Its number.
    pub(in super::super) transaction: u32,
    /// Who waits for it, nearest first.
    pub(in super::super) lineage: Lineage,
    pub(in super::super) what: What,
    /// How the thread was scheduled before.
    pub(in super::super) saved: Saved,
}

/// What a thread waits for.
#[derive(Debug)]
pub(in super::super) enum Calling {
    /// A call that went through the broker, by its number.
    Broker(u32),
    /// A call in a lane.
    Lane(LaneTicket),
}

/// What the broker's answer to a thread's open request turns into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Pending {
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
pub(in super::super) struct Answer {
    pub(in super::super) errno: i32,
    pub(in super::super) sender_stops: bool,
    pub(in super::super) words: [u64; 4],
    pub(in super::super) returns: Returns,
}

/// A thread that used the connection.
#[derive(Debug)]
pub(in super::super) struct Thread {
    pub(in super::super) key: ThreadKey,
    pub(in super::super) tid: i32,
    /// Bits of [`super::looper`].
    pub(in super::super) looper: u32,
    pub(in super::super) stack: Vec<Frame>,
    pub(in super::super) todo: Todos,
    /// Calls that came while it was engaged.
    pub(in super::super) early: Vec<Todo>,
    /// Ends of calls, each for when the stack is no deeper than this.
    held: Vec<(usize, Todo)>,
    /// Whether something in `todo` is worth waking for: deferred items are not (contract WR-15).
    pub(in super::super) urgent: bool,
    /// Whether a refusal waits in `todo`.
    pub(in super::super) refused: bool,
    pub(in super::super) extended_error: ExtendedError,
    /// The number of the last request, and what its answer turns into.
    pub(in super::super) seq: u32,
    pub(in super::super) pending: Pending,
    pub(in super::super) answer: Option<Answer>,
    /// What the broker has taken back with a reply: the command for it comes next.
    pub(in super::super) given_back: Option<GivenBack>,
    /// How it waits, and what it learnt of that; the thread has it while it waits.
    pub(in super::super) waiter: Option<Box<Waiter>>,
    /// How it was scheduled before anybody could boost it: as it entered the driver, or since it waits for any
    /// work. Kept only where real-time policies are inherited.
    pub(in super::super) before: Option<Sched>,
    /// It looks for work, and will take whatever comes first.
    pub(in super::super) seeks: bool,
    /// The lane that it served last, which it looks at first while it spins for more.
    pub(in super::super) watched: Option<Watched>,
    /// Whom to wake once the lock is free.
    pub(in super::super) wake: Option<Wake>,
    pub(in super::super) spares: Spares,
}

/// No failure (contract IOC-06).
pub(in super::super) const NO_ERROR: ExtendedError = ExtendedError { id: 0, command: br::OK, param: 0 };

impl Thread {
    pub(in super::super) fn new(key: ThreadKey, tid: i32) -> Self {
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
            given_back: None,
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
    pub(in super::super) fn push(&mut self, todo: Todo) {
        self.push_deferred(todo);
        self.urgent = true;
    }

    /// Queues something that can wait for the next real thing.
    #[inline]
    pub(in super::super) fn push_deferred(&mut self, todo: Todo) {
        self.todo.push(todo);
    }

    /// Queues the acknowledgement of a transaction that it sends, which can wait in a call; where it is among what
    /// there is to read.
    #[inline]
    pub(in super::super) fn acknowledge(&mut self) -> usize {
        let before = self.todo.len();
        self.todo.push_word(br::TRANSACTION_COMPLETE);
        before
    }

    /// Fills the error slot (contract WR-12).
    pub(in super::super) fn refuse(&mut self, word: u32) {
        self.refused = true;
        self.push(Todo::Refusal(word));
    }

    /// Takes the oldest thing to read, if that is the one that most often is.
    #[inline]
    pub(in super::super) fn pop_word(&mut self) -> Option<u32> {
        let word = self.todo.pop_word()?;
        self.urgent &= !self.todo.is_empty();
        Some(word)
    }

    /// Takes the oldest thing to read, if it is not one for [`pop_word`](Self::pop_word).
    #[inline]
    pub(in super::super) fn pop_other(&mut self) -> Option<Todo> {
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
    pub(in super::super) fn depth(&self) -> u32 {
        self.stack.len() as u32 + self.todo.transactions()
    }

    /// Whether it may take what any thread may take (contract WR-10, LP-09).
    #[inline]
    pub(in super::super) fn is_free(&self) -> bool {
        self.stack.is_empty() && self.todo.is_empty() && self.held.is_empty()
    }

    /// Whether it sent a transaction to the broker and has no answer yet.
    pub(in super::super) fn is_sending(&self) -> bool {
        self.pending != Pending::Plain
    }

    /// Whether it must not find a call yet: before it has read what became of its transaction it would take that
    /// for the next one's, and of two calls it would find the second before the end of the first.
    pub(in super::super) fn is_engaged(&self) -> bool {
        self.is_sending() || matches!(self.stack.last(), Some(Frame::Serving(_))) || self.todo.has_call()
    }

    /// Whether it has been given a transaction that it has not read.
    pub(in super::super) fn has_unread(&self) -> bool {
        self.todo.transactions() > 0
    }

    /// Takes a frame out of its stack, at `place`, which ends the call there.
    #[inline]
    pub(in super::super) fn take_frame(&mut self, place: usize) -> Option<Frame> {
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
    pub(in super::super) fn may_end(&self) -> bool {
        self.held.is_empty() && !self.is_sending() && !self.has_unread()
    }

    /// Has it read the end of the call whose frame was at `place`, once it may; whether that is now.
    #[inline]
    pub(in super::super) fn end(&mut self, place: usize, end: Todo) -> bool {
        if place == self.stack.len() && self.may_end() {
            self.push(end);
            return true;
        }
        self.held.push((place, end));
        self.release_held()
    }

    /// What it will not read any more, as it exits.
    pub(in super::super) fn unread(self) -> impl Iterator<Item = Todo> {
        let held = self.held.into_iter().map(|(_, end)| end);
        self.todo.into_iter().chain(self.early).chain(held)
    }

    /// Queues the ends of calls that it may learn of now; whether there were any. The kernel unwinds
    /// a chain of calls from its far end: a thread never learns of a call's end while it serves, or
    /// has yet to read, one that came back to it from there. It would take that for its next one's.
    #[inline]
    pub(in super::super) fn release_held(&mut self) -> bool {
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
    pub(in super::super) fn lineage(&self) -> Option<Box<Lineage>> {
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
    pub(in super::super) fn last_lane(&self) -> Option<&LaneTicket> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Calling(Calling::Lane(ticket)) => Some(ticket),
            _ => None,
        })
    }

    /// Whether the reply that it waits for lies in its lane and is all that it has to read but for words. It stays
    /// there until it is read.
    #[inline]
    pub(in super::super) fn has_lane_reply(&self) -> bool {
        self.awaited_lane().is_some_and(LaneTicket::has_reply) && self.may_end()
    }

    /// The lane that this thread waits for, to look at without the lock.
    #[inline]
    pub(in super::super) fn lane_to_look_at(&mut self) -> Option<LaneTicket> {
        let Some(Frame::Calling(Calling::Lane(ticket))) = self.stack.last() else { return None };
        Some(LaneTicket { channel: self.spares.of(&ticket.channel), ..*ticket })
    }

    /// The lane that this thread waits for, if it waits for one.
    #[inline]
    pub(in super::super) fn awaited_lane(&self) -> Option<&LaneTicket> {
        match self.stack.last() {
            Some(Frame::Calling(Calling::Lane(ticket))) => Some(ticket),
            _ => None,
        }
    }
}
