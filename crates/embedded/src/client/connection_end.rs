//! The end of the broker: how a process notices it, and how all waits of its threads end with it.
//!
//! The broker is to its clients what the kernel is to those of a kernel's driver: without it nobody counts references,
//! and nobody learns that a peer died. So a connection ends as a whole, direct calls between two clients included. The
//! first thread that notices tells all others of its process. It notices by a request that cannot be sent, or by a check
//! that each waiting thread makes once a second ([`crate::shm::wait::LOOK_AGAIN`]), however often signals take it out of
//! its waits and however soon its calls are answered.
//!
//! Items that arrived before may still be read; everything else is [`BrokerConnection::gone`].
//!
//! [`BrokerConnection::gone`]: crate::broker_connection::BrokerConnection::gone

use std::sync::atomic::Ordering;

use super::{Process, State};

impl Process {
    /// Whether the broker runs, and its records can still be read: one system call.
    pub(super) fn is_connected(&self) -> bool {
        !self.inbox_broken.load(Ordering::Relaxed) && self.line.is_alive()
    }

    /// Whether a thread noticed the end of the broker.
    pub(super) fn has_ended(&self) -> bool {
        // Set under the lock of the state, as it is read before each wait.
        self.ended.load(Ordering::Relaxed)
    }
}

impl State {
    /// Ends the connection, because its broker is gone: closes the channels, hangs up the descriptors for polling, and
    /// wakes every thread that waits.
    pub(super) fn end_connection(&mut self, process: &Process) {
        if process.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        self.core.channels.close_all();
        self.pollables = 0;
        self.own.iter_mut().for_each(|own| drop(own.pollable.take()));
        // The helpers of the descriptors sleep on the bells of their threads.
        self.core.slots().into_iter().for_each(|slot| process.ring(slot));
    }
}
