//! Assigning returns to one thread's unfinished transactions, of which nested calls make several.
//! Not here: the states of one transaction (`call`), reading and acting on returns (`exchange`).
//! Facts: contract TX-01, TX-06, TX-18, TX-19, WR-09.
//!
//! The driver acknowledges every transaction once, in the order of writing, usually before anything else. But a thread may
//! read a call between its reply and the reply's acknowledgement: when the far end of a call chain has died, the
//! thread before it may call again while the thread after it is still being served.

use std::cell::{Cell, RefCell};

use abi::ReturnWord;

use crate::call::{AfterSent, Sent};
use crate::error::{ProtocolError, Refusal};

/// A transaction in the stream of commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAt {
    /// Where its command ends, in bytes.
    pub(crate) end: u64,
    /// Whether it is a reply.
    pub(crate) reply: bool,
}

/// One thread's unfinished transactions, outermost first, which is the order of writing.
#[derive(Debug, Default)]
pub(crate) struct OutstandingTransactions {
    /// Transactions whose acknowledgement is awaited in an outer frame, with the one that was read for them.
    unacknowledged: RefCell<Vec<(SentAt, Option<AfterSent>)>>,
    /// Calls whose answers are awaited, each within the one before.
    awaited: Cell<u32>,
    /// Refusals that came while a nested call was being replied to, with the depth of the call they end.
    early: RefCell<Vec<(u32, Refusal)>>,
}

impl OutstandingTransactions {
    /// Marks a transaction as waiting for its acknowledgement while the thread does other work, until the
    /// result is dropped.
    pub(crate) fn leave_unacknowledged(&self, sent: SentAt) -> Unacknowledged<'_> {
        self.unacknowledged.borrow_mut().push((sent, None));
        Unacknowledged(self)
    }

    /// Gives a return to the outer transaction that it acknowledges; `false` if it is for the innermost.
    /// `written`: bytes of commands that the driver has taken.
    ///
    /// # Errors
    /// The return is for an outer transaction, but acknowledges nothing.
    pub(crate) fn is_for_an_outer_one(&self, word: ReturnWord, written: u64) -> Result<bool, ProtocolError> {
        let none = self.unacknowledged.borrow().is_empty();
        if none { Ok(false) } else { self.give_out(word, written) }
    }

    fn give_out(&self, word: ReturnWord, written: u64) -> Result<bool, ProtocolError> {
        let mut unacknowledged = self.unacknowledged.borrow_mut();
        let waits = |(sent, found): &&mut (SentAt, Option<AfterSent>)| found.is_none() && sent.end <= written;
        let Some((sent, found)) = unacknowledged.iter_mut().find(waits) else { return Ok(false) };
        match Sent.on(word)? {
            AfterSent::Refused(Refusal::Dead) if sent.reply && self.keep_early(Refusal::Dead) => {}
            after => *found = Some(after),
        }
        Ok(true)
    }

    /// Marks the reply of a call as awaited until the result is dropped.
    pub(crate) fn await_answer(&self) -> Awaited<'_> {
        self.awaited.set(self.awaited.get() + 1);
        Awaited(self)
    }

    /// Keeps a refusal for the call that is awaited; `false` if none is.
    pub(crate) fn keep_early(&self, by: Refusal) -> bool {
        let awaited = self.awaited.get();
        if awaited > 0 {
            self.early.borrow_mut().push((awaited, by));
        }
        awaited > 0
    }
}

/// See [`OutstandingTransactions::leave_unacknowledged`].
pub(crate) struct Unacknowledged<'t>(&'t OutstandingTransactions);

impl Unacknowledged<'_> {
    /// The return that was found for it.
    pub(crate) fn found(self) -> Option<AfterSent> {
        self.0.unacknowledged.borrow_mut().last_mut().and_then(|(_, found)| found.take())
    }
}

impl Drop for Unacknowledged<'_> {
    fn drop(&mut self) {
        self.0.unacknowledged.borrow_mut().pop();
    }
}

/// See [`OutstandingTransactions::await_answer`].
pub(crate) struct Awaited<'t>(&'t OutstandingTransactions);

impl Awaited<'_> {
    /// The refusal that came early for this call.
    pub(crate) fn early(&self) -> Option<Refusal> {
        let mut early = self.0.early.borrow_mut();
        let place = self.0.awaited.get();
        early.pop_if(|(of, _)| *of == place).map(|(_, by)| by)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        // An answer to an abandoned call belongs to no other call.
        let _ = self.early();
        self.0.awaited.set(self.0.awaited.get() - 1);
    }
}
