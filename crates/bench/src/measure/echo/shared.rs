//! Echo over shared memory; each side copies in and copies out, and waits for the other on a futex or by
//! spinning.
//! Not here: the memory (`sys::shared_memory`), futexes (`sys::futex`).
//!
//! Layout: the number of the last request, alone in its cache line; the number of the last reply, likewise;
//! the request's bytes; the reply's bytes. A number is stored (`Release`) after its bytes and loaded
//! (`Acquire`) before them, so each side owns a vector from the moment it sees the number until it publishes
//! its own.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use sys::futex;
use sys::shared_memory::SharedMemory;

use super::{Payload, Sabotage};
use crate::call_error::CallError;
use crate::measure::RoundTrip;

const REQUEST_NUMBER: usize = 0;
const REPLY_NUMBER: usize = 128;
const REQUEST: usize = 256;
/// Value in place of a reply's number: the server has ended.
const CLOSED: u32 = u32::MAX;
/// Mask of request numbers, so that none equals [`CLOSED`].
const NUMBERS: u32 = 0x7fff_ffff;

fn reply_at(len: usize) -> usize {
    REQUEST + len.next_multiple_of(128)
}

/// Returns the bytes of shared memory for vectors of `len` bytes.
#[must_use]
pub(crate) fn memory_size(len: usize) -> usize {
    reply_at(len) + len
}

fn word(memory: &SharedMemory, offset: usize) -> Result<&AtomicU32, CallError> {
    let too_small =
        || CallError::Os { call: "mapping shared memory", source: io::ErrorKind::InvalidData.into() };
    memory.word(offset).ok_or_else(too_small)
}

/// A way to wait for the other side.
pub(crate) trait Waiting {
    /// Waits for some time, unless `word` no longer holds `seen`.
    fn pass_time(word: &AtomicU32, seen: u32);

    /// Wakes the peer; call it after each change of a word.
    fn wake(word: &AtomicU32);

    /// Waits until `word` no longer holds `seen`; returns its value.
    fn until_changed(word: &AtomicU32, seen: u32) -> u32 {
        loop {
            let now = word.load(Ordering::Acquire);
            if now != seen {
                return now;
            }
            Self::pass_time(word, seen);
        }
    }
}

/// Waits in a futex.
#[derive(Debug)]
pub(crate) struct Sleep;

impl Waiting for Sleep {
    fn pass_time(word: &AtomicU32, seen: u32) {
        // After a signal the caller checks again.
        let _ = futex::wait(word, seen);
    }

    fn wake(word: &AtomicU32) {
        futex::wake_one(word);
    }
}

/// Waits by polling.
#[derive(Debug)]
pub(crate) struct Spin;

impl Waiting for Spin {
    fn pass_time(_: &AtomicU32, _: u32) {
        std::hint::spin_loop();
    }

    fn wake(_: &AtomicU32) {}
}

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client<W> {
    memory: SharedMemory,
    number: u32,
    payload: Payload,
    waiting: PhantomData<W>,
}

impl<W: Waiting> Client<W> {
    /// Creates a client for vectors of `len` bytes, with [`serve`] on the same memory.
    #[must_use]
    pub(crate) fn new(memory: SharedMemory, len: usize) -> Self {
        Self { memory, number: 0, payload: Payload::new(len), waiting: PhantomData }
    }
}

impl<W: Waiting> RoundTrip for Client<W> {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let last = self.number;
        self.number = (last + 1) & NUMBERS;
        self.memory.copy_in(REQUEST, &self.payload.sent);
        let request = word(&self.memory, REQUEST_NUMBER)?;
        // Pairs with the server's load in `until_changed`: it sees the request's bytes.
        request.store(self.number, Ordering::Release);
        W::wake(request);
        if W::until_changed(word(&self.memory, REPLY_NUMBER)?, last) == CLOSED {
            return Err(CallError::Closed);
        }
        self.memory.copy_out(reply_at(self.payload.sent.len()), &mut self.payload.received);
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

/// Tells a client that waits on this memory that its server has ended; for the thread that noticed it.
pub(crate) fn close(memory: &SharedMemory) {
    if let Ok(reply) = word(memory, REPLY_NUMBER) {
        reply.store(CLOSED, Ordering::Release);
        futex::wake_one(reply);
    }
}

/// Echoes vectors of `len` bytes forever; the parent kills the process.
///
/// # Errors
/// The memory is too small for such vectors.
pub(crate) fn serve<W: Waiting>(
    mut memory: SharedMemory,
    len: usize,
    mut sabotage: Sabotage,
) -> Result<(), CallError> {
    if memory.len() < memory_size(len) {
        return word(&memory, memory.len()).map(|_| ());
    }
    let mut bytes = vec![0; len];
    let mut number = 0;
    loop {
        number = W::until_changed(word(&memory, REQUEST_NUMBER)?, number);
        memory.copy_out(REQUEST, &mut bytes);
        sabotage.apply(&mut bytes);
        memory.copy_in(reply_at(len), &bytes);
        let reply = word(&memory, REPLY_NUMBER)?;
        // Pairs with the client's load in `until_changed`: it sees the reply's bytes.
        reply.store(number, Ordering::Release);
        W::wake(reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_any_length_stay_apart() {
        for len in [4, 127, 128, 129, 65536] {
            assert!(reply_at(len) >= REQUEST + len);
            assert_eq!(memory_size(len), reply_at(len) + len);
        }
    }

    #[test]
    fn a_waiting_client_hears_that_its_server_is_gone() {
        let memory = SharedMemory::create(memory_size(4)).expect("memfd");
        let theirs = memory.descriptor().try_clone_to_owned().expect("dup");
        let watcher = SharedMemory::map(theirs).expect("map");
        let mut client = Client::<Sleep>::new(memory, 4);
        let waiting = std::thread::spawn(move || client.call());
        std::thread::sleep(std::time::Duration::from_millis(20));
        close(&watcher);
        assert!(matches!(waiting.join().expect("no panic"), Err(CallError::Closed)));
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let memory = SharedMemory::create(256).expect("memfd");
        assert!(serve::<Sleep>(memory, 4, Sabotage::new(None)).is_err());
    }
}
