//! The callee's operations on call slots.
//! Not here: the states of a call slot (`super`), the caller's operations (`caller`).

use sys::sync::Ordering;

use super::header::{self, REQUEST_FIXED, REQUEST_MORE};
use super::{
    BY_BROKER, CALL_SLOTS, CALLED, CallSlots, Corrupt, FAILED, Memory, PayloadRange, REPLIED, REPLY,
    ReplyHeader, Request, STATE, Shape, Source, TAKEN, Taken, USED, base, is_later,
};

/// Iterator over the call slots that have a call: [`CallSlots::called`].
#[derive(Clone, Debug)]
pub struct Called {
    /// One bit per call slot, rotated: the lowest is the call slot to begin with.
    bits: u32,
    first: u32,
}

impl Iterator for Called {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.bits == 0 {
            return None;
        }
        let place = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some((place + self.first) % u32::BITS)
    }
}

impl<M: Memory> CallSlots<M> {
    /// The call slots that have a call, in turn. A callee that has taken the channel's ready mark
    /// [takes](Self::take_into) each one. A call published later is marked again by its
    /// caller.
    pub fn called(&self) -> Called {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(CALL_SLOTS);
        let bits = (0..used).filter(|call_slot| {
            self.waits(*call_slot, self.request_word(*call_slot).load(Ordering::Relaxed))
        });
        let bits = bits.fold(0_u32, |bits, call_slot| bits | 1 << call_slot);
        if bits & bits.wrapping_sub(1) == 0 {
            return Called { bits, first: 0 };
        }
        let first = self.next.load(Ordering::Relaxed) % u32::BITS;
        let bits = bits.rotate_right(first);
        self.next.store(first + bits.trailing_zeros() + 1, Ordering::Relaxed);
        Called { bits, first }
    }

    /// Takes a call of any call slot; `None` if there is none.
    ///
    /// # Errors
    /// The call's header is invalid.
    pub fn take_next(&self) -> Result<Option<Request>, Corrupt> {
        self.called().find_map(|call_slot| self.take(call_slot).transpose()).transpose()
    }

    /// Takes the call of one call slot; `None` if there is none.
    ///
    /// # Errors
    /// The call's header is invalid.
    pub fn take(&self, call_slot: u32) -> Result<Option<Request>, Corrupt> {
        let mut request = Request::default();
        Ok(self.take_into(call_slot, &mut request)?.then_some(request))
    }

    /// [`take`](Self::take) into `request`; returns whether there was a call.
    ///
    /// # Errors
    /// The call's header is invalid; so is the content of `request` then.
    pub fn take_into(&self, call_slot: u32, request: &mut Request) -> Result<bool, Corrupt> {
        if call_slot >= CALL_SLOTS {
            return Ok(false);
        }
        // Acquire: pairs with the Release in `publish`.
        let called = self.request_word(call_slot).load(Ordering::Acquire);
        if called & STATE != CALLED {
            return if called == 0 { Ok(false) } else { Err(Corrupt::SlotState) };
        }
        let number = called & !STATE;
        // On failure another thread has the call, the caller has backed out, or the broker holds the call,
        // which freezes this process: after a thaw the channel is marked again.
        let before = self.claim(call_slot).load(Ordering::Relaxed);
        if !is_later(number, before) || self.decide(call_slot, before, number | TAKEN).is_err() {
            return Ok(false);
        }
        (request.call_slot, request.number) = (call_slot, number);
        // Decodes each word directly to its field.
        let word = |index| self.memory.words::<1>(base(call_slot) + 4 + index * 4)[0];
        let links = request.header.decode(word)?;
        if links > 0 {
            self.take_links(call_slot, links, request)?;
        }
        Ok(true)
    }

    fn take_links(&self, call_slot: u32, links: usize, request: &mut Request) -> Result<(), Corrupt> {
        let mut more = [0; REQUEST_MORE];
        self.memory
            .copy_out(base(call_slot) + REQUEST_FIXED, &mut more[..header::len_with(links) - REQUEST_FIXED]);
        request.header.decode_links(links, &more)
    }

    /// Whether this value of a request's word is a call that nobody has taken. Also true for an invalid
    /// state, which is reported when the call is taken.
    fn waits(&self, call_slot: u32, word: u32) -> bool {
        word != 0 && self.is_unclaimed(call_slot, word & !STATE)
    }

    /// Answers a call. The callee must then ring the caller's thread.
    ///
    /// # Errors
    /// [`Corrupt::SlotSize`] for more than [`LARGEST`](super::LARGEST) bytes.
    pub fn reply(
        &self,
        taken: Taken,
        header: &ReplyHeader,
        data: &(impl Source + ?Sized),
    ) -> Result<(), Corrupt> {
        let shape = data.shape()?;
        let words = header.encode(shape);
        self.memory.put_words(base(taken.call_slot) + REPLY + 4, words);
        self.put(PayloadRange::reply(taken.call_slot, shape.sent()), data);
        self.answer(taken, REPLIED);
        Ok(())
    }

    /// Fails a call with an errno.
    pub fn fail(&self, taken: Taken, errno: i32) {
        let words = ReplyHeader { code: errno as u32, ..ReplyHeader::default() }.encode(Shape::default());
        self.memory.put_words(base(taken.call_slot) + REPLY + 4, words);
        self.answer(taken, FAILED);
    }

    /// Records that the broker has the reply to this call and will deliver it.
    pub fn replied_by_broker(&self, taken: Taken) {
        self.answer(taken, BY_BROKER);
    }

    fn answer(&self, taken: Taken, state: u32) {
        // Release: a caller that sees the answer sees the reply. Guarded by loom_a_call_arrives_whole.
        self.reply_word(taken.call_slot).store(taken.number | state, Ordering::Release);
    }
}
