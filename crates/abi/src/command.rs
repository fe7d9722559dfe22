//! Encodes a stream of `BC_*` commands.
//! Not here: sending it (`driver`), what a transaction carries (`ipc`).
//! Facts: `enum binder_driver_command_protocol` in `linux/android/binder.h`.

use zerocopy::IntoBytes;

use crate::codes::{bc, tf};
use crate::ids::{BufferAddress, Cookie, Handle, NodePtr};
use crate::layout::{HandleCookie, PtrCookie, TransactionData, TransactionDataSg};

/// `TF_*` bits of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionFlags(pub u32);

impl TransactionFlags {
    /// A two-way call; its reply may carry file descriptors.
    pub const CALL: Self = Self(tf::ACCEPT_FDS);
    /// A oneway call.
    pub const ONEWAY: Self = Self(tf::ACCEPT_FDS | tf::ONE_WAY);

    /// Whether this is a oneway call.
    #[must_use]
    pub const fn is_oneway(self) -> bool {
        self.0 & tf::ONE_WAY != 0
    }
}

/// The payload of a transaction or reply: data, the positions of the objects in it, and the total size of
/// its scatter-gather buffers.
///
/// The driver reads the bytes when the command is written, so they must stay where they are until
/// then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload<'p> {
    /// The bytes.
    pub data: &'p [u8],
    /// Where in `data` each object starts, ascending.
    pub offsets: &'p [u64],
    /// `Some(total)` selects the `_SG` form of the command.
    pub buffers_size: Option<u64>,
    /// The bytes that PTR objects in `data` point to (contract OBJ-15), best in the order of their
    /// objects. No part of the command, only a saving: the kernel follows the objects' addresses by
    /// itself, a driver in user space may read here what lies inside one of these.
    pub buffers: &'p [&'p [u8]],
}

/// A stream of commands, ready for `BINDER_WRITE_READ`. Reused: once grown it allocates no more.
#[derive(Debug, Default)]
pub struct Commands {
    bytes: Vec<u8>,
}

impl Commands {
    /// An empty stream with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// The stream that `fill` writes.
    pub fn of(fill: impl FnOnce(&mut Self)) -> Self {
        let mut commands = Self::default();
        fill(&mut commands);
        commands
    }

    /// The encoded stream.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing waits to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Drops the first `consumed` bytes, which the driver has taken; the rest is written next time.
    pub fn consume(&mut self, consumed: usize) {
        if consumed >= self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..consumed);
        }
    }

    /// Takes back a command that was not written: the bytes of `range`, which must hold whole
    /// commands.
    pub fn discard(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.bytes.len());
        self.bytes.drain(range.start.min(end)..end);
    }

    /// Appends another stream's commands.
    pub fn append(&mut self, other: &[u8]) {
        self.bytes.extend_from_slice(other);
    }

    #[inline]
    fn put(&mut self, word: u32, payload: &[u8]) {
        self.bytes.reserve(4 + payload.len());
        self.bytes.extend_from_slice(&word.to_ne_bytes());
        self.bytes.extend_from_slice(payload);
    }

    #[inline]
    fn put_payload(&mut self, plain: u32, sg: u32, mut data: TransactionData, payload: Payload<'_>) {
        data.data_size = payload.data.len() as u64;
        data.offsets_size = size_of_val(payload.offsets) as u64;
        data.buffer = payload.data.as_ptr() as u64;
        data.offsets = payload.offsets.as_ptr() as u64;
        match payload.buffers_size {
            None => self.put(plain, data.as_bytes()),
            Some(buffers_size) => {
                let data = TransactionDataSg { transaction_data: data, buffers_size };
                self.put(sg, data.as_bytes());
            }
        }
    }

    /// `BC_TRANSACTION` (or `_SG`): calls `target`.
    pub fn transaction(&mut self, target: Handle, code: u32, flags: TransactionFlags, payload: Payload<'_>) {
        let data = TransactionData { target: target.0.into(), code, flags: flags.0, ..Default::default() };
        self.put_payload(bc::TRANSACTION, bc::TRANSACTION_SG, data, payload);
    }

    /// `BC_REPLY` (or `_SG`): answers the call that this thread serves.
    pub fn reply(&mut self, flags: TransactionFlags, payload: Payload<'_>) {
        let data = TransactionData { flags: flags.0, ..Default::default() };
        self.put_payload(bc::REPLY, bc::REPLY_SG, data, payload);
    }

    /// `BC_FREE_BUFFER`: gives a delivered buffer back.
    pub fn free_buffer(&mut self, buffer: BufferAddress) {
        self.put(bc::FREE_BUFFER, buffer.0.as_bytes());
    }

    /// `BC_INCREFS`: weak count of a handle up.
    pub fn increfs(&mut self, handle: Handle) {
        self.put(bc::INCREFS, handle.0.as_bytes());
    }

    /// `BC_ACQUIRE`: strong count of a handle up.
    pub fn acquire(&mut self, handle: Handle) {
        self.put(bc::ACQUIRE, handle.0.as_bytes());
    }

    /// `BC_RELEASE`: strong count of a handle down.
    pub fn release(&mut self, handle: Handle) {
        self.put(bc::RELEASE, handle.0.as_bytes());
    }

    /// `BC_DECREFS`: weak count of a handle down.
    pub fn decrefs(&mut self, handle: Handle) {
        self.put(bc::DECREFS, handle.0.as_bytes());
    }

    /// `BC_INCREFS_DONE`: acknowledges `BR_INCREFS`.
    pub fn increfs_done(&mut self, ptr: NodePtr, cookie: Cookie) {
        self.put(bc::INCREFS_DONE, PtrCookie { ptr: ptr.0, cookie: cookie.0 }.as_bytes());
    }

    /// `BC_ACQUIRE_DONE`: acknowledges `BR_ACQUIRE`.
    pub fn acquire_done(&mut self, ptr: NodePtr, cookie: Cookie) {
        self.put(bc::ACQUIRE_DONE, PtrCookie { ptr: ptr.0, cookie: cookie.0 }.as_bytes());
    }

    /// `BC_REGISTER_LOOPER`: a thread that the driver asked for joins the pool.
    pub fn register_looper(&mut self) {
        self.put(bc::REGISTER_LOOPER, &[]);
    }

    /// `BC_ENTER_LOOPER`: a thread of the process's own joins the pool.
    pub fn enter_looper(&mut self) {
        self.put(bc::ENTER_LOOPER, &[]);
    }

    /// `BC_EXIT_LOOPER`: the thread leaves the pool.
    pub fn exit_looper(&mut self) {
        self.put(bc::EXIT_LOOPER, &[]);
    }

    /// `BC_REQUEST_DEATH_NOTIFICATION`.
    pub fn request_death(&mut self, handle: Handle, cookie: Cookie) {
        self.put_registration(bc::REQUEST_DEATH_NOTIFICATION, handle, cookie);
    }

    /// `BC_CLEAR_DEATH_NOTIFICATION`.
    pub fn clear_death(&mut self, handle: Handle, cookie: Cookie) {
        self.put_registration(bc::CLEAR_DEATH_NOTIFICATION, handle, cookie);
    }

    /// `BC_DEAD_BINDER_DONE`: acknowledges `BR_DEAD_BINDER`.
    pub fn dead_binder_done(&mut self, cookie: Cookie) {
        self.put(bc::DEAD_BINDER_DONE, cookie.0.as_bytes());
    }

    /// `BC_REQUEST_FREEZE_NOTIFICATION`.
    pub fn request_freeze(&mut self, handle: Handle, cookie: Cookie) {
        self.put_registration(bc::REQUEST_FREEZE_NOTIFICATION, handle, cookie);
    }

    /// `BC_CLEAR_FREEZE_NOTIFICATION`.
    pub fn clear_freeze(&mut self, handle: Handle, cookie: Cookie) {
        self.put_registration(bc::CLEAR_FREEZE_NOTIFICATION, handle, cookie);
    }

    /// `BC_FREEZE_NOTIFICATION_DONE`: acknowledges `BR_FROZEN_BINDER`.
    pub fn freeze_done(&mut self, cookie: Cookie) {
        self.put(bc::FREEZE_NOTIFICATION_DONE, cookie.0.as_bytes());
    }

    fn put_registration(&mut self, word: u32, handle: Handle, cookie: Cookie) {
        self.put(word, HandleCookie { handle: handle.0, cookie: cookie.0 }.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::CommandWord;

    /// Walks a stream by the size field of its words, as a driver does.
    fn words(mut bytes: &[u8]) -> Vec<CommandWord> {
        let mut found = Vec::new();
        while let Some((word, rest)) = bytes.split_first_chunk::<4>() {
            let word = CommandWord(u32::from_ne_bytes(*word));
            found.push(word);
            bytes = &rest[word.payload_len()..];
        }
        found
    }

    #[test]
    fn every_command_has_the_length_its_word_declares() {
        let mut c = Commands::default();
        let (h, k, n) = (Handle(7), Cookie(9), NodePtr(5));
        c.transaction(h, 1, TransactionFlags::CALL, Payload::default());
        c.transaction(h, 1, TransactionFlags::CALL, Payload { buffers_size: Some(0), ..Default::default() });
        c.reply(TransactionFlags::default(), Payload::default());
        c.reply(TransactionFlags::default(), Payload { buffers_size: Some(8), ..Default::default() });
        c.free_buffer(BufferAddress(1));
        c.increfs(h);
        c.acquire(h);
        c.release(h);
        c.decrefs(h);
        c.increfs_done(n, k);
        c.acquire_done(n, k);
        c.register_looper();
        c.enter_looper();
        c.exit_looper();
        c.request_death(h, k);
        c.clear_death(h, k);
        c.dead_binder_done(k);
        c.request_freeze(h, k);
        c.clear_freeze(h, k);
        c.freeze_done(k);
        let want = [
            bc::TRANSACTION,
            bc::TRANSACTION_SG,
            bc::REPLY,
            bc::REPLY_SG,
            bc::FREE_BUFFER,
            bc::INCREFS,
            bc::ACQUIRE,
            bc::RELEASE,
            bc::DECREFS,
            bc::INCREFS_DONE,
            bc::ACQUIRE_DONE,
            bc::REGISTER_LOOPER,
            bc::ENTER_LOOPER,
            bc::EXIT_LOOPER,
            bc::REQUEST_DEATH_NOTIFICATION,
            bc::CLEAR_DEATH_NOTIFICATION,
            bc::DEAD_BINDER_DONE,
            bc::REQUEST_FREEZE_NOTIFICATION,
            bc::CLEAR_FREEZE_NOTIFICATION,
            bc::FREEZE_NOTIFICATION_DONE,
        ];
        assert_eq!(words(c.as_bytes()), want.map(CommandWord));
    }

    #[test]
    fn consume_keeps_what_the_driver_did_not_take() {
        let mut c = Commands::default();
        c.acquire(Handle(1));
        c.release(Handle(2));
        c.consume(8);
        assert_eq!(words(c.as_bytes()), [CommandWord(bc::RELEASE)]);
        c.consume(8);
        assert!(c.is_empty());
    }
}
