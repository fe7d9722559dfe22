//! Ends of calls: with a reply, or without one.
//! Not here: the payload of a reply (`payload_copy`), the end of a process (`close`).
//! Facts: contract TX-03, TX-10, TX-17, TX-18, OBJ-12, EXT-01.

use abi::codes::br;
use abi::layout::ExtendedError;

use super::Core;
use super::host::Host;
use super::payload_copy::{PayloadCopy, Route, Sending};
use super::refusal::{Refusal, no_error, reported};
use super::request::Verdict;
use super::transact::Call;
use super::transaction_log::Kind;
use crate::rpc::protocol::{Answers, Item, Link, ProcId};

impl Core {
    /// Sends a reply. If it fails, the caller is notified, not the replier (contract TX-17, TX-18).
    pub(super) fn reply(
        &mut self,
        sending: &mut Sending<'_>,
        caller: Option<Link>,
        answers: Answers,
        call_flags: u32,
        host: &mut impl Host,
    ) -> Verdict {
        self.note(sending, Kind::Reply, 0);
        let is_there = |caller: &Link| self.procs.contains_key(&caller.proc) && host.has_thread(*caller);
        let Some(caller) = caller.filter(is_there) else {
            self.transaction_log.fail(sending.id, Refusal::dead(0));
            return Verdict::replied(sending.id, true);
        };
        self.log_receiver(sending.id, caller.proc, Some(caller.thread), 0);
        let route = Route::of_reply(caller.proc, call_flags);
        match self.copy_payload(sending, &route, host) {
            Ok(copy) => {
                self.hand_reply(sending, caller, answers, &copy, host);
                Verdict::replied(sending.id, false)
            }
            Err(refusal) => {
                self.transaction_log.fail(sending.id, refusal);
                let error = refusal.error(sending.id);
                self.refuse(caller, answers, refusal.outcome, error, host);
                Verdict::replied(sending.id, true)
            }
        }
    }

    fn hand_reply(
        &mut self,
        sending: &Sending<'_>,
        caller: Link,
        answers: Answers,
        copy: &PayloadCopy,
        host: &mut impl Host,
    ) {
        let transact = sending.transact;
        let item = Item::Reply {
            thread: caller.thread,
            answers,
            code: transact.code,
            flags: transact.flags,
            euid: self.identity(sending.from.proc).1,
            buffer: copy.offset,
            data_size: transact.data_size,
            offsets_size: transact.offsets_size,
            extra_size: copy.extra_size,
            number: sending.id,
            fds: copy.fds,
        };
        host.item(caller.proc, item);
    }

    /// Notifies a caller that it gets no reply.
    pub(super) fn refuse(
        &mut self,
        caller: Link,
        answers: Answers,
        outcome: u32,
        error: ExtendedError,
        host: &mut impl Host,
    ) {
        host.item(caller.proc, Item::Refused { thread: caller.thread, answers, outcome, error });
    }

    /// Removes a call; returns it if it was still open.
    pub(super) fn end_call(&mut self, transaction: u32) -> Option<Call> {
        let call = self.calls.remove(&transaction)?;
        if let Some(receiver) = self.procs.get_mut(&call.to) {
            receiver.incoming.remove(&transaction);
        }
        if let Some(sender) = call.from.and_then(|from| self.procs.get_mut(&from.proc)) {
            sender.outgoing.remove(&transaction);
        }
        Some(call)
    }

    /// Ends a call whose serving thread exited with a dead reply (contract TX-10, EXT-01).
    pub(super) fn abandon(&mut self, proc: ProcId, transaction: u32, host: &mut impl Host) {
        if self.calls.get(&transaction).is_some_and(|call| call.to == proc) {
            self.fail_call(transaction, br::DEAD_REPLY, no_error(0), host);
        }
    }

    /// Ends a call whose delivery failed at its thread: frees the buffer, fails the caller (contract OBJ-12).
    pub(super) fn undeliverable(&mut self, proc: ProcId, transaction: u32, errno: i32, host: &mut impl Host) {
        if self.calls.get(&transaction).is_some_and(|call| call.to == proc) {
            let error = Refusal::failed(reported(errno)).error(transaction);
            self.fail_call(transaction, br::FAILED_REPLY, error, host);
        }
        if let Some(&(owner, offset)) = self.buffer_of.get(&transaction)
            && owner == proc
        {
            self.free_buffer(proc, offset, host);
        }
    }

    /// Ends a call without a reply.
    pub(super) fn fail_call(
        &mut self,
        transaction: u32,
        outcome: u32,
        error: ExtendedError,
        host: &mut impl Host,
    ) {
        if let Some(caller) = self.end_call(transaction).and_then(|call| call.from) {
            self.refuse(caller, Answers::Transaction { number: transaction }, outcome, error, host);
        }
    }
}
