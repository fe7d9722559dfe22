//! Room: what the broker tells this process, and whose it is: to a thread's queue, to the process's,
//! or into the books.
//! Not here: the ring it comes in (`channel::ring`), reading what was queued (`read`).
//! Facts: contract LP-08, TX-06, REF-09; `binder_select_thread_ilocked`, Linux 7.2.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use abi::codes::{br, tf};
use abi::layout::ExtendedError;

use super::Process;
use super::state::{Answer, Calling, Frame, Pending, Reply, State, Todo};
use crate::embedded::protocol::codec::Message;
use crate::embedded::protocol::{Answers, Item, RECORD_SIZE, Request, ThreadKey};

const EPERM: i32 = 1;
/// How often one look goes through everything that came meanwhile.
const ROUNDS: u32 = 16;

impl Process {
    /// Takes in everything that is there, for whichever thread it is. `me` needs no waking; does it take any work?
    #[inline]
    pub(super) fn drain(&self, st: &mut State, me: u32, takes_any: bool) {
        // Most often there is a call in a lane, or nothing.
        let lanes_only = !self.inbox_has_records() && st.channels.is_quiet();
        if lanes_only && !self.bells.anything_ready() {
            return;
        }
        let thread = st.thread(me);
        // Meanwhile another may have given it something.
        thread.seeks = takes_any && thread.is_free();
        if lanes_only {
            self.drain_lanes(st, me);
        }
        if !lanes_only || self.anything_new() {
            self.drain_all(st, me);
        }
        st.thread(me).seeks = false;
    }

    #[cold]
    fn drain_all(&self, st: &mut State, me: u32) {
        // Whoever waits comes back; a peer that never stops must not keep the lock from the others.
        for _ in 0..ROUNDS {
            self.drain_inbox(st, me);
            self.drain_lanes(st, me);
            if !self.anything_new() {
                return;
            }
        }
    }

    /// Whether somebody should drain.
    #[inline]
    pub(super) fn anything_new(&self) -> bool {
        self.bells.anything_ready() || self.inbox_has_records()
    }

    fn drain_inbox(&self, st: &mut State, me: u32) {
        if !self.inbox_has_records() {
            return;
        }
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = [0; RECORD_SIZE];
        loop {
            match inbox.pop(&mut record) {
                Ok(true) => {
                    if let Ok(item) = Item::decode(&record) {
                        self.accept(st, me, item);
                    }
                }
                Ok(false) => break,
                // Somebody scribbled over it: nothing can be taken from it any more, and whoever waits
                // is told so.
                Err(_) => return self.inbox_broken.store(true, Ordering::Relaxed),
            }
        }
        if inbox.take_starved() {
            self.post(&Request::More {});
        }
    }

    fn accept(&self, st: &mut State, me: u32, item: Item) {
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
                self.accept_answer(st, me, (thread, seq), answer, outcome, transaction, error);
            }
            Item::Deliver { delivery } => {
                let to = delivery.to_thread;
                self.route_call(st, me, to, Todo::Call(Box::new(delivery)));
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
                if fds > 0 && refuses_descriptors(st, thread, answers) {
                    // Only a callee that lies about the call's flags gets here (contract OBJ-09).
                    let error = ExtendedError { id: 0, command: br::FAILED_REPLY, param: -EPERM };
                    self.end_call(st, me, thread, answers, Todo::Word(br::FAILED_REPLY), Some(error));
                    return self.post(&Request::FreeBuffer { offset: buffer });
                }
                let reply =
                    Reply { code, flags, euid, buffer, data_size, offsets_size, extra_size, number, fds };
                if !self.end_call(st, me, thread, answers, Todo::Reply(Box::new(reply)), None) {
                    // Its caller is gone (contract TX-18); only the buffer matters.
                    self.post(&Request::FreeBuffer { offset: buffer });
                }
            }
            Item::Refused { thread, answers, outcome, error } => {
                self.end_call(st, me, thread, answers, Todo::Word(outcome), Some(error));
            }
            Item::Work { work, thread, deferred } => match thread.and_then(|key| st.slot_of(key)) {
                Some(slot) if deferred => st.thread(slot).push_deferred(Todo::Work(work)),
                Some(slot) => self.give(st, me, slot, Todo::Work(work)),
                None => self.route(st, me, Todo::Work(work)),
            },
            Item::Channel { .. } | Item::BindNode { .. } | Item::BindHandle { .. } | Item::Unbind { .. } => {
                self.accept_channel(st, item);
            }
            Item::PeerGone { peer } => self.accept_peer_gone(st, me, peer),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    fn accept_answer(
        &self,
        st: &mut State,
        me: u32,
        (key, seq): (ThreadKey, u32),
        answer: Answer,
        outcome: u32,
        transaction: u32,
        error: ExtendedError,
    ) {
        if key == ThreadKey::NOBODY {
            return self.stocked(&answer);
        }
        let Some(slot) = st.slot_of(key) else { return };
        let thread = st.thread(slot);
        if seq != thread.seq {
            return;
        }
        if !matches!(thread.pending, Pending::Plain | Pending::Foretold) {
            thread.extended_error = error;
            match thread.pending {
                // The broker knows of no such call any more: nobody waits for this (contract TX-18).
                Pending::Reply if answer.errno != 0 => thread.refuse(br::TRANSACTION_COMPLETE),
                _ if answer.sender_stops => thread.refuse(outcome),
                Pending::Call => {
                    thread.stack.push(Frame::Calling(Calling::Broker(transaction)));
                    thread.push_deferred(Todo::Word(outcome));
                }
                _ => thread.push(Todo::Word(outcome)),
            }
            thread.pending = Pending::Plain;
            self.release_early(st, me, slot);
            st.thread(slot).release_held();
        }
        st.thread(slot).answer = Some(answer);
        self.show_depth(st.thread(slot));
        if slot != me {
            self.ring(slot);
        }
    }

    /// Ends a thread's call with what it shall read; false if that thread does not wait for it.
    pub(super) fn end_call(
        &self,
        st: &mut State,
        me: u32,
        key: ThreadKey,
        answers: Answers,
        todo: Todo,
        error: Option<ExtendedError>,
    ) -> bool {
        let Some(slot) = st.slot_of(key) else { return false };
        let waits = |frame: &Frame| match (frame, &answers) {
            (Frame::Calling(Calling::Broker(number)), Answers::Transaction(ended)) => number == ended,
            (Frame::Calling(Calling::Lane(ticket)), Answers::Lane { channel, lane }) => {
                ticket.channel.id == *channel && ticket.call.lane == *lane
            }
            _ => false,
        };
        let thread = st.thread(slot);
        let Some(place) = thread.stack.iter().rposition(waits) else { return false };
        let Some(frame) = thread.take_frame(place) else { return false };
        let now = thread.end(place, todo);
        // A refusal without a reason leaves the record of the last command alone (contract TX-20).
        if let Some(error) = error.filter(|error| error.command != br::OK) {
            thread.extended_error = error;
        }
        if let Frame::Calling(Calling::Lane(ticket)) = frame {
            self.leave_lane(st, &ticket);
        }
        if now {
            self.unlist(st, slot);
            if slot != me {
                self.ring(slot);
            }
        }
        self.show_depth(st.thread(slot));
        true
    }

    /// Queues something for one thread and wakes it.
    pub(super) fn give(&self, st: &mut State, me: u32, slot: u32, todo: Todo) {
        let thread = st.thread(slot);
        if todo.is_call() && thread.is_engaged() {
            return thread.early.push(todo);
        }
        thread.push(todo);
        self.show_depth(st.thread(slot));
        self.unlist(st, slot);
        if slot != me {
            self.ring(slot);
        }
    }

    /// Queues the calls that came before a thread could read one; it is told in [`Self::give`].
    #[inline]
    pub(super) fn release_early(&self, st: &mut State, me: u32, slot: u32) {
        if !st.thread(slot).early.is_empty() {
            self.release_all_early(st, me, slot);
        }
    }

    #[cold]
    pub(super) fn release_all_early(&self, st: &mut State, me: u32, slot: u32) {
        let thread = st.thread(slot);
        let key = thread.key;
        for todo in std::mem::take(&mut thread.early) {
            self.route_call(st, me, Some(key), todo);
        }
    }

    /// A call: to the thread that waits further out in its chain, else to whoever is free. That thread may serve
    /// another one of its chain meanwhile, whose caller died (contract TX-19, as it is here).
    pub(super) fn route_call(&self, st: &mut State, me: u32, to: Option<ThreadKey>, todo: Todo) {
        let waits = |st: &mut State, slot: u32| {
            let thread = st.thread(slot);
            let calls = |frame: &Frame| matches!(frame, Frame::Calling(_));
            thread.pending == Pending::Call || thread.stack.iter().any(calls)
        };
        match to.and_then(|key| st.slot_of(key)).filter(|slot| waits(st, *slot)) {
            Some(slot) => self.give(st, me, slot, todo),
            None => self.route(st, me, todo),
        }
    }

    /// How many calls wait for any thread, for the broker's question (see `show_depth`).
    pub(super) fn show_queue(&self, st: &State) {
        let (mut calls, mut untaken) = (0, 0);
        if st.queue.is_empty() {
            self.bells.set_queued(0);
            return self.bells.set_untaken(0);
        }
        for todo in st.queue.iter().filter(|todo| todo.is_transaction()) {
            calls += 1;
            untaken += u32::from(!matches!(todo, Todo::Call(call) if call.flags & tf::ONE_WAY == 0));
        }
        self.bells.set_queued(calls);
        self.bells.set_untaken(untaken);
    }

    /// To the thread that became idle last, else into the process's queue (contract LP-08).
    pub(super) fn route(&self, st: &mut State, me: u32, todo: Todo) {
        if let Some(slot) = st.idle.last().copied() {
            return self.give(st, me, slot, todo);
        }
        // From the queue this thread would take it at once; once it has something it is not free any more.
        if st.queue.is_empty()
            && let Some(thread) = st.thread_if_any(me)
            && thread.seeks
            && thread.is_free()
        {
            thread.push(todo);
            return self.show_depth(thread);
        }
        self.queue(st, me, todo);
    }

    #[inline(never)]
    fn queue(&self, st: &mut State, me: u32, todo: Todo) {
        st.queue.push_back(todo);
        self.show_queue(st);
        for slot in st.pollers.iter().filter(|slot| **slot != me) {
            self.ring(*slot);
        }
    }
}

/// Whether a thread waits in that lane for a reply without descriptors. Of calls through the broker the
/// broker knows; of those in lanes it only knows what the callee says.
fn refuses_descriptors(st: &mut State, key: ThreadKey, answers: Answers) -> bool {
    let Some(slot) = st.slot_of(key) else { return false };
    st.thread(slot).stack.iter().any(|frame| match frame {
        Frame::Calling(Calling::Lane(ticket)) => {
            ticket.answers() == answers && ticket.flags & tf::ACCEPT_FDS == 0
        }
        _ => false,
    })
}
