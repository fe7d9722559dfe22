//! Room: a call or a reply on its way out, as one list of steps.
//! Not here: its bytes (`gather`), what the broker makes of it (`broker::core`), lanes (`channels`).
//! Facts: contract TX-01, TX-12 to TX-18, OW-01; `binder_transaction`, Linux 7.2.

use std::io;
use std::os::fd::AsFd;

use abi::codes::{bc, br, tf};
use abi::layout::{ExtendedError, TransactionData};
use abi::{BufferAddress, CommandWord, Payload, stream};

use super::gather::gather;
use super::outgoing::{outgoing, plain};
use super::sched::Saved;
use super::state::{Frame, GivenBack, Pending, Source};
use super::{Guard, Process, sched};
use crate::connection::Exchange;
use crate::embedded::marks::{Fate, What};
use crate::embedded::protocol::{Lineage, Request, Transact, TransactKind};
use crate::embedded::settings::Inherit;

const EPROTO: i32 = 71;
const EMFILE: i32 = 24;
/// Errnos of a message that carries more descriptors than may be on their way: `EMFILE`, `ENFILE`,
/// `ETOOMANYREFS`.
const SHORT: [i32; 3] = [EMFILE, 23, 109];

impl Process {
    /// `BC_TRANSACTION(_SG)`.
    pub(super) fn call<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
    ) -> io::Result<Guard<'p>> {
        if let Some(marks) = self.traced() {
            self.stock_up(marks);
        }
        let oneway = data.flags & tf::ONE_WAY != 0;
        if !oneway && !may_call(&mut st, slot) {
            self.fail_locally(&mut st, slot);
            return Ok(st);
        }
        if !oneway {
            match self.call_in_lane(st, slot, data, buffers_size, payload) {
                Ok(mut st) => {
                    self.release_early(&mut st, slot, slot);
                    return Ok(st);
                }
                Err(guard) => st = guard,
            }
        }
        self.call_through_broker(st, slot, data, buffers_size, payload)
    }

    #[inline(never)]
    fn call_through_broker<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        buffers_size: Option<u64>,
        payload: &Payload<'_>,
    ) -> io::Result<Guard<'p>> {
        let transact = Transact {
            kind: TransactKind::Call { handle: data.target as u32 },
            lineage: st.thread(slot).lineage().map_or(Lineage::EMPTY, |lineage| *lineage),
            sched: sched::sending(st.thread(slot).before),
            ..blank(data)
        };
        let pending = if data.flags & tf::ONE_WAY != 0 { Pending::Oneway } else { Pending::Call };
        self.through_broker(st, slot, pending, (transact, None), (data, buffers_size, payload))
    }

    /// `BC_REPLY(_SG)`, with which the rest of the stream begins.
    #[inline(never)] // so that it is dense, and not in between what a caller does
    pub(super) fn reply<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        data: &TransactionData,
        buffers_size: Option<u64>,
        exchange: &Exchange<'_>,
    ) -> io::Result<Guard<'p>> {
        let payload = &exchange.payload;
        let thread = st.thread(slot);
        let serves = |frame: &mut Frame| matches!(frame, Frame::Serving(_));
        let Some(Frame::Serving(source)) = thread.stack.pop_if(serves) else {
            self.fail_locally(&mut st, slot);
            return Ok(st);
        };
        self.show_depth(thread);
        let saved = source.saved();
        let late = saved.is_some() && self.restores_late();
        if saved.is_some() && !late {
            // Before the caller can run again (contract SCH-03).
            sched::restore(saved, self.marks.as_ref());
        }
        let Source::Lane(call) = source else {
            return self.reply_through_broker(st, slot, source, (data, buffers_size, exchange));
        };
        // As of calls: most often it is nothing else.
        st = match plain(data, buffers_size, payload) {
            Some(bytes) => self.reply_in_lane(st, slot, call, data, bytes),
            None => match &outgoing(data, buffers_size, payload) {
                Some(outgoing) => self.reply_with_parts(st, slot, call, data, outgoing),
                None => {
                    let source = Source::Lane(call);
                    return self.reply_through_broker(st, slot, source, (data, buffers_size, exchange));
                }
            },
        };
        self.release_early(&mut st, slot, slot);
        match late {
            true => Ok(self.restore_late(st, slot, saved)),
            false => Ok(st),
        }
    }

    /// A reply to a call that came through the broker, or that no lane takes.
    #[inline(never)]
    fn reply_through_broker<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        source: Source,
        (data, buffers_size, exchange): (&TransactionData, Option<u64>, &Exchange<'_>),
    ) -> io::Result<Guard<'p>> {
        let saved = source.saved();
        let (kind, answers) = match source {
            Source::Broker(call) => {
                self.show_serving(st.thread(slot));
                (TransactKind::Reply { transaction: call.transaction }, (call.transaction, call.what))
            }
            Source::Lane(call) => {
                call.leave_to_broker();
                let header = &call.request.header;
                let what = What { flags: header.flags, code: header.code };
                let way = (call.reply_through_broker(), (header.mark, what));
                st.channels.keep_box(call);
                way
            }
        };
        let given_back = self.take_buffer_behind(&mut st, exchange, buffers_size.is_some());
        let frees = given_back.as_ref().map(|given_back| given_back.buffer.offset);
        st.thread(slot).given_back = given_back;
        let transact = (Transact { kind, frees, ..blank(data) }, Some(answers));
        match self.through_broker(st, slot, Pending::Reply, transact, (data, buffers_size, &exchange.payload))
        {
            Ok(st) if self.restores_late() => Ok(self.restore_late(st, slot, saved)),
            Ok(st) => Ok(st),
            Err(error) => {
                self.keep_buffer_behind(&mut self.lock(), slot);
                if self.restores_late() {
                    sched::restore(saved, self.marks.as_ref());
                }
                Err(error)
            }
        }
    }

    /// Takes the buffer out of the books that the command behind a reply gives back, if the broker filled it.
    fn take_buffer_behind(
        &self,
        st: &mut Guard<'_>,
        exchange: &Exchange<'_>,
        scattered: bool,
    ) -> Option<GivenBack> {
        let word = CommandWord(if scattered { bc::REPLY_SG } else { bc::REPLY });
        let len = size_of::<CommandWord>() + word.payload_len();
        let behind = exchange.write.get(exchange.write_consumed.checked_add(len)?..)?;
        let BufferAddress(address) = stream::free_buffer(behind)?;
        let buffer = st.buffers.remove(&address)?;
        let mark = self.traced().and_then(|marks| marks.forget(address));
        Some(GivenBack { address, buffer, mark })
    }

    /// A reply failed, so that the broker took nothing back, and the command behind it is still to come.
    #[cold]
    fn keep_buffer_behind(&self, st: &mut Guard<'_>, slot: u32) {
        let Some(GivenBack { address, buffer, mark }) = st.thread(slot).given_back.take() else { return };
        st.buffers.insert(address, buffer);
        if let (Some(marks), Some(mark)) = (self.traced(), mark) {
            marks.keep(address, mark);
        }
    }

    /// Whether a thread that has replied keeps its caller's priority until that was woken, as on Android's
    /// kernels: without it whoever is between the two in urgency would come between reply and caller.
    fn restores_late(&self) -> bool {
        self.settings.inherit == Inherit::Rt
    }

    /// Wakes the caller that was replied to, and then undoes what serving it changed, if that was left.
    #[cold]
    fn restore_late<'p>(&'p self, st: Guard<'p>, slot: u32, saved: Saved) -> Guard<'p> {
        if !saved.is_some() {
            return st;
        }
        let wake = self.unlock(st, slot);
        let before = sched::restore(saved, self.marks.as_ref());
        let mut st = self.lock();
        st.thread(slot).before = before;
        if let Some(wake) = wake {
            st.thread(slot).spares.keep(wake.channel);
        }
        st
    }

    #[inline(never)]
    fn through_broker<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        pending: Pending,
        (mut transact, answers): (Transact, Option<(u32, What)>),
        (data, buffers_size, payload): (&TransactionData, Option<u64>, &Payload<'_>),
    ) -> io::Result<Guard<'p>> {
        // From here on: a reply's frame has left the stack already.
        st.thread(slot).pending = pending;
        // The order of the locks: see `super`.
        self.unlock(st, slot);
        let outbox = self.outbox.lock();
        let descriptors = gather(&outbox, data, buffers_size, *payload, &mut transact);
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        let request = Request::Transact { transact };
        let foretold = match &self.marks {
            Some(marks) => self.mark_sending(marks, slot, &transact, answers)?,
            None => None,
        };
        let asked = match self.ask(self.lock(), slot, pending, &request, &borrowed) {
            // The socket takes no more descriptors, or not these: without them it fails as the broker sees fit, so that
            // whoever waits for a reply learns of it.
            Err(error) if !borrowed.is_empty() && error.kind() != io::ErrorKind::ConnectionReset => {
                let errno = error.raw_os_error().unwrap_or(EMFILE);
                transact.data_fault = if SHORT.contains(&errno) { EMFILE } else { errno };
                self.ask(self.lock(), slot, pending, &Request::Transact { transact }, &[])
            }
            asked => asked,
        };
        let (mut st, answer) = asked?;
        if answer.errno != 0 || answer.sender_stops {
            self.keep_buffer_behind(&mut st, slot);
        }
        if let (Some(marks), Some(buffer), true) = (self.traced(), foretold, answer.sender_stops) {
            marks.buffer(Fate::Failed, buffer);
        }
        Ok(st)
    }

    /// The stack is not one for this command.
    #[cold]
    fn fail_locally(&self, st: &mut Guard<'_>, slot: u32) {
        let thread = st.thread(slot);
        thread.extended_error = ExtendedError { id: 0, command: br::FAILED_REPLY, param: -EPROTO };
        thread.refuse(br::FAILED_REPLY);
    }
}

/// Whether a thread may start a two-way call: its last one is answered, and no call waits in its
/// own queue (contract TX-13, TX-15).
fn may_call(st: &mut Guard<'_>, slot: u32) -> bool {
    let thread = st.thread(slot);
    !matches!(thread.stack.last(), Some(Frame::Calling(_))) && !thread.todo.begins_with_call()
}

/// A transaction with what its command says beside the payload.
fn blank(data: &TransactionData) -> Transact {
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
        sched: sched::own(),
        lineage: Lineage::EMPTY,
    }
}
