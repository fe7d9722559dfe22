//! Room: how calls end: with a reply, or without one.
//! Not here: the bytes of a reply (`carry`), the end of a process (`close`).
//! Facts: contract TX-03, TX-10, TX-17, TX-18, OBJ-12, EXT-01.

use abi::codes::br;
use abi::layout::ExtendedError;

use super::Core;
use super::carry::Cargo;
use super::carry::Route;
use super::log::Kind;
use super::outside::Outside;
use super::refusal::{Refusal, no_error, reported};
use super::request::Verdict;
use super::transact::{Call, Sending};
use crate::embedded::protocol::{Answers, Item, Link, ProcId};

impl Core {
    /// A reply; what goes wrong with it is the caller's to hear (contract TX-17, TX-18).
    pub(super) fn reply(
        &mut self,
        sending: &mut Sending<'_>,
        caller: Option<Link>,
        answers: Answers,
        call_flags: u32,
        outside: &mut impl Outside,
    ) -> Verdict {
        self.note(sending, Kind::Reply, 0);
        let Some(caller) = caller.filter(|caller| self.procs.contains_key(&caller.proc)) else {
            self.log.fail(sending.id, Refusal::dead(0));
            return Verdict::replied(sending.id, true);
        };
        self.log_receiver(sending.id, caller.proc, Some(caller.thread), 0);
        let route = Route::of_reply(caller.proc, call_flags);
        match self.carry(sending.parcel(), &route, outside) {
            Ok(cargo) => {
                self.hand_reply(sending, caller, answers, &cargo, outside);
                Verdict::replied(sending.id, false)
            }
            Err(refusal) => {
                self.log.fail(sending.id, refusal);
                let error = refusal.error(sending.id);
                self.refuse(caller, answers, refusal.outcome, error, outside);
                Verdict::replied(sending.id, true)
            }
        }
    }

    fn hand_reply(
        &mut self,
        sending: &Sending<'_>,
        caller: Link,
        answers: Answers,
        cargo: &Cargo,
        outside: &mut impl Outside,
    ) {
        let transact = sending.transact;
        let item = Item::Reply {
            thread: caller.thread,
            answers,
            code: transact.code,
            flags: transact.flags,
            euid: self.identity(sending.from.proc).1,
            buffer: cargo.offset,
            data_size: transact.data_size,
            offsets_size: transact.offsets_size,
            extra_size: cargo.extra_size,
            number: sending.id,
            fds: cargo.fds,
        };
        outside.item(caller.proc, item);
    }

    /// Tells a caller that there will be no reply.
    pub(super) fn refuse(
        &mut self,
        caller: Link,
        answers: Answers,
        outcome: u32,
        error: ExtendedError,
        outside: &mut impl Outside,
    ) {
        outside.item(caller.proc, Item::Refused { thread: caller.thread, answers, outcome, error });
    }

    /// A call is over, however it ended; it, if it was still going.
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

    /// The serving thread is gone: its caller is dead-replied (contract TX-10, EXT-01).
    pub(super) fn abandon(&mut self, proc: ProcId, transaction: u32, outside: &mut impl Outside) {
        if self.calls.get(&transaction).is_some_and(|call| call.to == proc) {
            self.fail_call(transaction, br::DEAD_REPLY, no_error(0), outside);
        }
    }

    /// A delivery could not be given to its thread: its buffer goes, its caller fails (contract
    /// OBJ-12).
    pub(super) fn undeliverable(
        &mut self,
        proc: ProcId,
        transaction: u32,
        errno: i32,
        outside: &mut impl Outside,
    ) {
        if self.calls.get(&transaction).is_some_and(|call| call.to == proc) {
            let error = Refusal::failed(reported(errno)).error(transaction);
            self.fail_call(transaction, br::FAILED_REPLY, error, outside);
        }
        if let Some(&(owner, offset)) = self.buffer_of.get(&transaction)
            && owner == proc
        {
            self.free_buffer(proc, offset, outside);
        }
    }

    /// Ends a call without a reply.
    pub(super) fn fail_call(
        &mut self,
        transaction: u32,
        outcome: u32,
        error: ExtendedError,
        outside: &mut impl Outside,
    ) {
        if let Some(caller) = self.end_call(transaction).and_then(|call| call.from) {
            self.refuse(caller, Answers::Transaction(transaction), outcome, error, outside);
        }
    }
}
