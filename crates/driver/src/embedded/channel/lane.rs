//! Room: calls from one process to another through shared memory that no third one touches.
//!
//! - [`header`]: what a call and a reply carry beside their bytes.
//! - [`shape`]: the parts of a payload. - `place`: where it lies.
//! - [`pour`]: large payloads, copied by both sides at the same time.
//!
//! Not here: waking (`doorbell`), which handle leads to which channel (`process`).
//!
//! Layout: a line with the gate (u32), the reason for which a side closed the channel (u32) and the
//! number of lanes that the caller has used (u32); from 128, 16 lanes of 9 x 128 bytes; from 20 KiB,
//! 64 areas of 128 KiB for large payloads, of which only what is touched costs memory. A lane is
//! - 512 bytes of request, first the request's word;
//! - 512 bytes of reply, first the reply's word;
//! - two lines for the `written` counts of large payloads.
//!
//! A word holds a state in its low two bits and above them the number of the call, so that nobody
//! takes an old one for a new one. The request's word: IDLE -> CALLED (caller) -> TAKEN (callee, by
//! compare-and-swap) -> IDLE (caller, having read the reply), or CALLED -> IDLE by compare-and-swap when
//! the caller backs out. The reply's word is written by the callee only, so that a caller who spins on
//! it disturbs nobody. The broker reads the words and writes the gate.

pub mod header;
mod place;
pub mod pour;
pub mod shape;

use sys::fixed_memory::FixedMemory;
use sys::sync::{AtomicU32, Ordering, full_fence};

use super::{Corrupt, Memory, holds};
use crate::embedded::protocol::Link;
use header::{REQUEST_FIXED, REQUEST_MORE};
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
const STRIDE: usize = 1152;

/// Where it lies.
pub type LaneMemory = FixedMemory<SIZE>;

const STATE: u32 = 3;
// States of a request's word.
const IDLE: u32 = 0;
const CALLED: u32 = 1;
const TAKEN: u32 = 2;
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

/// Lanes that have a call: [`Lanes::called`].
#[derive(Clone, Debug)]
pub struct Called {
    /// One bit for each, the lowest for the lane to begin with: behind the last come those before it.
    bits: u32,
    first: u32,
}

impl Iterator for Called {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.bits == 0 {
            return None;
        }
        let place = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some((place + self.first) % u32::BITS)
    }
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
}

/// For the caller. Which of its threads has which lane is the caller's own affair.
impl<M: Memory> Lanes<M> {
    /// The gate's bits after [`publish`](Self::publish), for a caller who does not
    /// [`post`](super::doorbell::Doorbells::post) because its callee is watching the lane.
    pub fn gate_after_publishing(&self) -> u32 {
        // As the fence in `post`. Guarded by loom_the_gate_or_a_watched_caller.
        full_fence();
        self.gate()
    }

    /// Whether the callee has not taken the call yet. A caller who did not mark it, expecting the callee
    /// to watch the lane, must do so before it sleeps, and best soon (`Waiter::wait_or_tell`).
    pub fn is_waiting(&self, call: Call) -> bool {
        self.request_word(call.lane).load(Ordering::Relaxed) == call.number | CALLED
    }

    /// Publishes a call in a lane that nobody uses, best the lowest such. What must follow:
    /// [`post`](super::doorbell::Doorbells::post) at the callee, a look at the gate, waking, and, for
    /// [`CUT_FROM`] bytes or more, [`pour_request`](Self::pour_request).
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`] for more than [`LARGEST`] bytes or no such lane. [`Corrupt::LaneBusy`]:
    /// somebody else changed the lane.
    pub fn publish(
        &self,
        lane: u32,
        header: &RequestHeader,
        data: &(impl Source + ?Sized),
    ) -> Result<Call, Corrupt> {
        if lane >= LANES {
            return Err(Corrupt::LaneSize);
        }
        let shape = data.shape()?;
        let word = self.request_word(lane);
        let before = word.load(Ordering::Relaxed);
        if before & STATE != IDLE {
            return Err(Corrupt::LaneBusy);
        }
        let used = self.memory.word(USED);
        if used.load(Ordering::Relaxed) <= lane {
            used.store(lane + 1, Ordering::Relaxed);
        }
        self.memory.put_words(base(lane) + 4, header.encode(shape));
        let mut len = REQUEST_FIXED;
        if let Some(lineage) = header.lineage.as_deref() {
            len = self.put_links(lane, lineage.links());
        }
        let number = next(before);
        self.put(&Place::request(lane, number, len, shape.sent()), data);
        // Release: header and data are seen by whoever sees the call. Guarded by loom_a_call_arrives_whole.
        word.store(number | CALLED, Ordering::Release);
        Ok(Call { lane, number })
    }

    /// Puts a call's lineage behind its header; returns the length of both.
    #[cold]
    fn put_links(&self, lane: u32, links: &[Link]) -> usize {
        let len = header::len_with(links.len());
        self.memory.copy_in(base(lane) + REQUEST_FIXED, &header::encode_links(links)[..len - REQUEST_FIXED]);
        len
    }

    /// Copies a large payload, while the callee, if it is quick, copies it out. Nothing for a small one.
    pub fn pour_request(&self, call: Call, data: &(impl Source + ?Sized)) {
        // What is poured lies apart from its header.
        self.pour(|len| Place::request(call.lane, call.number, 0, len), data);
    }

    /// Takes a call back that the callee has not taken; whether that was so. If not, it is being
    /// served and its reply will come.
    pub fn back_out(&self, call: Call) -> bool {
        let (called, idle) = (call.number | CALLED, call.number | IDLE);
        let word = self.request_word(call.lane);
        // The lane holds nothing that the other order could spoil.
        word.compare_exchange(called, idle, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether [`poll_reply`](Self::poll_reply) will find something: one load.
    #[inline]
    pub fn is_answered(&self, call: Call) -> bool {
        let word = self.reply_word(call.lane).load(Ordering::Acquire);
        word & !STATE == call.number && word & STATE != 0
    }

    /// Whether that is a reply, whose header is [`reply_header`](Self::reply_header): one load.
    #[inline]
    pub fn has_reply(&self, call: Call) -> bool {
        // Acquire: pairs with the Release in `answer`.
        self.reply_word(call.lane).load(Ordering::Acquire) == call.number | REPLIED
    }

    /// What a reply says, of which [`has_reply`](Self::has_reply) knows.
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`]: one that no lane holds.
    #[inline]
    pub fn reply_header(&self, call: Call) -> Result<ReplyHeader, Corrupt> {
        ReplyHeader::decode(&self.memory.words(base(call.lane) + REPLY + 4))
    }

    /// What came of the call, if something has.
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`]: a reply that no lane holds.
    pub fn poll_reply(&self, call: Call) -> Result<Option<Outcome>, Corrupt> {
        // Acquire: pairs with the Release in `answer`.
        let word = self.reply_word(call.lane).load(Ordering::Acquire);
        if word & !STATE != call.number || word & STATE == 0 {
            return Ok(None);
        }
        if word & STATE == BY_BROKER {
            return Ok(Some(Outcome::RepliedByBroker));
        }
        if word & STATE == FAILED {
            let words = self.memory.words(base(call.lane) + REPLY + 4);
            return Ok(Some(Outcome::Failed(ReplyHeader::decode_failure(&words).code as i32)));
        }
        Ok(Some(Outcome::Replied(self.reply_header(call)?)))
    }

    /// Copies the bytes of a reply out, to `into`, which is as long as the header says.
    ///
    /// # Errors
    /// As [`copy_request`](Self::copy_request).
    pub fn copy_reply(&self, call: Call, into: &mut [u8], gone: impl FnMut() -> bool) -> Result<(), Corrupt> {
        self.pieces_of_reply(call, into.len(), gone, |piece| {
            self.memory.copy_out(piece.from, &mut into[piece.at..piece.at + piece.len]);
        })
    }

    /// Where the `size` bytes of a reply lie that is all there; `None` for a large one.
    #[inline]
    pub fn whole_reply(&self, call: Call, size: usize) -> Option<Piece> {
        Place::reply(call.lane, call.number, size).whole()
    }

    /// [`copy_reply`](Self::copy_reply) of `size` bytes to a place of the caller's choice, piece by piece,
    /// from the channel's memory.
    ///
    /// # Errors
    /// As [`copy_request`](Self::copy_request).
    pub fn pieces_of_reply(
        &self,
        call: Call,
        size: usize,
        gone: impl FnMut() -> bool,
        copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        let place = Place::reply(call.lane, call.number, size);
        self.fetch(&place, || self.next_request(call), gone, copy)
    }

    /// Where this caller's next call in that lane is expected to put its payload.
    pub fn next_request(&self, call: Call) -> Ahead {
        Ahead::of(self, |len| Place::request(call.lane, next(call.number), 0, len))
    }

    /// The caller is done with the call, its reply read: the lane is free.
    pub fn release(&self, call: Call) {
        // Release: the broker, seeing it idle, may rely on the reply having been read.
        self.request_word(call.lane).store(call.number | IDLE, Ordering::Release);
    }
}

/// For the callee.
impl<M: Memory> Lanes<M> {
    /// The lanes that have a call, in turn. A callee that has taken the channel's ready mark [takes](Self::take_into)
    /// each: a call that is published later is marked again, or by its caller before that sleeps.
    #[inline]
    pub fn called(&self) -> Called {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(LANES);
        // Also those in no state that there is, which is told of whoever takes them.
        let bits = (0..used).filter(|lane| self.request_word(*lane).load(Ordering::Relaxed) & CALLED != 0);
        let bits = bits.fold(0_u32, |bits, lane| bits | 1 << lane);
        if bits & bits.wrapping_sub(1) == 0 {
            return Called { bits, first: 0 };
        }
        let first = self.next.load(Ordering::Relaxed) % u32::BITS;
        let bits = bits.rotate_right(first);
        self.next.store(first + bits.trailing_zeros() + 1, Ordering::Relaxed);
        Called { bits, first }
    }

    /// Takes a call of any lane, if there is one.
    ///
    /// # Errors
    /// A header that makes no sense.
    pub fn take_next(&self) -> Result<Option<Request>, Corrupt> {
        self.called().find_map(|lane| self.take(lane).transpose()).transpose()
    }

    /// Takes the call of one lane, if there is one.
    ///
    /// # Errors
    /// A header that makes no sense.
    pub fn take(&self, lane: u32) -> Result<Option<Request>, Corrupt> {
        let mut request = Request::default();
        Ok(self.take_into(lane, &mut request)?.then_some(request))
    }

    /// [`take`](Self::take) to a place of the callee's; whether there was one.
    ///
    /// # Errors
    /// A header that makes no sense. What is in that place then does not make sense either.
    #[inline]
    pub fn take_into(&self, lane: u32, request: &mut Request) -> Result<bool, Corrupt> {
        if lane >= LANES {
            return Ok(false);
        }
        let word = self.request_word(lane);
        let called = word.load(Ordering::Relaxed);
        if called & STATE != CALLED {
            return if called & STATE == STATE { Err(Corrupt::LaneState) } else { Ok(false) };
        }
        let number = called & !STATE;
        // Acquire: pairs with the Release in `publish`. Failing, another thread has it, or the caller
        // has backed out.
        if word.compare_exchange(called, number | TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Ok(false);
        }
        (request.lane, request.number) = (lane, number);
        // Word after word, each straight to its place.
        let word = |index| self.memory.words::<1>(base(lane) + 4 + index * 4)[0];
        let links = request.header.decode(word)?;
        if links > 0 {
            self.take_links(lane, links, request)?;
        }
        Ok(true)
    }

    #[inline(never)]
    fn take_links(&self, lane: u32, links: usize, request: &mut Request) -> Result<(), Corrupt> {
        let mut more = [0; REQUEST_MORE];
        self.memory
            .copy_out(base(lane) + REQUEST_FIXED, &mut more[..header::len_with(links) - REQUEST_FIXED]);
        request.header.decode_links(links, &more)
    }

    /// Whether a call waits in this lane: one load, for a thread that watches the lane it last replied
    /// in while it spins. [`take`](Self::take) gets it.
    #[inline]
    pub fn has_call(&self, lane: u32) -> bool {
        lane < LANES && self.request_word(lane).load(Ordering::Acquire) & STATE == CALLED
    }

    /// Where the reply to the next call in that lane is expected to put its payload.
    pub fn next_reply(&self, lane: u32) -> Ahead {
        let last = self.request_word(lane.min(LANES - 1)).load(Ordering::Relaxed);
        Ahead::of(self, |len| Place::reply(lane.min(LANES - 1), next(last), len))
    }

    /// Whether a call waits in any lane.
    pub fn any_called(&self) -> bool {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(LANES);
        (0..used).any(|lane| self.has_call(lane))
    }

    /// Copies the bytes of a request out, to `into`, which is as long as the header says. For a large
    /// one this copies along with the caller and waits for it; `gone` says whether to give up (asked
    /// only when the caller is slow).
    ///
    /// # Errors
    /// [`Corrupt::Stalled`]: `gone`, the channel was closed, or the caller has stopped for long.
    /// [`Corrupt::Written`]: it claims to have copied more than it announced.
    pub fn copy_request(
        &self,
        request: &Request,
        into: &mut [u8],
        gone: impl FnMut() -> bool,
    ) -> Result<(), Corrupt> {
        self.pieces_of_request(request, gone, |piece| {
            self.memory.copy_out(piece.from, &mut into[piece.at..piece.at + piece.len]);
        })
    }

    /// All bytes of a request, if they are there: always of one that is not to be [poured](CUT_FROM).
    #[inline]
    pub fn whole_request(&self, request: &Request) -> Option<Piece> {
        request.place().whole()
    }

    /// [`copy_request`](Self::copy_request) to a place of the caller's choice, piece by piece, from
    /// the channel's memory.
    ///
    /// # Errors
    /// As [`copy_request`](Self::copy_request).
    pub fn pieces_of_request(
        &self,
        request: &Request,
        gone: impl FnMut() -> bool,
        copy: impl FnMut(Piece),
    ) -> Result<(), Corrupt> {
        let Request { lane, number, .. } = request;
        let place = request.place();
        self.fetch(&place, || Ahead::of(self, |len| Place::reply(*lane, *number, len)), gone, copy)
    }

    /// Answers a call; then ring its thread and, for [`CUT_FROM`] bytes or more,
    /// [`pour_reply`](Self::pour_reply).
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`] for more than [`LARGEST`] bytes.
    pub fn reply(
        &self,
        taken: Taken,
        header: &ReplyHeader,
        data: &(impl Source + ?Sized),
    ) -> Result<(), Corrupt> {
        let shape = data.shape()?;
        let words = header.encode(shape);
        self.memory.put_words(base(taken.lane) + REPLY + 4, words);
        self.put(&Place::reply(taken.lane, taken.number, shape.sent()), data);
        self.answer(taken, REPLIED);
        Ok(())
    }

    /// Copies a large reply, while the caller copies it out. Nothing for a small one.
    pub fn pour_reply(&self, taken: Taken, data: &(impl Source + ?Sized)) {
        self.pour(|len| Place::reply(taken.lane, taken.number, len), data);
    }

    /// Answers a call that has no reply.
    pub fn fail(&self, taken: Taken, errno: i32) {
        let words = ReplyHeader { code: errno as u32, ..ReplyHeader::default() }.encode(Shape::default());
        self.memory.put_words(base(taken.lane) + REPLY + 4, words);
        self.answer(taken, FAILED);
    }

    /// The broker has the reply to this call and gives it to the caller.
    pub fn replied_by_broker(&self, taken: Taken) {
        self.answer(taken, BY_BROKER);
    }

    fn answer(&self, taken: Taken, state: u32) {
        // Release: the reply is seen by whoever sees the answer. Guarded by loom_a_call_arrives_whole.
        self.reply_word(taken.lane).store(taken.number | state, Ordering::Release);
    }
}

/// For the broker.
impl<M: Memory> Lanes<M> {
    /// Whether no lane has a call: none waits, is served, or has a reply that was not read. After
    /// [`shut`](Self::shut) no other can begin, save one that will back out.
    pub fn is_idle(&self) -> bool {
        (0..LANES).all(|lane| self.request_word(lane).load(Ordering::Acquire) & STATE == IDLE)
    }

    /// Shuts the gate for a reason ([`FROZEN`], [`CLOSED`]).
    pub fn shut(&self, bits: u32) {
        self.memory.word(GATE).fetch_or(bits, Ordering::Relaxed);
        // Pairs with the fence in `Doorbells::post`, between publishing and the look at the gate: either
        // the caller finds it shut, or `is_idle` finds the call. Guarded by loom_the_gate_or_the_caller.
        full_fence();
    }

    /// Takes a reason away.
    pub fn open(&self, bits: u32) {
        self.memory.word(GATE).fetch_and(!bits, Ordering::Release);
    }
}

/// The number of the call behind the one of this number or word.
#[inline]
fn next(word: u32) -> u32 {
    word.wrapping_add(STATE + 1) & !STATE
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
