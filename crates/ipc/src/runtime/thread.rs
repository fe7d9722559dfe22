//! One thread's state in one process: queued commands, unread returns, nesting depth of calls.
//! Not here: the system call and acting on returns (`exchange`).
//! Facts: contract EXT-02 (a thread must say that it ends), WR-13 (what was not written stays).
//!
//! When commands are written. A thread that serves or waits will exchange with the driver anyway:
//! its commands wait for that. Any other thread writes at once what someone waits for (reference
//! counts, acknowledgements, death registrations, buffers that hold binders or files) and keeps only
//! `BC_FREE_BUFFER` of plain reply buffers for its next call, until [`KEPT_BUFFERS`] of the area are
//! kept by it and others like it. A thread that ends writes everything and takes its leave from the driver.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::codes::br;
use abi::{BufferAddress, Commands, DecodeError, Delivery, Return, ReturnWord, Returns};

use crate::outstanding::OutstandingTransactions;
use crate::runtime::Runtime;

/// Room for returns, as libbinder gives; a call and its acknowledgements need 80 (contract WR-08).
pub(crate) const READ_BYTES: usize = 256;

/// Bytes of a protocol word.
const WORD: usize = 4;

/// Share of the receiving area (1/n) that idle threads may keep in plain buffers, all together.
const KEPT_BUFFERS: u64 = 8;

/// Share of the area (1/n) that one thread may keep uncounted: what all touch costs more than it
/// saves where buffers are small.
const KEPT_UNCOUNTED: u64 = 256;

thread_local! {
    static THREADS: RefCell<Vec<Rc<ThreadState>>> = const { RefCell::new(Vec::new()) };
}

/// The returns of one read and how far they are decoded.
pub(crate) struct Input {
    pub(crate) bytes: [u8; READ_BYTES],
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl Input {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..self.len]
    }

    /// Gives up on the rest: past an error, offsets mean nothing.
    fn broken(&mut self, word: Option<ReturnWord>) -> DecodeError {
        let have = self.rest().len() - word.map_or(0, |_| WORD);
        let at = std::mem::replace(&mut self.at, self.len);
        DecodeError { at, word, have }
    }
}

/// One thread's side of one process. Written out and taken leave of when dropped, which happens at
/// the thread's end.
pub(crate) struct ThreadState {
    process: u64,
    runtime: Weak<dyn Runtime>,
    pub(crate) out: RefCell<Commands>,
    pub(crate) input: RefCell<Input>,
    /// Bytes of commands that the driver has taken so far.
    pub(crate) written: Cell<u64>,
    /// Calls being waited for or served, plus one in a looper: while not 0, an exchange will follow.
    depth: Cell<u32>,
    /// Something is queued that somebody waits for.
    urgent: Cell<bool>,
    /// Bytes of buffers whose `BC_FREE_BUFFER` is queued.
    kept: Cell<u64>,
    /// How many of them are in the process's count.
    counted: Cell<u64>,
    pub(crate) looper: Cell<bool>,
    /// Nodes that the driver has released. Dropping the last reference runs user code, which may call; a
    /// call to serve may follow the release in the same read and must be answered first.
    released: RefCell<Vec<Arc<dyn Any>>>,
    /// Transactions sent and not yet finished.
    pub(crate) outstanding: OutstandingTransactions,
}

impl ThreadState {
    fn new(process: u64, runtime: Weak<dyn Runtime>) -> Rc<Self> {
        Rc::new(Self {
            process,
            runtime,
            out: RefCell::new(Commands::with_capacity(READ_BYTES)),
            input: RefCell::new(Input { bytes: [0; READ_BYTES], at: 0, len: 0 }),
            written: Cell::new(0),
            depth: Cell::new(0),
            urgent: Cell::new(false),
            kept: Cell::new(0),
            counted: Cell::new(0),
            looper: Cell::new(false),
            released: RefCell::new(Vec::new()),
            outstanding: OutstandingTransactions::default(),
        })
    }

    /// The calling thread's state in a process. Made at first use; while the thread's local storage
    /// is being torn down, a new one that lasts as long as its use.
    pub(crate) fn current(process: u64, runtime: impl Fn() -> Weak<dyn Runtime>) -> Rc<Self> {
        let found = THREADS.try_with(|threads| {
            let mut threads = threads.borrow_mut();
            if let Some(found) = threads.iter().find(|thread| thread.process == process) {
                return found.clone();
            }
            threads.retain(|thread| thread.runtime.strong_count() > 0);
            let made = Self::new(process, runtime());
            threads.push(made.clone());
            made
        });
        found.unwrap_or_else(|_| Self::new(process, runtime()))
    }

    /// Forgets the calling thread's state in a process, so that its next use starts afresh.
    pub(crate) fn forget(process: u64) {
        // Dropped after the borrow: leaving may run code that looks here again.
        let _left = THREADS.try_with(|threads| {
            let mut threads = threads.borrow_mut();
            let at = threads.iter().position(|thread| thread.process == process)?;
            Some(threads.swap_remove(at))
        });
    }

    /// The next return of the last read that means anything, left where it is.
    pub(crate) fn peek(&self) -> Result<Option<ReturnWord>, DecodeError> {
        let mut input = self.input.borrow_mut();
        loop {
            let rest = input.rest();
            match rest.first_chunk().map(|word| ReturnWord(u32::from_ne_bytes(*word))) {
                Some(ReturnWord(br::NOOP)) => input.at += WORD,
                Some(word) => return Ok(Some(word)),
                None if rest.is_empty() => return Ok(None),
                None => return Err(input.broken(None)),
            }
        }
    }

    /// Takes a return without payload that was peeked at.
    pub(crate) fn take_word(&self) {
        self.input.borrow_mut().at += WORD;
    }

    /// Takes a transaction or reply that was peeked at.
    pub(crate) fn take_delivery(&self, word: ReturnWord) -> Result<Delivery, DecodeError> {
        let mut input = self.input.borrow_mut();
        let Some(delivery) = Delivery::decode(input.rest()) else { return Err(input.broken(Some(word))) };
        input.at += WORD + word.payload_len();
        Ok(delivery)
    }

    /// Takes any return that was peeked at.
    pub(crate) fn take(&self) -> Result<Return, DecodeError> {
        let mut input = self.input.borrow_mut();
        let mut returns = Returns::new(input.rest());
        let next = returns.next();
        let taken = returns.position();
        input.at += taken;
        next.unwrap_or(Ok(Return::Noop))
    }

    /// Queues commands that somebody waits for.
    pub(crate) fn queue(&self, put: impl FnOnce(&mut Commands)) {
        put(&mut self.out.borrow_mut());
        self.urgent.set(true);
    }

    /// Queues a transaction or reply; returns the range of the stream it takes.
    pub(crate) fn queue_payload(&self, put: impl FnOnce(&mut Commands)) -> std::ops::Range<u64> {
        let mut out = self.out.borrow_mut();
        let start = self.written.get() + out.as_bytes().len() as u64;
        put(&mut out);
        start..self.written.get() + out.as_bytes().len() as u64
    }

    /// Queues `BC_FREE_BUFFER`. Plain buffers may wait for the thread's next exchange.
    pub(crate) fn queue_free(&self, buffer: BufferAddress, bytes: u64, plain: bool) {
        self.out.borrow_mut().free_buffer(buffer);
        self.kept.set(self.kept.get().saturating_add(bytes));
        if !plain {
            self.urgent.set(true);
        }
    }

    /// Whether what is queued must not wait for the thread's next call. `kept` counts what the
    /// threads of the process keep.
    pub(crate) fn must_flush(&self, map_size: usize, kept: &AtomicU64) -> bool {
        self.is_idle() && (self.urgent.get() || self.keeps_too_much(map_size as u64, kept))
    }

    fn keeps_too_much(&self, map_size: u64, kept: &AtomicU64) -> bool {
        let own = self.kept.get();
        if own <= map_size / KEPT_UNCOUNTED {
            return false;
        }
        let more = own - self.counted.replace(own);
        kept.fetch_add(more, Ordering::Relaxed) + more > map_size / KEPT_BUFFERS
    }

    /// Notes that everything queued was written.
    pub(crate) fn all_written(&self, kept: &AtomicU64) {
        self.urgent.set(false);
        self.kept.set(0);
        if self.counted.get() != 0 {
            kept.fetch_sub(self.counted.replace(0), Ordering::Relaxed);
        }
    }

    /// Takes back a command that the driver has not taken; its payload is about to go.
    pub(crate) fn take_back(&self, range: &std::ops::Range<u64>) {
        let written = self.written.get();
        if range.start >= written {
            let range = (range.start - written) as usize..(range.end - written) as usize;
            self.out.borrow_mut().discard(range);
        }
    }

    /// Keeps a released node until [`Self::drop_released`].
    pub(crate) fn drop_later(&self, node: Arc<dyn Any>) {
        self.released.borrow_mut().push(node);
    }

    /// Drops the released nodes. Call only when every return is handled.
    pub(crate) fn drop_released(&self) {
        loop {
            let node = self.released.borrow_mut().pop();
            let Some(node) = node else { return };
            // A panic has been reported; the thread is needed for others.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(node)));
        }
    }

    /// Whether the thread is in no call and no pool.
    pub(crate) fn is_idle(&self) -> bool {
        self.depth.get() == 0
    }

    /// Notes that an exchange will follow, until the result is dropped.
    pub(crate) fn deeper(&self) -> Deeper<'_> {
        self.depth.set(self.depth.get() + 1);
        Deeper(self)
    }
}

/// See [`ThreadState::deeper`].
pub(crate) struct Deeper<'t>(&'t ThreadState);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        // A process that is gone has closed its device: nothing is owed to the driver any more.
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.leave(self);
        }
    }
}
