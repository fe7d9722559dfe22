//! Sends a call or a reply, through a call slot or to the broker.
//! Not here: encoding the payload (`payload`), the broker's handling (`broker::core`).
//! Facts: contract TX-01, TX-12 to TX-18, OW-01; `binder_transaction`, Linux 7.2.

use std::io;
use std::os::fd::AsFd;

use abi::codes::tf;
use abi::layout::TransactionData;
use abi::{BufferAddress, Payload, stream};

use sys::errno::{EINTR, EMFILE, ENFILE, EPROTO, ETOOMANYREFS};

use super::active_thread::ActiveThread;
use super::core::slot_call::BoxedCall;
use super::core::thread::{Pending, Served, failed};
use super::delivered::GivenBack;
use super::identity::Identity;
use super::inherit;
use crate::payload::encode::encode;
use crate::payload::gather::gather;
use crate::priority::Restore;
use crate::program::Caller;
use crate::rpc::protocol::{Lineage, Request, Transact, TransactKind};
use crate::settings::Inherit;
use crate::shm::call_slot::Source as _;
use crate::trace_events::{CodeAndFlags, Fate};

/// Errnos of a message with more descriptors than may be in flight.
const TOO_MANY_DESCRIPTORS: [i32; 3] = [EMFILE, ENFILE, ETOOMANYREFS];

/// A transaction as given by its command.
#[derive(Clone, Copy)]
struct Sending<'c> {
    data: &'c TransactionData,
    buffers_size: Option<u64>,
    payload: &'c Payload<'c>,
}

impl ActiveThread<'_> {
    /// Executes `BC_TRANSACTION(_SG)`.
    pub(super) fn send_call(
        &mut self,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
    ) -> io::Result<()> {
        let (process, slot) = (self.process, self.slot);
        if let Some(trace) = process.traced() {
            process.request_trace_numbers(trace);
        }
        let oneway = data.flags & tf::ONE_WAY != 0;
        if !oneway {
            if !self.thread().may_call() {
                self.fail_locally();
                return Ok(());
            }
            let handle = self.state.core.channels.handle(data.target as u32);
            // The layout is only needed for a call slot.
            let has_slot = handle.is_some_and(|bound| bound.channel.is_open());
            if has_slot
                && let Some(encoded) = encode(data, buffers_size, payload, process.caller(self.who))
                && self.call_in_slot(data, &encoded)
            {
                self.state.core.release_early(slot);
                return Ok(());
            }
        }
        let transact = Transact {
            kind: TransactKind::Call { handle: data.target as u32 },
            lineage: self.thread().lineage().map_or(Lineage::EMPTY, |lineage| *lineage),
            behind_call: oneway && self.thread().awaited_slot().is_some(),
            sched: inherit::sending(self.who, self.own().before),
            ..blank(self.who, data)
        };
        let pending = if oneway { Pending::Oneway } else { Pending::Call };
        self.send_to_broker(pending, transact, None, Sending { data, buffers_size, payload })
    }

    /// Executes `BC_REPLY(_SG)`. `behind`: the commands after it.
    pub(super) fn send_reply(
        &mut self,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
        behind: &[u8],
    ) -> io::Result<()> {
        let (process, slot) = (self.process, self.slot);
        let Some(served) = self.thread().begin_reply() else {
            self.fail_locally();
            return Ok(());
        };
        self.show_depth();
        let restore = served.restore();
        // Android's kernels keep the caller's priority until the caller is woken: otherwise a thread of
        // medium priority could run between reply and caller. Mainline restores before the caller can run
        // again (contract SCH-03).
        let restores_late = process.settings.inherit == Inherit::Rt;
        if !restores_late {
            inherit::restore(self.who, restore, process.trace.as_ref());
        }
        let sending = Sending { data, buffers_size, payload };
        let sent = match served {
            Served::CallSlot(call) => match encode(data, buffers_size, payload, process.caller(self.who))
                .filter(|encoded| encoded.shape().is_ok_and(|shape| call.channel.has_room(shape.len())))
            {
                Some(encoded) => {
                    self.reply_in_slot(call, data, &encoded);
                    self.state.core.release_early(slot);
                    Ok(())
                }
                None => self.reply_to_slot_through_broker(call, sending, behind),
            },
            Served::Broker(call) => {
                process.show_serving(slot, self.state.core.thread(slot));
                let kind = TransactKind::Reply { transaction: call.transaction };
                self.reply_through_broker(kind, (call.transaction, call.what), sending, behind)
            }
        };
        if restores_late {
            self.restore_late(restore);
        }
        sent
    }

    /// Sends a reply through the broker that its call slot cannot take.
    fn reply_to_slot_through_broker(
        &mut self,
        call: BoxedCall,
        sending: Sending<'_>,
        behind: &[u8],
    ) -> io::Result<()> {
        call.channel.leave_to_broker(&call.request);
        let (kind, header) = (call.reply_through_broker(), &call.request.header);
        let answers = (header.mark, CodeAndFlags { flags: header.flags, code: header.code });
        self.state.core.channels.keep_call(call);
        self.reply_through_broker(kind, answers, sending, behind)
    }

    /// Sends a reply through the broker. `answers`: the call's number and header, for traces.
    fn reply_through_broker(
        &mut self,
        kind: TransactKind,
        answers: (u32, CodeAndFlags),
        sending: Sending<'_>,
        behind: &[u8],
    ) -> io::Result<()> {
        self.given_back = self.take_buffer_behind(behind);
        let frees = self.given_back.as_ref().map(|given_back| given_back.buffer.offset);
        let transact = Transact { kind, frees, ..blank(self.who, sending.data) };
        let sent = self.send_to_broker(Pending::Reply, transact, Some(answers), sending);
        if sent.is_err() {
            self.put_back_buffer();
        }
        sent
    }

    /// Takes out of the map the buffer that the command after a reply gives back, if the broker filled it.
    fn take_buffer_behind(&mut self, behind: &[u8]) -> Option<Box<GivenBack>> {
        let BufferAddress(address) = stream::free_buffer(behind)?;
        let buffer = self.state.buffers.remove(address)?;
        let traced = self.process.traced().and_then(|trace| trace.forget(address));
        Some(Box::new(GivenBack { address, buffer, traced }))
    }

    /// Puts that buffer back after a failed reply: the broker did not take it, and its command is still to
    /// come.
    fn put_back_buffer(&mut self) {
        let Some(given_back) = self.given_back.take() else { return };
        let GivenBack { address, buffer, traced } = *given_back;
        self.state.buffers.insert(address, buffer);
        if let (Some(trace), Some(traced)) = (self.process.traced(), traced) {
            trace.keep(address, traced);
        }
    }

    /// Wakes the caller, then restores the thread's priority.
    fn restore_late(&mut self, restore: Restore) {
        if restore.is_some() {
            let who = self.who;
            self.own().before =
                self.unlocked(|process| inherit::restore(who, restore, process.trace.as_ref()));
        }
    }

    /// Sends a transaction to the broker. The outbox is locked until the broker's answer; `state` is only
    /// taken inside it (see `super`).
    fn send_to_broker(
        &mut self,
        pending: Pending,
        mut transact: Transact,
        answers: Option<(u32, CodeAndFlags)>,
        Sending { data, buffers_size, payload }: Sending<'_>,
    ) -> io::Result<()> {
        let process = self.process;
        // Set only now: a reply's frame has already left the stack.
        self.thread().pending = pending;
        let caller = process.caller(self.who);
        let (_outbox, descriptors) = self.unlocked(|process| {
            let outbox = process.outbox.lock();
            let descriptors = gather(&outbox, data, buffers_size, (*payload, caller), &mut transact);
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
            Some(trace) => self.trace_sending(trace, &transact, answers)?,
            None => None,
        };
        let answer = match self.ask(pending, &Request::Transact { transact }, &borrowed) {
            // The socket accepts no more descriptors, or not these. Sent without them, the transaction fails
            // at the broker, so that a caller that waits for a reply gets an error.
            Err(error) if !borrowed.is_empty() && error.kind() != io::ErrorKind::ConnectionReset => {
                let errno = error.raw_os_error().unwrap_or(EMFILE);
                transact.data_fault = if TOO_MANY_DESCRIPTORS.contains(&errno) { EMFILE } else { errno };
                self.ask(pending, &Request::Transact { transact }, &[])?
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

    /// Refuses a command that the thread's stack does not allow.
    fn fail_locally(&mut self) {
        let thread = self.thread();
        thread.extended_error = failed(EPROTO);
        thread.refuse(abi::codes::br::FAILED_REPLY);
    }
}

/// Fills a transaction from its command, except the payload.
fn blank(sender: Identity, data: &TransactionData) -> Transact {
    Transact {
        kind: TransactKind::Call { handle: 0 },
        code: data.code,
        flags: data.flags,
        data_size: 0,
        offsets_size: 0,
        buffers_size: 0,
        gathered: 0,
        fault_object: u32::MAX,
        fault_errno: 0,
        data_fault: 0,
        frees: None,
        behind_call: false,
        sched: sender.scheduling(),
        lineage: Lineage::EMPTY,
    }
}
