//! A process with its connection: exchanges with the driver, calls, replies, acting on returns.
//! Not here: when pool threads start and stop (`looper`), one thread's queues (`runtime::thread`).
//! Facts: contract WR-01..WR-15, TX-01..TX-18, REF-09, REF-11.

pub(crate) mod looper;
#[cfg(test)]
pub(crate) mod tests;

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use abi::codes::{br, tf};
use abi::{CommandWord, DecodeError, Delivery, Handle, Payload, Return, ReturnWord, TransactionFlags};
use driver::{Connection, Exchange};

use crate::call::{Accepted, AfterAccepted, AfterSent, Sent, concerns_call};
use crate::error::{Refusal, TransactError};
use crate::outstanding::SentAt;
use crate::runtime::node::Node;
use crate::runtime::received::Received;
use crate::runtime::serve::Transaction;
use crate::runtime::thread::ThreadState;
use crate::runtime::{Outcome, Runtime, Shared};
use crate::status_code::StatusCode;
use looper::Pool;

/// The end of a transaction: an outcome, or a refusal by the driver.
enum Answer<'t> {
    Given(Outcome<'t>),
    Refused(Refusal),
}

/// A process with its connection.
pub(crate) struct ProcessInner<C> {
    pub(crate) connection: C,
    pub(crate) shared: Shared,
    pub(crate) pool: Arc<Pool>,
    pub(crate) me: Weak<Self>,
}

/// Whether an exchange reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Until the driver has something to say.
    Wait,
    /// Not at all.
    No,
}

impl<C: Connection> ProcessInner<C> {
    /// One `BINDER_WRITE_READ`: everything queued is written, then returns are read. Call with
    /// [`Read::Wait`] only when every earlier return is handled. `payload`: of a transaction that is
    /// queued, if the caller has it at hand.
    pub(crate) fn exchange(
        &self,
        thread: &ThreadState,
        read: Read,
        payload: Payload<'_>,
    ) -> Result<(), TransactError> {
        let mut out = thread.out.borrow_mut();
        let mut input = thread.input.borrow_mut();
        let input = &mut *input;
        let room: &mut [u8] = if read == Read::Wait { &mut input.bytes } else { &mut [] };
        let mut exchange = Exchange::new(out.as_bytes(), room).with_payload(payload);
        let result = self.connection.write_read_uninterrupted(&mut exchange);
        let (mut taken, filled) = (exchange.write_consumed, exchange.read_consumed);
        if read == Read::Wait {
            (input.at, input.len) = (0, filled);
        }
        if result.is_err()
            && let Some((word, _)) = out.as_bytes()[taken..].split_first_chunk::<4>()
        {
            // The driver refuses this very command (WR-11); keeping it would refuse all that follow.
            taken += 4 + CommandWord(u32::from_ne_bytes(*word)).payload_len();
        }
        let taken = taken.min(out.as_bytes().len());
        out.consume(taken);
        thread.written.set(thread.written.get() + taken as u64);
        if out.is_empty() {
            thread.all_written(&self.shared.kept);
        }
        result.map_err(|source| TransactError::Os { call: "BINDER_WRITE_READ", source })
    }

    /// The next return, left where it is.
    fn next_return(&self, thread: &ThreadState, payload: Payload<'_>) -> Result<ReturnWord, TransactError> {
        loop {
            match thread.peek()? {
                None => self.exchange(thread, Read::Wait, payload)?,
                Some(word) => return Ok(word),
            }
        }
    }

    /// Follows a written transaction to its acknowledgement; everything else that comes meanwhile, nested calls
    /// included, is done. Returns that come before the driver took its command are left over from an
    /// abandoned one.
    fn acknowledgement(
        &self,
        thread: &Rc<ThreadState>,
        sent: SentAt,
        payload: Payload<'_>,
    ) -> Result<AfterSent, TransactError> {
        loop {
            let before = thread.written.get();
            let word = match self.next_return(thread, payload) {
                // An earlier command was refused, and dropped (WR-11); this one is still to come.
                Err(TransactError::Os { .. }) if (before + 1..sent.end).contains(&thread.written.get()) => {
                    continue;
                }
                result => result?,
            };
            if !concerns_call(word) {
                let unacknowledged = thread.outstanding.leave_unacknowledged(sent);
                self.execute(thread, word)?;
                if let Some(after) = unacknowledged.found() {
                    return Ok(after);
                }
            } else if thread.outstanding.is_for_an_outer_one(word, thread.written.get())? {
                thread.take_word();
            } else if thread.written.get() >= sent.end {
                let after = Sent.on(word)?;
                thread.take_word();
                return Ok(after);
            } else {
                self.execute(thread, word)?;
            }
        }
    }

    /// Follows an acknowledged call to its answer.
    fn answer_of(&self, thread: &Rc<ThreadState>, call: Accepted) -> Result<Answer<'_>, TransactError> {
        let awaits = thread.outstanding.await_answer();
        let word = loop {
            // Only what was executed below can have brought it.
            if let Some(by) = awaits.early() {
                return Ok(Answer::Refused(by));
            }
            match thread.peek()? {
                None => self.exchange(thread, Read::Wait, Payload::default())?,
                Some(word) if concerns_call(word) => break word,
                Some(word) => self.execute(thread, word)?,
            }
        };
        match call.on(word)? {
            AfterAccepted::Refused(by) => {
                thread.take_word();
                Ok(Answer::Refused(by))
            }
            AfterAccepted::Replied => {
                let delivery = thread.take_delivery(word)?;
                let received = Received::adopt(self, thread.clone(), &delivery)?;
                Ok(Answer::Given(Outcome::Replied { flags: delivery.flags, received }))
            }
        }
    }

    /// Follows a written transaction to its end.
    fn outcome(
        &self,
        thread: &Rc<ThreadState>,
        end: u64,
        oneway: bool,
        payload: Payload<'_>,
    ) -> Result<Answer<'_>, TransactError> {
        match self.acknowledgement(thread, SentAt { end, reply: false }, payload)? {
            AfterSent::Refused(by) => Ok(Answer::Refused(by)),
            AfterSent::Accepted(_, taken) if oneway => Ok(Answer::Given(Outcome::Taken(taken))),
            AfterSent::Accepted(accepted, _) => self.answer_of(thread, accepted),
        }
    }

    /// The reason that the driver keeps for this thread's failed transaction, where it keeps one.
    fn explain(&self, by: Refusal) -> Refusal {
        if by != Refusal::Failed(None) {
            return by;
        }
        let errno = self.connection.extended_error().map_or(0, |error| error.param.saturating_neg());
        Refusal::Failed((errno > 0).then_some(errno))
    }

    /// Takes a return that is not the outcome of this thread's own transaction, and acts on it.
    pub(crate) fn execute(&self, thread: &Rc<ThreadState>, word: ReturnWord) -> Result<(), DecodeError> {
        if matches!(word.0, br::TRANSACTION | br::TRANSACTION_SEC_CTX) {
            let delivery = thread.take_delivery(word)?;
            self.serve(thread, &delivery);
        } else {
            self.execute_rare(thread, thread.take()?);
        }
        Ok(())
    }

    fn execute_rare(&self, thread: &Rc<ThreadState>, got: Return) {
        let Shared { nodes, deaths, .. } = &self.shared;
        match got {
            Return::SpawnLooper => self.spawn_looper(),
            Return::Increfs(ptr, cookie) => {
                nodes.increfs(ptr, cookie);
                thread.queue(|out| out.increfs_done(ptr, cookie));
            }
            Return::Acquire(ptr, cookie) => {
                drop_later(thread, nodes.acquire(ptr, cookie));
                thread.queue(|out| out.acquire_done(ptr, cookie));
            }
            Return::Release(ptr, cookie) => drop_later(thread, nodes.release(ptr, cookie)),
            Return::Decrefs(ptr, cookie) => nodes.decrefs(ptr, cookie),
            Return::DeadBinder(cookie) => deaths.notify(thread, cookie),
            Return::FrozenBinder(cookie, _) => thread.queue(|out| out.freeze_done(cookie)),
            // The answer to a call that was abandoned: only its buffer matters.
            Return::Reply(delivery) => drop(Received::adopt(self, thread.clone(), &delivery)),
            // Left over from an abandoned call, an acknowledgement that nobody waits for, or a word
            // of a driver newer than this code.
            _ => {}
        }
    }

    /// Serves one delivered transaction.
    fn serve(&self, thread: &Rc<ThreadState>, delivery: &Delivery) {
        let _deeper = thread.deeper();
        let Ok(received) = Received::adopt(self, thread.clone(), delivery) else {
            return self.answer_unreadable(thread, delivery);
        };
        let _away = self.shared.background.serve();
        match self.shared.nodes.find(delivery.node, delivery.cookie) {
            // A panicking object has not answered: dropping the call on the way out does. The panic
            // has been reported; the pool needs its thread.
            // This may be the last hold on the object, whose end is its own code, too.
            Some(node) => drop(catch_unwind(AssertUnwindSafe(move || {
                node.object().serve(Transaction::new(self, received, delivery));
                drop(node);
            }))),
            // Here and below the driver tells the caller of errors.
            None => drop(Transaction::new(self, received, delivery).reply_status(StatusCode::DEAD_OBJECT)),
        }
    }

    /// Answers a call whose buffer cannot be read, so that the caller does not wait for ever.
    fn answer_unreadable(&self, thread: &Rc<ThreadState>, delivery: &Delivery) {
        let data = StatusCode::FAILED_TRANSACTION.0.to_ne_bytes();
        let payload = Payload { data: &data, ..Payload::default() };
        if !delivery.flags.is_oneway() {
            let _ = self.answer(thread, None, TransactionFlags(tf::STATUS_CODE), payload);
        }
    }

    /// Writes a reply and waits for its acknowledgement: then the payload may be dropped, and the receiver holds
    /// references to the nodes in it (contract REF-09).
    fn answer(
        &self,
        thread: &Rc<ThreadState>,
        answered: Option<Received<'_>>,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<(), TransactError> {
        let _deeper = thread.deeper();
        let range = thread.queue_payload(|out| out.reply(flags, payload));
        // Queues its BC_FREE_BUFFER behind the reply.
        drop(answered);
        let taken = loop {
            match self.acknowledgement(thread, SentAt { end: range.end, reply: true }, payload) {
                // No replier is told so (TX-18): the call that this thread itself waits for has come to its end with the
                // chain that died (TX-19). The Rust driver says that first, and then acknowledges the reply.
                Ok(AfterSent::Refused(Refusal::Dead)) if thread.outstanding.keep_early(Refusal::Dead) => {}
                taken => break taken,
            }
        };
        match taken {
            Ok(AfterSent::Accepted(..)) => Ok(()),
            Ok(AfterSent::Refused(by)) => {
                Err(TransactError::Refused { target: Handle(0), code: 0, by: self.explain(by) })
            }
            Err(error) => {
                thread.take_back(&range);
                Err(error)
            }
        }
    }
}

impl<C: Connection> Runtime for ProcessInner<C> {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn hold(&self) -> Arc<dyn Runtime> {
        self.me.upgrade().expect("whoever calls a process holds it")
    }

    fn thread(&self) -> Rc<ThreadState> {
        ThreadState::current(self.shared.id, || self.me.clone())
    }

    fn call(
        &self,
        target: Handle,
        code: u32,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<Outcome<'_>, TransactError> {
        let thread = self.thread();
        let range = thread.queue_payload(|out| out.transaction(target, code, flags, payload));
        let answer = {
            let _deeper = thread.deeper();
            self.outcome(&thread, range.end, flags.is_oneway(), payload)
        };
        if answer.is_err() {
            thread.take_back(&range);
        }
        self.settle(&thread);
        if thread.is_idle() {
            thread.drop_released();
        }
        match answer? {
            Answer::Given(outcome) => Ok(outcome),
            Answer::Refused(by) => Err(TransactError::Refused { target, code, by: self.explain(by) }),
        }
    }

    fn reply(
        &self,
        answered: Received<'_>,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<(), TransactError> {
        let thread = answered.thread.clone();
        self.answer(&thread, Some(answered), flags, payload)
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.connection.lent(address, len)
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.connection.take_fd(address)
    }

    fn settle(&self, thread: &ThreadState) {
        if thread.must_flush(self.connection.map_size(), &self.shared.kept) {
            self.flush(thread);
        }
    }

    fn flush(&self, thread: &ThreadState) {
        // Commands not taken now stay queued (WR-13); refused ones are dropped.
        while !thread.out.borrow().is_empty() {
            let before = thread.written.get();
            let result = self.exchange(thread, Read::No, Payload::default());
            if result.is_ok() && thread.written.get() == before {
                break;
            }
        }
    }

    fn leave(&self, thread: &ThreadState) {
        if thread.looper.get() {
            thread.queue(abi::Commands::exit_looper);
        }
        self.flush(thread);
        // Cannot fail in normal work (contract IOC-09), and a thread that ends has no way to react.
        let _ = self.connection.thread_exit();
    }
}

impl<C> Drop for ProcessInner<C> {
    fn drop(&mut self) {
        self.shared.nodes.clear();
    }
}

/// Drops a node when every return of this read is handled.
fn drop_later(thread: &ThreadState, node: Option<Node>) {
    if let Some(node) = node {
        thread.drop_later(node.into_any());
    }
}
