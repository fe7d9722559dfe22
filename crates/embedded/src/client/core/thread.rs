//! One thread: the calls that it serves and waits for, the items it is to read, and when it may read them.
//! Facts: contract sections 4 and 5; `binder_thread`, Linux 7.2.

use abi::codes::br;
use abi::layout::ExtendedError;

use super::Todo;
use super::slot_call::{BoxedCall, SlotTicket};
use super::todo_queue::TodoQueue;
use crate::priority::Restore;
use crate::rpc::protocol::{Lineage, Returns, ThreadKey};
use crate::trace_events::CodeAndFlags;

/// One level of a thread's transaction stack.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A call that the thread serves.
    Serving(Served),
    /// A call that the thread waits for.
    Calling(Awaited),
}

/// A served call, by its route.
#[derive(Debug)]
pub(crate) enum Served {
    /// Through the broker.
    Broker(Box<BrokerCall>),
    /// Through a call slot.
    CallSlot(BoxedCall),
}

impl Served {
    /// Scheduling of the thread before it served the call.
    pub(crate) fn restore(&self) -> Restore {
        match self {
            Self::Broker(call) => call.restore,
            Self::CallSlot(call) => call.restore,
        }
    }
}

/// A served call that came through the broker.
#[derive(Debug)]
pub(crate) struct BrokerCall {
    /// Transaction number.
    pub(crate) transaction: u32,
    /// The threads that wait for the call, the caller first.
    pub(crate) lineage: Lineage,
    pub(crate) what: CodeAndFlags,
    /// Scheduling of the thread before the call.
    pub(crate) restore: Restore,
}

/// An awaited call, by its route.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// Through the broker, with its transaction number.
    Broker(u32),
    /// Through a call slot.
    CallSlot(SlotTicket),
}

/// The request whose answer a thread expects from the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// A request that only needs its answer.
    Plain,
    /// A two-way call.
    Call,
    /// A oneway call.
    Oneway,
    /// A reply.
    Reply,
    /// A request for the route of the transaction that the thread sends next.
    Preassigned,
}

/// The broker's answer to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) errno: i32,
    pub(crate) sender_stops: bool,
    pub(crate) words: [u64; 4],
    pub(crate) returns: Returns,
}

/// A thread that used the connection.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) key: ThreadKey,
    pub(crate) tid: i32,
    /// `looper` state bits, see [`super::looper`].
    pub(crate) looper: u32,
    pub(crate) stack: Vec<Frame>,
    pub(crate) todo: TodoQueue,
    /// Calls set aside because the thread could not read one.
    pub(super) early: Vec<Todo>,
    /// Ends of calls, each with the stack depth at which it may be read.
    held: Vec<(usize, Todo)>,
    /// Whether `todo` has an item worth waking for; deferred items are not (contract WR-15).
    pub(crate) urgent: bool,
    /// Whether a refusal waits in `todo`.
    pub(crate) refused: bool,
    pub(crate) extended_error: ExtendedError,
    /// Number of the last request to the broker, and the kind of that request.
    pub(crate) seq: u32,
    pub(crate) pending: Pending,
    pub(crate) answer: Option<Answer>,
}

/// Extended error without a failure (contract IOC-06).
pub(crate) const NO_ERROR: ExtendedError = ExtendedError { id: 0, command: br::OK, param: 0 };

/// Extended error of a transaction that failed with this errno.
pub(crate) fn failed(errno: i32) -> ExtendedError {
    ExtendedError { id: 0, command: br::FAILED_REPLY, param: errno.saturating_neg() }
}

impl Thread {
    pub(super) fn new(key: ThreadKey, tid: i32) -> Self {
        Self {
            key,
            tid,
            looper: 0,
            stack: Vec::with_capacity(8),
            todo: TodoQueue::new(),
            early: Vec::new(),
            held: Vec::new(),
            urgent: false,
            refused: false,
            extended_error: NO_ERROR,
            seq: 0,
            pending: Pending::Plain,
            answer: None,
        }
    }

    /// Begins a request to the broker; returns its number.
    pub(crate) fn begin_request(&mut self, pending: Pending) -> u32 {
        self.seq = self.seq.wrapping_add(1).max(1);
        (self.pending, self.answer) = (pending, None);
        self.seq
    }

    /// Queues an item worth waking for.
    pub(crate) fn push(&mut self, todo: Todo) {
        self.push_deferred(todo);
        self.urgent = true;
    }

    /// Queues an item that can wait until the thread reads for another reason.
    pub(crate) fn push_deferred(&mut self, todo: Todo) {
        self.todo.push(todo);
    }

    /// Queues the acknowledgement of a transaction that the thread sends; returns its place in the queue.
    pub(crate) fn acknowledge(&mut self) -> usize {
        let place = self.todo.len();
        self.todo.push(Todo::Word(br::TRANSACTION_COMPLETE));
        place
    }

    /// Fills the error slot (contract WR-12).
    pub(crate) fn refuse(&mut self, word: u32) {
        self.refused = true;
        self.push(Todo::Refusal(word));
    }

    /// Takes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<Todo> {
        let todo = self.todo.pop()?;
        self.urgent &= !self.todo.is_empty();
        if matches!(todo, Todo::Refusal(_)) {
            self.refused = false;
        }
        Some(todo)
    }

    /// Number of transactions on the stack and in the queue.
    pub(crate) fn depth(&self) -> u32 {
        self.stack.len() as u32 + self.todo.transactions()
    }

    /// Whether the thread may take the process's work (contract WR-10, LP-09).
    pub(crate) fn is_free(&self) -> bool {
        self.stack.is_empty() && self.todo.is_empty() && self.held.is_empty()
    }

    /// Whether the thread may start a two-way call: its last one is answered, and its own queue begins with no
    /// transaction (contract TX-13, TX-15).
    pub(crate) fn may_call(&self) -> bool {
        !matches!(self.stack.last(), Some(Frame::Calling(_))) && !self.todo.begins_with_transaction()
    }

    /// Whether a transaction of the thread to the broker has no answer yet.
    pub(crate) fn is_sending(&self) -> bool {
        self.pending != Pending::Plain
    }

    /// Whether the thread waits for the end of a two-way call.
    pub(super) fn is_calling(&self) -> bool {
        self.pending == Pending::Call || self.stack.iter().any(|frame| matches!(frame, Frame::Calling(_)))
    }

    /// Whether the thread must not be given a call yet. Before it has read the result of its transaction it
    /// would take that for the next one's; of two calls it would read the second before the end of the first.
    pub(super) fn is_engaged(&self) -> bool {
        self.is_sending() || matches!(self.stack.last(), Some(Frame::Serving(_))) || self.todo.has_call()
    }

    /// Whether the thread has a transaction that it has not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.todo.transactions() > 0
    }

    /// Takes from the stack the call that a reply answers; `None` if the thread serves none.
    pub(crate) fn begin_reply(&mut self) -> Option<Served> {
        match self.stack.pop_if(|frame| matches!(frame, Frame::Serving(_)))? {
            Frame::Serving(served) => Some(served),
            Frame::Calling(_) => None,
        }
    }

    /// Removes the frame at `place` from the stack, which ends that call.
    pub(crate) fn take_frame(&mut self, place: usize) -> Option<Frame> {
        for (depth, _) in &mut self.held {
            *depth -= usize::from(*depth > place);
        }
        (place < self.stack.len()).then(|| self.stack.remove(place))
    }

    /// Queues the end of the call whose frame was at `place`, once the thread may read it; returns whether
    /// that is now.
    pub(super) fn end(&mut self, place: usize, end: Todo) -> bool {
        self.held.push((place, end));
        self.release_held()
    }

    /// The items that an exiting thread has not read.
    pub(crate) fn into_unread(self) -> impl Iterator<Item = Todo> {
        let held = self.held.into_iter().map(|(_, end)| end);
        self.todo.into_iter().chain(self.early).chain(held)
    }

    /// Queues the ends of calls that the thread may now read; returns whether there were any. The kernel
    /// unwinds a chain of calls from its far end: a thread never reads the end of a call while it serves, or
    /// has yet to read, a nested call that came back from there. It would take that end for its next call's.
    pub(crate) fn release_held(&mut self) -> bool {
        !self.held.is_empty() && !self.is_sending() && !self.todo.has_call() && self.release_all_held()
    }

    fn release_all_held(&mut self) -> bool {
        let before = self.held.len();
        while let Some(at) = self.held.iter().rposition(|(depth, _)| *depth >= self.stack.len()) {
            let (_, todo) = self.held.remove(at);
            // Two unread failures are one (contract TX-25).
            if !(todo.is_failure() && self.todo.has_failure()) {
                self.push(todo);
            }
        }
        self.held.len() < before
    }

    /// The threads that wait for the call that this thread serves; `None` if it serves none.
    pub(crate) fn lineage(&self) -> Option<Box<Lineage>> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Serving(Served::Broker(call)) => Some(Box::new(call.lineage)),
            Frame::Serving(Served::CallSlot(call)) => Some(Box::new(call.lineage())),
            Frame::Calling(_) => None,
        })
    }

    /// The call in a call slot that this thread waits for.
    pub(crate) fn awaited_slot(&self) -> Option<&SlotTicket> {
        match self.stack.last() {
            Some(Frame::Calling(Awaited::CallSlot(ticket))) => Some(ticket),
            _ => None,
        }
    }

    /// The broker's calls that the thread serves, outermost first.
    pub(crate) fn serving(&self) -> impl Iterator<Item = u32> {
        self.stack.iter().filter_map(|frame| match frame {
            Frame::Serving(Served::Broker(call)) => Some(call.transaction),
            _ => None,
        })
    }
}
