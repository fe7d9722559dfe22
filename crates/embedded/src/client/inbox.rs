//! Takes in new items of a process: the broker's records, and calls and replies in call slots.
//! Not here: which thread an item is for (`core`), the records' ring (`shm::ring`).
//! Facts: contract LP-08, TX-06, TX-10.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Process;
use super::active_thread::ActiveThread;
use super::channel::{Channel, map_channel};
use crate::rpc::codec::Message;
use crate::rpc::protocol::{Item, ProcId, RECORD_SIZE, Request, ThreadKey};
use crate::shm::ring;

/// Most passes over everything that arrives during one intake.
const ROUNDS: u32 = 16;

impl Process {
    /// Whether anything new waits to be taken in.
    #[inline]
    pub(super) fn anything_new(&self) -> bool {
        self.bells.anything_ready() || self.inbox_has_records()
    }

    #[inline]
    pub(super) fn inbox_has_records(&self) -> bool {
        !self.inbox_broken.load(Ordering::Relaxed) && ring::has_records(&self.inbox_memory)
    }
}

impl ActiveThread<'_> {
    /// Takes in everything new, for all threads. `takes_any`: this thread would take any work.
    #[inline]
    pub(super) fn take_in(&mut self, takes_any: bool) {
        let (process, slot) = (self.process, self.slot);
        if !process.anything_new() && self.state.core.channels.is_settled() {
            return;
        }
        self.state.core.begin_intake(slot, takes_any);
        // Bounded: a waiting thread comes back anyway, and a peer that never stops must not keep the lock.
        for _ in 0..ROUNDS {
            if process.inbox_has_records() {
                self.take_in_records();
            }
            self.take_in_slot_calls();
            if !process.anything_new() {
                break;
            }
        }
        self.state.core.end_intake();
    }

    #[cold]
    fn take_in_records(&mut self) {
        let process = self.process;
        let mut inbox = process.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = [0; RECORD_SIZE];
        loop {
            match inbox.pop(&mut record) {
                Ok(true) => {
                    if let Ok(item) = Item::decode(&record) {
                        self.accept(item);
                    }
                }
                Ok(false) => break,
                // The broker left corrupt counts: nothing more can be read, and waiting threads get an error.
                Err(_) => {
                    process.inbox_broken.store(true, Ordering::Relaxed);
                    return self.end_connection();
                }
            }
        }
        if inbox.take_starved() {
            process.send(&Request::More {});
        }
    }

    fn accept(&mut self, item: Item) {
        match item {
            Item::Channel { channel, caller, bit, peer, peer_pid, peer_euid } => {
                self.open_channel((channel, bit), (peer, peer_pid, peer_euid), caller);
            }
            Item::PeerGone { peer } => self.accept_peer_gone(peer),
            item => {
                if let Item::Deliver { delivery } = &item
                    && delivery.behind_call
                {
                    self.take_in_calls_of(delivery.from.proc);
                }
                if let Some(answer) = self.state.core.accept(item) {
                    self.process.take_trace_numbers(&answer);
                }
            }
        }
    }

    /// Opens a channel: fetches its memory from the broker, under the lock. The broker never waits for a
    /// client.
    fn open_channel(&mut self, (id, bit): (u32, u32), peer: (ProcId, u32, u32), caller: bool) {
        let (process, channels) = (self.process, &mut self.state.core.channels);
        let fetched = process.line.fetch(ThreadKey::NOBODY, &Request::TakeChannel { channel: id });
        let descriptors = fetched.ok().filter(|(errno, _)| *errno == 0);
        let Some(memory) = descriptors.and_then(|(_, descriptors)| map_channel(descriptors)) else {
            // Out of descriptors or memory: calls keep going through the broker, except a call already in the
            // call slot, which fails (`give_up_slot_call`).
            return process.send(&Request::DropChannel { channel: id });
        };
        let channel = Arc::new(Channel::new((id, bit), peer, memory));
        if caller {
            return channels.add_outbound(channel);
        }
        channels.add_inbound(channel);
        // The caller may have opened its end earlier and marked it: mark it again, so that no call is missed.
        process.bells.post(bit);
    }

    /// Dead-replies every call that the peer has not answered. Replies that it sent before its end count.
    fn accept_peer_gone(&mut self, peer: ProcId) {
        self.take_in_slot_calls();
        self.take_in_last_replies(peer);
        self.state.core.peer_gone(peer).iter().for_each(|channel| channel.close());
    }
}
