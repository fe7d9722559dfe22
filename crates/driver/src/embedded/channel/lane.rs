//! Room: calls from one process to another through shared memory that no third one touches.
//!
//! - `caller`, `callee`, `broker`: what each of them does. - [`header`]: what a call and a reply carry beside their bytes.
//! - [`shape`]: the parts of a payload. - `place`: where it lies.
//! - [`pour`]: large payloads, copied by both sides at the same time.
//!
//! Not here: waking (`doorbell`), which handle leads to which channel (`process`).
//!
//! Layout: a line with the gate (u32), the reason for which a side closed the channel (u32) and the
//! number of lanes that the caller has used (u32); from 128, 16 lanes of 10 x 128 bytes; from 24 KiB,
//! 64 areas of 128 KiB for large payloads, of which only what is touched costs memory. A lane is
//! - 512 bytes of request, first the request's word;
//! - 512 bytes of reply, first the reply's word;
//! - the caller's own 128 bytes: the `written` counts of large requests, then the word `over`;
//! - the callee's own 128 bytes: the `written` counts of large replies, then the word `claim`.
//!
//! A word holds a state in its low two bits and above them the number of the call, so that nobody
//! takes an old one for a new one. A call begins with the request's word (CALLED), which only the caller writes.
//! Whoever first gets its number into `claim`, by compare-and-swap, decides what comes of it: TAKEN (callee) or
//! BACKED_OUT (caller). It ends with the reply's word, which only the callee writes, and then with `over`, of which the
//! caller knows, and the broker. The broker reads the words and writes the gate; and where it finds a lane idle as it
//! freezes the callee, it puts the number of the next call into `claim` (HELD) until the thaw. Its caller may have
//! published it a moment later and not looked at the gate yet, and a callee that looks for calls would serve it.
//!
//! So each line but the gate's is nearly always written by one side: two CPUs that spin exchange the line of the
//! request and that of the reply, once each, and nothing else. With one word for all steps of a call (as it was) its line
//! went to and fro four times, and either side waited for it twice more.

mod broker;
mod callee;
mod caller;
pub mod header;
mod place;
pub mod pour;
pub mod shape;

use sys::fixed_memory::FixedMemory;
use sys::sync::{AtomicU32, Ordering};

use super::{Corrupt, Memory, holds};
pub use callee::Called;
pub use header::{ReplyHeader, RequestHeader};
use place::Place;
pub use place::SIZE;
pub use pour::{Ahead, CUT_FROM, Piece};
pub(in crate::embedded) use shape::behind_head;
pub use shape::{Shape, Source};

/// Calls that may be under way in a channel.
pub const LANES: u32 = 16;

/// Most bytes of a request's or reply's payload; larger ones go through the broker.
pub const LARGEST: usize = 128 << 10;

/// Gate: the callee is frozen.
pub const FROZEN: u32 = 1;
/// Gate: the channel is of no use any more.
pub const CLOSED: u32 = 2;

const GATE: usize = 0;
const REASON: usize = 4;
const USED: usize = 8;
const FIRST: usize = 128;
const REPLY: usize = 512;
/// Number of the last call that is over.
const OVER: usize = 1024 + 8;
const CLAIM: usize = 1152 + 8;
const STRIDE: usize = 1280;

/// Where it lies.
pub type LaneMemory = FixedMemory<SIZE>;

const STATE: u32 = 3;
// State of a request's word; 0 if it had no call yet.
const CALLED: u32 = 1;
// States of a claim.
const TAKEN: u32 = 1;
const BACKED_OUT: u32 = 2;
// By the broker: the callee is frozen. Nobody takes the call, and its caller may still back out.
const HELD: u32 = 3;
// States of a reply's word.
const REPLIED: u32 = 1;
const BY_BROKER: u32 = 2;
const FAILED: u32 = 3;

/// A call that the caller has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its lane.
    pub lane: u32,
    number: u32,
}

/// A call that the callee has taken.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Its lane.
    pub lane: u32,
    number: u32,
    /// What it says, checked.
    pub header: RequestHeader,
}

impl Request {
    /// What is needed for answering.
    #[must_use]
    #[inline]
    pub fn taken(&self) -> Taken {
        Taken { lane: self.lane, number: self.number }
    }

    #[inline]
    fn place(&self) -> Place {
        Place::request(self.lane, self.number, self.header.len(), self.header.shape.sent())
    }
}

/// A call that the callee has taken and not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its lane.
    pub lane: u32,
    number: u32,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply; its bytes are to be fetched with [`Lanes::copy_reply`].
    Replied(ReplyHeader),
    /// The callee gave its reply to the broker, from where it comes or has come.
    RepliedByBroker,
    /// There is no reply, for this errno of the callee's.
    Failed(i32),
}

/// The memory of a channel, seen from any side.
#[derive(Debug)]
pub struct Lanes<M> {
    memory: M,
    /// The lane to look at first for calls, so that no caller is passed over for ever. Private.
    next: AtomicU32,
    /// Bytes of the last payload that this side sent, if it was poured: the next one is expected to be as long. Private,
    /// and only a hint, so loom need not try every order of it.
    poured: std::sync::atomic::AtomicU32,
}

/// For every side.
impl<M: Memory> Lanes<M> {
    /// In memory that is all 0 at first.
    ///
    /// # Errors
    /// [`Corrupt::TooSmall`].
    pub fn new(memory: M) -> Result<Self, Corrupt> {
        holds(&memory, SIZE)?;
        Ok(Self { memory, next: AtomicU32::new(0), poured: 0.into() })
    }

    /// What it lies in.
    #[inline]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The gate's bits. A caller looks before it publishes, and again after
    /// [`post`](super::doorbell::Doorbells::post): if it is shut then, the call is to be backed out.
    #[inline]
    pub fn gate(&self) -> u32 {
        self.memory.word(GATE).load(Ordering::Acquire)
    }

    /// Closes the channel because of what the other side left in it.
    pub fn close_as(&self, reason: Corrupt) {
        self.memory.word(REASON).store(reason.code(), Ordering::Relaxed);
        self.memory.word(GATE).fetch_or(CLOSED, Ordering::Release);
    }

    /// Why a side closed the channel ([`Corrupt::code`]); 0 if none did. A hint.
    pub fn reason(&self) -> u32 {
        self.memory.word(REASON).load(Ordering::Relaxed)
    }

    #[inline]
    fn request_word(&self, lane: u32) -> &AtomicU32 {
        self.memory.word(base(lane))
    }

    #[inline]
    fn reply_word(&self, lane: u32) -> &AtomicU32 {
        self.memory.word(base(lane) + REPLY)
    }

    #[inline]
    fn over(&self, lane: u32) -> &AtomicU32 {
        self.memory.word(base(lane) + OVER)
    }

    #[inline]
    fn claim(&self, lane: u32) -> &AtomicU32 {
        self.memory.word(base(lane) + CLAIM)
    }

    /// Decides what comes of a call, if the claim is still the one that was seen `before`; else the one that it is.
    #[inline]
    fn decide(&self, lane: u32, before: u32, claim: u32) -> Result<u32, u32> {
        // Nothing else depends on who gets it. Guarded by loom_a_call_is_taken_once_or_backed_out.
        self.claim(lane).compare_exchange(before, claim, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Whether nobody has decided what comes of a call, nor holds it. A hint.
    #[inline]
    fn is_unclaimed(&self, lane: u32, number: u32) -> bool {
        is_later(number, self.claim(lane).load(Ordering::Relaxed))
    }
}

/// The number of the call behind the one of this number or word.
#[inline]
fn next(word: u32) -> u32 {
    word.wrapping_add(STATE + 1) & !STATE
}

/// The number of the call before the one of this number or word.
#[inline]
fn previous(word: u32) -> u32 {
    (word & !STATE).wrapping_sub(STATE + 1)
}

/// Whether a call comes after the one of a claim, so that somebody who stopped for long claims no old one: numbers begin
/// again after the last. Guarded by loom_a_call_that_was_backed_out_is_not_taken_later.
#[inline]
fn is_later(number: u32, claim: u32) -> bool {
    (number.wrapping_sub(claim & !STATE) as i32) > 0
}

/// `lane` is below [`LANES`].
#[inline]
fn base(lane: u32) -> usize {
    FIRST + lane as usize * STRIDE
}

#[cfg(all(test, not(loom)))]
mod hop;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
