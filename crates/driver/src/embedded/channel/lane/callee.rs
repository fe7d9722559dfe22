//! Room: what the callee does in a lane.
//! Not here: the lane's states (`super`), the other end (`caller`).

use sys::sync::Ordering;

use super::header::{self, REQUEST_FIXED, REQUEST_MORE};
use super::{
    Ahead, BY_BROKER, CALLED, Corrupt, FAILED, LANES, Lanes, Memory, Piece, Place, REPLIED, REPLY,
    ReplyHeader, Request, STATE, Shape, Source, TAKEN, Taken, USED, base, is_later, next,
};

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

impl<M: Memory> Lanes<M> {
    /// The lanes that have a call, in turn. A callee that has taken the channel's ready mark [takes](Self::take_into)
    /// each: a call that is published later is marked again, or by its caller before that sleeps.
    #[inline]
    pub fn called(&self) -> Called {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(LANES);
        let bits =
            (0..used).filter(|lane| self.waits(*lane, self.request_word(*lane).load(Ordering::Relaxed)));
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
        // Acquire: pairs with the Release in `publish`.
        let called = self.request_word(lane).load(Ordering::Acquire);
        if called & STATE != CALLED {
            return if called == 0 { Ok(false) } else { Err(Corrupt::LaneState) };
        }
        let number = called & !STATE;
        // Failing, another thread has it, the caller has backed out, or the broker holds it, which freezes this process:
        // after a thaw the channel is marked again.
        let before = self.claim(lane).load(Ordering::Relaxed);
        if !is_later(number, before) || self.decide(lane, before, number | TAKEN).is_err() {
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

    /// Whether a call waits in this lane, for a thread that watches the lane it last replied in while it spins.
    /// [`take`](Self::take) gets it.
    #[inline]
    pub fn has_call(&self, lane: u32) -> bool {
        lane < LANES && self.waits(lane, self.request_word(lane).load(Ordering::Acquire))
    }

    /// Whether that word of a lane's request is a call that nobody has taken. Also in no state that there is, which is
    /// told of whoever takes it.
    #[inline]
    fn waits(&self, lane: u32, word: u32) -> bool {
        word != 0 && self.is_unclaimed(lane, word & !STATE)
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

    /// All bytes of a request, if they are there: always of one that is not to be [poured](super::CUT_FROM).
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

    /// Answers a call; then ring its thread and, for [`CUT_FROM`](super::CUT_FROM) bytes or more,
    /// [`pour_reply`](Self::pour_reply).
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`] for more than [`LARGEST`](super::LARGEST) bytes.
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
