//! Sends a transaction, a call or a reply, to the broker.
//! Not here: which of them go to the broker (`call`, `serve`), encoding the payload (`payload`), the broker's handling
//! (`broker::core`).
//! Facts: contract TX-12 to TX-18, OW-01; `binder_transaction`, Linux 7.2.

use std::io;
use std::os::fd::AsFd;

use abi::Payload;
use abi::layout::TransactionData;

use sys::errno::{EINTR, EMFILE, ENFILE, EPROTO, ETOOMANYREFS};

use super::active_thread::ActiveThread;
use super::core::thread::{Pending, failed};
use crate::payload::encode::{self, SlotPayload};
use crate::payload::gather::gather;
use crate::program::Caller;
use crate::rpc::protocol::{Lineage, Request, Transact, TransactKind};
use crate::trace_events::{BufferSizes, CodeAndFlags, Fate, Sent, TaskId, TraceWriter};

/// Errnos of a message with more descriptors than may be in flight.
const TOO_MANY_DESCRIPTORS: [i32; 3] = [EMFILE, ENFILE, ETOOMANYREFS];

/// A transaction that a thread sends, as given by its command.
pub(super) struct Sending<'t, 'p, 'c> {
    pub(super) thread: &'t mut ActiveThread<'p>,
    pub(super) data: &'c TransactionData,
    pub(super) buffers_size: Option<u64>,
    /// The part of the payload that the caller vouches for.
    pub(super) payload: &'c Payload<'c>,
    /// The commands behind this one.
    pub(super) behind: &'c [u8],
}

impl<'p: 'c, 'c> Sending<'_, 'p, 'c> {
    /// The payload for a call slot; `None` if none carries it.
    pub(super) fn encode(&self) -> Option<SlotPayload<'c>> {
        encode::encode(
            self.data,
            self.buffers_size,
            self.payload,
            self.thread.process.caller(self.thread.who),
        )
    }

    /// Sends a transaction to the broker. The outbox is locked until the broker's answer; `state` is only
    /// taken inside it (see `super`).
    pub(super) fn send(
        &mut self,
        pending: Pending,
        mut transact: Transact,
        answers: Option<(u32, CodeAndFlags)>,
    ) -> io::Result<()> {
        let process = self.thread.process;
        let Self { data, buffers_size, payload, .. } = *self;
        // Set only now: a reply's frame has already left the stack.
        self.thread.thread().pending = pending;
        let caller = process.caller(self.thread.who);
        let (_outbox, descriptors) = self.thread.unlocked(|process| {
            let outbox = process.outbox.lock();
            let descriptors = match transact.out_of_turn {
                true => Vec::new(),
                false => gather(&outbox, data, buffers_size, (*payload, caller), &mut transact),
            };
            (outbox, descriptors)
        });
        let is_faulty = transact.data_fault != 0 || transact.fault_errno != 0;
        if let Caller::There(program, thread) = caller
            && is_faulty
            && !program.waits(thread)
        {
            // The memory of a killed program is gone: what it was about to send was not sent (contract EXT-08).
            return Err(io::Error::from_raw_os_error(EINTR));
        }
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let preassigned = match process.traced() {
            Some(trace) => self.announce(trace, &transact, answers)?,
            None => None,
        };
        let answer = match self.thread.ask(pending, &Request::Transact { transact }, &borrowed) {
            // The socket accepts no more descriptors, or not these. Sent without them, the transaction fails
            // at the broker, so that a caller that waits for a reply gets an error.
            Err(error) if !borrowed.is_empty() && error.kind() != io::ErrorKind::ConnectionReset => {
                let errno = error.raw_os_error().unwrap_or(EMFILE);
                transact.data_fault = if TOO_MANY_DESCRIPTORS.contains(&errno) { EMFILE } else { errno };
                self.thread.ask(pending, &Request::Transact { transact }, &[])?
            }
            answer => answer?,
        };
        if answer.errno != 0 || answer.sender_stops {
            self.put_back_buffer();
        }
        if let (Some(trace), Some(buffer), true) = (process.traced(), preassigned, answer.sender_stops) {
            trace.buffer(Fate::Failed, buffer);
        }
        Ok(())
    }

    /// Asks the broker for the route of a transaction and traces that it is about to be sent, with its
    /// buffer, if it will have one.
    fn announce(
        &mut self,
        trace: &TraceWriter,
        transact: &Transact,
        answers: Option<(u32, CodeAndFlags)>,
    ) -> io::Result<Option<BufferSizes>> {
        let request = Request::PreassignRoute { transact: *transact };
        let answer = self.thread.ask(Pending::Preassigned, &request, &[])?;
        if answer.errno != 0 {
            return Ok(None);
        }
        let [number, node, to, extra] = answer.words;
        let number = number as u32;
        let to = TaskId { pid: to as u32, tid: (to >> 32) as u32 };
        let what = CodeAndFlags { flags: transact.flags, code: transact.code };
        let reply = !matches!(transact.kind, TransactKind::Call { .. });
        trace.transaction(&Sent { number, node: node as u32, to, reply, what });
        let buffer = BufferSizes { number, data: transact.data_size, offsets: transact.offsets_size, extra };
        if !answer.sender_stops {
            trace.buffer(Fate::Taken, buffer);
        }
        if let Some((number, what)) = answers.filter(|(number, _)| *number != 0) {
            trace.freed(number, self.thread.who.named(), what);
        }
        Ok((!answer.sender_stops).then_some(buffer))
    }

    /// The transaction of the command, except its payload.
    pub(super) fn blank(&self) -> Transact {
        Transact {
            kind: TransactKind::Call { handle: 0 },
            code: self.data.code,
            flags: self.data.flags,
            data_size: 0,
            offsets_size: 0,
            buffers_size: 0,
            gathered: 0,
            fault_object: u32::MAX,
            fault_errno: 0,
            data_fault: 0,
            frees: None,
            out_of_turn: false,
            sched: self.thread.who.scheduling(),
            lineage: Lineage::EMPTY,
        }
    }

    /// Refuses a reply that the thread's stack does not allow.
    pub(super) fn fail_locally(&mut self) {
        let thread = self.thread.thread();
        thread.extended_error = failed(EPROTO);
        thread.refuse(abi::codes::br::FAILED_REPLY);
    }
}
