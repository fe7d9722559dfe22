//! Applies the broker's items: answers, deliveries, ends of calls, bindings.
//! Not here: opening channels, and the last replies that a dead peer left in call slots (both in the shell).
//! Facts: contract TX-17 to TX-20, OBJ-09, REF-09.

use std::sync::Arc;

use abi::codes::{br, tf};
use abi::layout::ExtendedError;

use sys::errno::EPERM;

use super::channel_table::Binding;
use super::slot_call::Node;
use super::thread::{Answer, Awaited, Frame, Pending, failed};
use super::{BrokerReply, Core, Todo};
use crate::client::channel::Channel;
use crate::rpc::protocol::{Answers, Item, ProcId, Request, ThreadKey};
use crate::shm::lease::Tag;

/// The broker's answer, as the sending thread needs it.
struct Answered {
    answer: Answer,
    /// The `BR_*` word for the sender of a transaction.
    outcome: u32,
    /// The number of an accepted transaction.
    transaction: u32,
    error: ExtendedError,
}

impl Core {
    /// Applies an item of the broker. Returns the answer to a request that no thread sent.
    pub(crate) fn accept(&mut self, item: Item) -> Option<Answer> {
        match item {
            Item::Answer {
                thread,
                seq,
                errno,
                outcome,
                sender_stops,
                transaction,
                error,
                words,
                returns,
            } => {
                let answer = Answer { errno, sender_stops, words, returns };
                if thread == ThreadKey::NOBODY {
                    return Some(answer);
                }
                self.accept_answer(thread, seq, Answered { answer, outcome, transaction, error });
            }
            Item::Deliver { delivery } => {
                let to = delivery.to_thread;
                self.route_call(to, Todo::Call(Box::new(delivery)));
            }
            Item::Reply {
                thread,
                answers,
                code,
                flags,
                euid,
                buffer,
                data_size,
                offsets_size,
                extra_size,
                number,
                fds,
            } => {
                let reply = BrokerReply {
                    code,
                    flags,
                    euid,
                    buffer,
                    data_size,
                    offsets_size,
                    extra_size,
                    number,
                    fds,
                };
                self.accept_reply(thread, answers, reply);
            }
            Item::Refused { thread, answers, outcome, error } => {
                self.end_call(thread, answers, Todo::Word(outcome), Some(error));
            }
            Item::Work { work, thread, deferred } => match thread.and_then(|key| self.slot_of(key)) {
                Some(slot) if deferred => self.thread(slot).push_deferred(Todo::Work(work)),
                Some(slot) => self.give(slot, Todo::Work(work)),
                None => self.route(Todo::Work(work)),
            },
            Item::BindNode { channel, binding, ptr, cookie, flags, tag } => {
                let tag = Tag::of_node(tag);
                self.channels.bind_node((channel, binding), Node { ptr, cookie, flags, pin: 0, tag });
            }
            Item::BindHandle { channel, binding, handle, flags, node } => {
                if let Some(channel) = self.channels.outbound.get(&channel).cloned() {
                    self.channels.bind_handle(handle, Binding::new(channel, binding, flags, node));
                }
            }
            Item::Unbind { channel, binding } => self.channels.unbind(channel, binding),
            // Handled by the shell, because they concern memory.
            Item::Channel { .. } | Item::PeerGone { .. } => {}
        }
        None
    }

    fn accept_answer(&mut self, key: ThreadKey, seq: u32, answered: Answered) {
        let Some(slot) = self.slot_of(key) else { return };
        let Answered { answer, outcome, transaction, error } = answered;
        let thread = self.thread(slot);
        if seq != thread.seq {
            return;
        }
        if !matches!(thread.pending, Pending::Plain | Pending::Preassigned) {
            thread.extended_error = error;
            match thread.pending {
                // The broker does not know the call any more: nobody waits for the reply (contract TX-18).
                Pending::Reply if answer.errno != 0 => thread.refuse(br::TRANSACTION_COMPLETE),
                _ if answer.sender_stops => thread.refuse(outcome),
                Pending::Call => {
                    thread.stack.push(Frame::Calling(Awaited::Broker(transaction)));
                    thread.push_deferred(Todo::Word(outcome));
                }
                _ => thread.push(Todo::Word(outcome)),
            }
            thread.pending = Pending::Plain;
            self.release_early(slot);
            self.thread(slot).release_held();
        }
        self.thread(slot).answer = Some(answer);
        self.changed(slot, true);
    }

    fn accept_reply(&mut self, thread: ThreadKey, answers: Answers, reply: BrokerReply) {
        let buffer = reply.buffer;
        if reply.fds > 0 && self.refuses_descriptors(thread, answers) {
            // Only a callee that lies about the call's flags causes this (contract OBJ-09).
            let refusal = Todo::Word(br::FAILED_REPLY);
            self.end_call(thread, answers, refusal, Some(failed(EPERM)));
            return self.send(Request::FreeBuffer { offset: buffer });
        }
        if !self.end_call(thread, answers, Todo::Reply(Box::new(reply)), None) {
            // The caller's thread is gone (contract TX-18).
            self.send(Request::FreeBuffer { offset: buffer });
        }
    }

    /// Whether a thread waits in that call slot for a reply without descriptors. The broker checks this
    /// itself for calls that it delivered; for calls in call slots it has only the callee's word.
    fn refuses_descriptors(&mut self, key: ThreadKey, answers: Answers) -> bool {
        let Some(slot) = self.slot_of(key) else { return false };
        self.thread(slot).stack.iter().any(|frame| match frame {
            Frame::Calling(Awaited::CallSlot(ticket)) => {
                ticket.answers() == answers && ticket.flags & tf::ACCEPT_FDS == 0
            }
            _ => false,
        })
    }

    /// Ends a thread's call and queues the end for reading; false if the thread does not wait for that call.
    pub(super) fn end_call(
        &mut self,
        key: ThreadKey,
        answers: Answers,
        todo: Todo,
        error: Option<ExtendedError>,
    ) -> bool {
        let Some(slot) = self.slot_of(key) else { return false };
        let waits = |frame: &Frame| match (frame, answers) {
            (Frame::Calling(Awaited::Broker(number)), Answers::Transaction { number: ended }) => {
                *number == ended
            }
            (Frame::Calling(Awaited::CallSlot(ticket)), answers) => ticket.answers() == answers,
            _ => false,
        };
        let thread = self.thread(slot);
        let Some(place) = thread.stack.iter().rposition(waits) else { return false };
        let Some(frame) = thread.take_frame(place) else { return false };
        let now = thread.end(place, todo);
        // A refusal without a reason keeps the last command's error record (contract TX-20).
        if let Some(error) = error.filter(|error| error.command != br::OK) {
            thread.extended_error = error;
        }
        if let Frame::Calling(Awaited::CallSlot(ticket)) = frame {
            self.free_call_slot(ticket);
        }
        if now {
            self.withdraw(slot);
        }
        self.changed(slot, now);
        true
    }

    /// Handles the end of a peer, after the shell took in the calls and replies that it left. Its unanswered
    /// calls are dead-replied; calls that it made are served to their end and their replies dropped. Returns
    /// its channels.
    pub(crate) fn peer_gone(&mut self, peer: ProcId) -> Vec<Arc<Channel>> {
        self.end_waits_of(peer);
        let (counts, gone) = self.channels.remove_peer(peer);
        // Commands that were held until the end of calls to the peer.
        counts.into_iter().for_each(|(command, handle)| self.send(Request::Count { command, handle }));
        for channel in &gone {
            self.send(Request::DropChannel { channel: channel.id });
        }
        let waits = |frame: &Frame| match frame {
            Frame::Calling(Awaited::CallSlot(ticket)) if ticket.channel.peer == peer => {
                Some(ticket.answers())
            }
            _ => None,
        };
        let waiting: Vec<(ThreadKey, Answers)> = self
            .threads
            .iter()
            .flat_map(|thread| thread.stack.iter().filter_map(waits).map(|answers| (thread.key, answers)))
            .collect();
        for (key, answers) in waiting {
            self.end_call(key, answers, Todo::Word(br::DEAD_REPLY), None);
        }
        gone
    }
}
