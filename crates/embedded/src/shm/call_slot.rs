//! Call slots: calls from one process to another through shared memory that only these two and the broker
//! map.
//!
//! - `caller`, `callee`, `gate`: the operations of the caller, the callee and the broker.
//! - [`header`]: what a call and a reply carry besides their payload.
//! - [`look`]: the calls under way, for the state files, and failed ones, for a freeze.
//! - `payload_range`: where a payload lies.
//!
//! Not here: waking (`doorbell`), the handles that lead to a channel (`client::core`).
//!
//! Layout: a line with the gate (u32), the reason for which a side closed the channel (u32) and the number of
//! call slots that the caller has used (u32); from 128, 16 call slots of 10 x 128 bytes; from 24 KiB, 32
//! ranges of 128 KiB for large payloads, which cost memory only where touched. A call slot is
//! - 512 bytes of request, first the request's word;
//! - 512 bytes of reply, first the reply's word;
//! - the caller's own 128 bytes, with the word `over`;
//! - the callee's own 128 bytes, with the words `claim` and `server`, the thread that has the call.
//!
//! A word holds a state in its low two bits and the call's number above them, so that an old call cannot be
//! taken for a new one. A call begins with the request's word (CALLED), which only the caller writes. The
//! side that first puts the call's number into `claim`, by compare-and-swap, decides its fate: TAKEN (callee)
//! or BACKED_OUT (caller). The call ends with the reply's word, which only the callee writes, and then with
//! `over`, which tells the broker that the caller is done.
//!
//! The broker reads the words and writes the gate. When it freezes the callee and finds a call slot idle or its call failed, it
//! puts the number of the next call into `claim` (HELD) until the thaw: a caller may have just published that
//! call without having seen the gate, and a callee that looks for calls would serve it.
//!
//! Each line except the gate's is nearly always written by one side: of this memory two spinning CPUs exchange the
//! request's line and the reply's line once each; the doorbell's lines are beside it. An earlier layout had one word for all steps of a
//! call: its line moved four times, and each side waited for it twice more.

mod callee;
mod caller;
mod gate;
pub mod header;
pub mod look;
mod payload_range;

use sys::fixed_memory::FixedMemory;
use sys::sync::{AtomicU32, Ordering};

use super::{Corrupt, Memory, holds};
pub use crate::payload::shape::{LARGEST, Shape, Source};
pub use callee::Called;
pub use header::{ReplyHeader, RequestHeader};
pub use payload_range::{PayloadRange, SIZE};

/// Most calls under way in a channel.
pub const CALL_SLOTS: u32 = 16;

/// Gate bit: the callee is frozen.
pub const FROZEN: u32 = 1;
/// Gate bit: the channel is closed for good.
pub const CLOSED: u32 = 2;

const GATE: usize = 0;
const REASON: usize = 4;
const USED: usize = 8;
const FIRST: usize = 128;
const REPLY: usize = 512;
/// Offset of the number of the last call that is over.
const OVER: usize = 1024;
const CLAIM: usize = 1152;
/// Offset of the word about the thread that serves the call.
const SERVER: usize = CLAIM + 4;
const STRIDE: usize = 1280;

/// Memory of a channel.
pub type SlotMemory = FixedMemory<SIZE>;

const STATE: u32 = 3;
// State of a request's word; 0 before its first call.
const CALLED: u32 = 1;
// States of a claim.
const TAKEN: u32 = 1;
const BACKED_OUT: u32 = 2;
// Set by the broker: the callee is frozen, nobody takes the call, and its caller may still back out.
const HELD: u32 = 3;
// States of a reply's word.
const REPLIED: u32 = 1;
const BY_BROKER: u32 = 2;
const FAILED: u32 = 3;

/// A call that the caller has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call's slot.
    pub call_slot: u32,
    number: u32,
}

impl Call {
    /// Where the payload of its reply is, which has `len` bytes.
    #[must_use]
    pub fn reply_range(&self, len: usize) -> PayloadRange {
        PayloadRange::reply(self.call_slot, len)
    }
}

/// A call that the callee has taken.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The call's slot.
    pub call_slot: u32,
    number: u32,
    /// The header, validated.
    pub header: RequestHeader,
}

impl Request {
    /// The part that is needed for answering.
    #[must_use]
    pub fn taken(&self) -> Taken {
        Taken { call_slot: self.call_slot, number: self.number }
    }

    /// Where its payload is.
    #[must_use]
    pub fn payload_range(&self) -> PayloadRange {
        PayloadRange::request(self.call_slot, self.header.len(), self.header.shape.sent())
    }
}

/// A call that the callee has taken and not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The call's slot.
    pub call_slot: u32,
    number: u32,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply, with its payload in [`Call::reply_range`].
    Replied(ReplyHeader),
    /// The callee sent its reply through the broker, which delivers it or has done so.
    RepliedByBroker,
    /// The callee failed the call with this errno.
    Failed(i32),
}

/// The call slots of a channel, for all sides.
#[derive(Debug)]
pub struct CallSlots<M> {
    memory: M,
    /// The call slot to check first for calls, so that no caller starves. Private.
    next: AtomicU32,
}

/// Operations of every side.
impl<M: Memory> CallSlots<M> {
    /// Opens the call slots in memory that is initially all 0.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        holds(&memory, SIZE)?;
        Ok(Self { memory, next: AtomicU32::new(0) })
    }

    /// The underlying memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The gate's bits. A caller reads them before it publishes, and again after
    /// [`post`](super::doorbell::Doorbells::post): if the gate is shut then, it must back out.
    pub fn gate(&self) -> u32 {
        self.memory.word(GATE).load(Ordering::Acquire)
    }

    /// Closes the channel because of invalid content that the other side left.
    pub fn close_as(&self, reason: Corrupt) {
        self.memory.word(REASON).store(reason.code(), Ordering::Relaxed);
        self.memory.word(GATE).fetch_or(CLOSED, Ordering::Release);
    }

    /// Reason for which a side closed the channel ([`Corrupt::code`]); 0 if none did. A hint.
    pub fn reason(&self) -> u32 {
        self.memory.word(REASON).load(Ordering::Relaxed)
    }

    fn request_word(&self, call_slot: u32) -> &AtomicU32 {
        self.memory.word(base(call_slot))
    }

    fn reply_word(&self, call_slot: u32) -> &AtomicU32 {
        self.memory.word(base(call_slot) + REPLY)
    }

    fn over(&self, call_slot: u32) -> &AtomicU32 {
        self.memory.word(base(call_slot) + OVER)
    }

    fn claim(&self, call_slot: u32) -> &AtomicU32 {
        self.memory.word(base(call_slot) + CLAIM)
    }

    /// Copies a payload into its range, before it is published.
    fn put(&self, range: PayloadRange, data: &(impl Source + ?Sized)) {
        data.parts(|at, bytes| {
            debug_assert!(at + bytes.len() <= range.len, "a part that its shape lacks");
            self.memory.copy_in(range.at + at, bytes);
        });
    }

    /// Copies a payload out of its range, to `into`, which is as long.
    #[cfg(test)]
    fn copy_out(&self, range: PayloadRange, into: &mut [u8]) {
        assert_eq!(range.len, into.len());
        self.memory.copy_out(range.at, into);
    }

    /// Changes a claim if it still has the value `before`; otherwise returns its value as the error.
    fn decide(&self, call_slot: u32, before: u32, claim: u32) -> Result<u32, u32> {
        // Relaxed: no other data depends on the winner. Guarded by loom_a_call_is_taken_once_or_backed_out.
        self.claim(call_slot).compare_exchange(before, claim, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Whether the call is neither decided nor held. A hint.
    fn is_unclaimed(&self, call_slot: u32, number: u32) -> bool {
        is_later(number, self.claim(call_slot).load(Ordering::Relaxed))
    }
}

/// Number of the call after the one with this number or word.
fn next(word: u32) -> u32 {
    word.wrapping_add(STATE + 1) & !STATE
}

/// Number of the call before the one with this number or word.
fn previous(word: u32) -> u32 {
    (word & !STATE).wrapping_sub(STATE + 1)
}

/// Whether a call comes after that of a claim. Keeps a process that was stopped for long from claiming an old
/// call; numbers wrap around. Guarded by loom_a_call_that_was_backed_out_is_not_taken_later.
fn is_later(number: u32, claim: u32) -> bool {
    (number.wrapping_sub(claim & !STATE) as i32) > 0
}

/// Offset of a call slot; `call_slot` is below [`CALL_SLOTS`].
fn base(call_slot: u32) -> usize {
    FIRST + call_slot as usize * STRIDE
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
