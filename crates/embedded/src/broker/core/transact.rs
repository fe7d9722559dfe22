//! Transaction as one list of steps: resolve, copy the payload, admit, deliver.
//! Not here: the payload (`payload_copy`, `translate`), oneway queues (`oneway`), call slots (`call_slots`).
//! Facts: contract sections 5, 6 and 13.

use abi::codes::{br, tf};

use super::Core;
use super::LIMIT;
use super::host::Host;
use super::node::{Hold, NodeKey};
use super::payload_copy::{PayloadCopy, Route, Sending};
use super::refusal::Refusal;
use super::request::Verdict;
use super::transaction_log::{Kind, LogEntry};
use crate::rpc::protocol::{Answers, Delivery, Item, Lineage, Link, ProcId, TransactKind};
use sys::errno::{EINVAL, ENOMEM, EPROTO};

/// An unanswered sync call.
#[derive(Debug)]
pub(super) struct Call {
    /// The waiting thread; `None` once its process has ended.
    pub(super) from: Option<Link>,
    pub(super) to: ProcId,
    pub(super) node: u32,
    pub(super) ptr: u64,
    pub(super) code: u32,
    pub(super) flags: u32,
    pub(super) buffer: u64,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) began_ms: u64,
}

impl Sending<'_> {
    fn oneway(&self) -> bool {
        self.transact.flags & tf::ONE_WAY != 0
    }
}

/// Target of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) node: NodeKey,
    pub(super) proc: ProcId,
}

impl Core {
    /// `BC_TRANSACTION(_SG)`, `BC_REPLY(_SG)`.
    pub(super) fn transact(&mut self, mut sending: Sending<'_>, host: &mut impl Host) -> Verdict {
        let verdict = match sending.transact.kind {
            TransactKind::Call { handle } => {
                self.note(&sending, Kind::call(sending.oneway()), handle);
                match self.call(&mut sending, handle, host) {
                    Ok(outcome) => Verdict::carried(outcome, sending.id),
                    Err(refusal) => {
                        self.transaction_log.fail(sending.id, refusal);
                        Verdict::refused(refusal, sending.id)
                    }
                }
            }
            TransactKind::Reply { transaction } => {
                let known = self.calls.get(&transaction).filter(|call| call.to == sending.from.proc);
                match known.map(|call| (call.from, call.flags)) {
                    Some((caller, flags)) => {
                        self.end_call(transaction);
                        self.reply(
                            &mut sending,
                            caller,
                            Answers::Transaction { number: transaction },
                            flags,
                            host,
                        )
                    }
                    None => Verdict::errno(EINVAL),
                }
            }
            TransactKind::SlotReply { channel, call_slot, thread, call_flags } => {
                match self.caller_of(channel, sending.from.proc) {
                    Some(caller) => {
                        let link = caller.map(|proc| Link { proc, thread });
                        let answers = Answers::CallSlot { channel, call_slot };
                        self.reply(&mut sending, link, answers, call_flags, host)
                    }
                    None => Verdict::errno(EINVAL),
                }
            }
        };
        if let Some(offset) = sending.transact.frees
            && verdict.sender_goes_on()
        {
            self.free_buffer(sending.from.proc, offset, host);
        }
        verdict
    }

    /// Sends a call or oneway call; returns the `BR_*` word for the sender.
    fn call(&mut self, sending: &mut Sending<'_>, handle: u32, host: &mut impl Host) -> Result<u32, Refusal> {
        let target = self.resolve(sending.from.proc, handle)?;
        let node = self.nodes.get(&target.node).map_or(0, |node| node.debug_id);
        self.log_receiver(sending.id, target.proc, None, node);
        if sending.transact.out_of_turn {
            return Err(Refusal::failed(EPROTO));
        }
        self.take_node(target.node, true);
        let route = self.route_of_call(sending.oneway(), target);
        let copy = match self.copy_payload(sending, &route, host) {
            Ok(copy) => copy,
            Err(refusal) => {
                self.put_node(target.node, true, Hold::Local, host);
                return Err(refusal);
            }
        };
        let frozen = match self.admit(sending, target) {
            Ok(frozen) => frozen,
            Err(refusal) => {
                self.drop_buffer(target.proc, copy.offset, host);
                return Err(refusal);
            }
        };
        let delivery = self.delivery(sending, target, &copy);
        if sending.oneway() {
            self.deliver_oneway(sending, target, delivery, frozen, host);
        } else {
            self.deliver_call(sending, target, delivery, host);
        }
        Ok(self.outcome(sending, &copy, frozen))
    }

    /// Resolves a handle to its node and living owner (contract TX-07 to TX-09, CTX-05).
    pub(super) fn resolve(&self, from: ProcId, handle: u32) -> Result<Target, Refusal> {
        let sender = self.procs.get(&from).ok_or(Refusal::dead(EINVAL))?;
        let key = if handle == 0 {
            self.manager_of(from).ok_or(Refusal::dead(EINVAL))?
        } else {
            let held = sender.refs.get(handle).filter(|held| held.strong > 0);
            held.ok_or(Refusal::failed(EINVAL))?.node
        };
        let owner = self.nodes.get(&key).and_then(|node| node.owner).ok_or(Refusal::dead(EINVAL))?;
        let target = self.procs.get(&owner).ok_or(Refusal::dead(EINVAL))?;
        let own_manager = handle == 0 && target.client.pid == sender.client.pid;
        if own_manager || owner == from {
            return Err(Refusal::failed(EINVAL));
        }
        Ok(Target { node: key, proc: owner })
    }

    pub(super) fn route_of_call(&self, oneway: bool, target: Target) -> Route {
        let node = self.nodes.get(&target.node);
        Route {
            to: target.proc,
            target: Some(target.node),
            oneway,
            accepts_fds: node.is_some_and(|node| node.accepts_fds()),
            security_context: node.is_some_and(|node| node.wants_security_context()),
        }
    }

    /// Admits a call to the target; true if the target is frozen and accepts it nevertheless (contract TX-22,
    /// OW-09).
    fn admit(&mut self, sending: &Sending<'_>, target: Target) -> Result<bool, Refusal> {
        let oneway = sending.oneway();
        let receiver = self.procs.get_mut(&target.proc).ok_or(Refusal::dead(0))?;
        let frozen = receiver.freezing.admits(oneway)?;
        let full = |calls: usize| calls >= LIMIT;
        let sender_full = self.procs.get(&sending.from.proc).is_none_or(|p| full(p.outgoing.len()));
        let receiver_full = self.procs.get(&target.proc).is_none_or(|p| full(p.incoming.len()));
        if !oneway && (sender_full || receiver_full) {
            return Err(Refusal::failed(ENOMEM));
        }
        Ok(frozen)
    }

    /// Pid and euid of a process, from the kernel when it joined, never from a transaction.
    pub(super) fn identity(&self, proc: ProcId) -> (u32, u32) {
        self.procs.get(&proc).map_or((0, 0), |proc| (proc.client.pid, proc.client.euid))
    }

    fn delivery(&self, sending: &Sending<'_>, target: Target, copy: &PayloadCopy) -> Delivery {
        let transact = sending.transact;
        let node = self.nodes.get(&target.node);
        let oneway = sending.oneway();
        let (pid, euid) = self.identity(sending.from.proc);
        Delivery {
            transaction: sending.id,
            to_thread: if oneway { None } else { transact.lineage.find(target.proc) },
            from: sending.from,
            ptr: node.map_or(0, |node| node.ptr),
            cookie: node.map_or(0, |node| node.cookie),
            node_flags: node.map_or(0, |node| node.flags),
            code: transact.code,
            flags: transact.flags,
            sender_pid: if oneway { 0 } else { pid },
            sender_euid: euid,
            buffer: copy.offset,
            data_size: transact.data_size,
            offsets_size: transact.offsets_size,
            extra_size: copy.extra_size,
            security_context: copy.security_context,
            fds: copy.fds,
            sched: transact.sched,
            lineage: if oneway { Lineage::EMPTY } else { transact.lineage.behind(sending.from) },
        }
    }

    fn deliver_call(
        &mut self,
        sending: &Sending<'_>,
        target: Target,
        delivery: Delivery,
        host: &mut impl Host,
    ) {
        let call = Call {
            from: Some(sending.from),
            to: target.proc,
            node: self.nodes.get(&target.node).map_or(0, |node| node.debug_id),
            ptr: delivery.ptr,
            code: delivery.code,
            flags: delivery.flags,
            buffer: delivery.buffer,
            data_size: delivery.data_size,
            offsets_size: delivery.offsets_size,
            began_ms: host.now_ms(),
        };
        self.calls.insert(sending.id, call);
        if let Some(receiver) = self.procs.get_mut(&target.proc) {
            receiver.incoming.insert(sending.id);
        }
        if let Some(sender) = self.procs.get_mut(&sending.from.proc) {
            sender.outgoing.insert(sending.id);
        }
        host.item(target.proc, Item::Deliver { delivery });
    }

    fn deliver_oneway(
        &mut self,
        sending: &Sending<'_>,
        target: Target,
        delivery: Delivery,
        frozen: bool,
        host: &mut impl Host,
    ) {
        let flags = delivery.flags;
        let (pid, _) = self.identity(sending.from.proc);
        let replaceable = (flags & tf::UPDATE_TXN != 0).then_some((delivery.code, flags, pid));
        if self.nodes.get_mut(&target.node).is_some_and(|node| node.oneways.begin()) {
            host.item(target.proc, Item::Deliver { delivery });
        } else {
            self.wait_in_line(target.proc, target.node, delivery, replaceable, frozen, host);
        }
    }

    /// The `BR_*` word for the sender of an accepted call (contract OW-07, OW-09).
    fn outcome(&self, sending: &Sending<'_>, copy: &PayloadCopy, frozen: bool) -> u32 {
        let watched = self.procs.get(&sending.from.proc).is_some_and(|sender| sender.spam_detection);
        if frozen {
            br::TRANSACTION_PENDING_FROZEN
        } else if copy.suspect && watched {
            br::ONEWAY_SPAM_SUSPECT
        } else {
            br::TRANSACTION_COMPLETE
        }
    }

    pub(super) fn note(&mut self, sending: &Sending<'_>, kind: Kind, handle: u32) {
        let sender = self.procs.get(&sending.from.proc);
        let context = sender.and_then(|sender| self.contexts.get(&sender.context));
        self.transaction_log.add(LogEntry {
            id: sending.id,
            kind,
            from: sending.from,
            from_pid: sender.map_or(0, |sender| sender.client.pid),
            to: None,
            to_thread: None,
            to_pid: 0,
            context: context.map_or_else(Default::default, |context| context.name.clone()),
            node: 0,
            handle,
            data_size: sending.transact.data_size,
            offsets_size: sending.transact.offsets_size,
            refusal: None,
        });
    }
}
