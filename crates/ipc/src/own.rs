//! Room: which of a thread's own transactions a return speaks about, when there is more than one: a call that is
//! served while another is waited for sends in its turn.
//! Not here: the states of one transaction (`call`), reading and acting on returns (`runtime`).
//! Facts: contract TX-01, TX-06, TX-18, TX-19, WR-09.
//!
//! Every transaction is acknowledged once, in the order in which they were written. Mostly that is read before
//! anything else; but a thread may find a call between its reply and the reply's acknowledgement: where the far
//! end of a chain died, the thread before it may call again while the one after it is still served.

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

/// What a thread sent and has not heard the end of; the outermost first, which was written first.
#[derive(Debug, Default)]
pub(crate) struct OwnTransactions {
    /// Those that wait for their acknowledgement while something else is done, and what was found for them.
    unacknowledged: RefCell<Vec<(SentAt, Option<AfterSent>)>>,
    /// Calls whose answers are awaited, each within the one before.
    awaited: Cell<u32>,
    /// Answers that came while a nested call was being replied to, with the place of their call among the awaited.
    early: RefCell<Vec<(u32, Refusal)>>,
}

impl OwnTransactions {
    /// Notes that a transaction waits for its acknowledgement while something else is done, until the result is
    /// dropped.
    pub(crate) fn leave_unacknowledged(&self, sent: SentAt) -> Unacknowledged<'_> {
        self.unacknowledged.borrow_mut().push((sent, None));
        Unacknowledged(self)
    }

    /// Whether a return about an own transaction is for one that was left unacknowledged, which then has it.
    /// `written`: bytes of commands that the driver has taken.
    ///
    /// # Errors
    /// It is for one, but acknowledges nothing.
    #[inline]
    pub(crate) fn is_for_one_further_out(
        &self,
        word: ReturnWord,
        written: u64,
    ) -> Result<bool, ProtocolError> {
        let none = self.unacknowledged.borrow().is_empty();
        if none { Ok(false) } else { self.give_out(word, written) }
    }

    #[cold]
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

    /// Notes that the answer of a call is awaited, until the result is dropped.
    #[inline]
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

/// See [`OwnTransactions::leave_unacknowledged`].
pub(crate) struct Unacknowledged<'t>(&'t OwnTransactions);

impl Unacknowledged<'_> {
    /// What was found for it.
    pub(crate) fn found(self) -> Option<AfterSent> {
        self.0.unacknowledged.borrow_mut().last_mut().and_then(|(_, found)| found.take())
    }
}

impl Drop for Unacknowledged<'_> {
    fn drop(&mut self) {
        self.0.unacknowledged.borrow_mut().pop();
    }
}

/// See [`OwnTransactions::await_answer`].
pub(crate) struct Awaited<'t>(&'t OwnTransactions);

impl Awaited<'_> {
    /// The refusal that came early for this call.
    #[inline]
    pub(crate) fn early(&self) -> Option<Refusal> {
        let mut early = self.0.early.borrow_mut();
        let place = self.0.awaited.get();
        early.pop_if(|(of, _)| *of == place).map(|(_, by)| by)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        // What came for it and was not taken, as it was abandoned, is nobody else's.
        let _ = self.early();
        self.0.awaited.set(self.0.awaited.get() - 1);
    }
}
