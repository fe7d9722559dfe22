//! Echo over shared memory with event counters (`eventfd(2)`): each side copies in and copies out, and sleeps
//! in a read of its counter.
//! Not here: the same on a futex (`super::shared`).
//!
//! Layout: the request's bytes, then the reply's. Each side owns both from its read of a counter to its write
//! to the other one; those system calls order the bytes.

use std::fs::File;
use std::io::{Read, Write};

use sys::shared_memory::SharedMemory;

use super::{Payload, Sabotage};
use crate::call_error::CallError;
use crate::measure::RoundTrip;

/// Value of the reply counter that means that the server has ended; larger ones, too.
const CLOSED: u64 = 1 << 32;

fn reply_at(len: usize) -> usize {
    len.next_multiple_of(128)
}

/// Returns the bytes of shared memory for vectors of `len` bytes; at least one, because an empty mapping is
/// invalid.
#[must_use]
pub(crate) fn memory_size(len: usize) -> usize {
    (reply_at(len) + len).max(1)
}

fn add(counter: &mut File, value: u64) -> Result<(), CallError> {
    counter.write_all(&value.to_ne_bytes()).map_err(CallError::os("write to the eventfd"))
}

fn take(counter: &mut File) -> Result<u64, CallError> {
    let mut bytes = [0; 8];
    counter.read_exact(&mut bytes).map_err(CallError::os("read from the eventfd"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Memory and the two counters of either side.
#[derive(Debug)]
pub(crate) struct Events {
    /// Memory that both sides map.
    pub(crate) memory: SharedMemory,
    /// Counts requests.
    pub(crate) requests: File,
    /// Counts replies.
    pub(crate) replies: File,
}

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client {
    events: Events,
    payload: Payload,
}

impl Client {
    /// Creates a client for vectors of `len` bytes, with [`serve`] on the same memory and counters.
    #[must_use]
    pub(crate) fn new(events: Events, len: usize) -> Self {
        Self { events, payload: Payload::new(len) }
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        self.events.memory.copy_in(0, &self.payload.sent);
        add(&mut self.events.requests, 1)?;
        if take(&mut self.events.replies)? >= CLOSED {
            return Err(CallError::Closed);
        }
        self.events.memory.copy_out(reply_at(self.payload.sent.len()), &mut self.payload.received);
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

/// Tells a client that waits for this counter that its server has ended; for the thread that noticed it.
pub(crate) fn close(replies: &mut File) {
    // A full counter has the same meaning.
    let _ = add(replies, CLOSED);
}

/// Echoes vectors of `len` bytes forever; the parent kills the process.
///
/// # Errors
/// The errors of reading and writing.
pub(crate) fn serve(mut events: Events, len: usize, mut sabotage: Sabotage) -> Result<(), CallError> {
    let mut bytes = vec![0; len];
    loop {
        take(&mut events.requests)?;
        events.memory.copy_out(0, &mut bytes);
        sabotage.apply(&mut bytes);
        events.memory.copy_in(reply_at(len), &bytes);
        add(&mut events.replies, 1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_client_hears_that_its_server_is_gone() {
        let memory = SharedMemory::create(memory_size(4)).expect("memfd");
        let counter = || File::from(sys::descriptor::event_counter().expect("eventfd"));
        let (requests, replies) = (counter(), counter());
        let mut watcher = replies.try_clone().expect("dup");
        let mut client = Client::new(Events { memory, requests, replies }, 4);
        let waiting = std::thread::spawn(move || client.call());
        std::thread::sleep(std::time::Duration::from_millis(20));
        close(&mut watcher);
        assert!(matches!(waiting.join().expect("no panic"), Err(CallError::Closed)));
    }
}
