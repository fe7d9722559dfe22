//! Room: what the caller does in a lane. Which of its threads has which lane is its own affair (`process`).
//! Not here: the lane's states (`super`), the other end (`callee`).

use sys::sync::{Ordering, full_fence};

use super::header::{self, REQUEST_FIXED};
use super::{
    Ahead, BACKED_OUT, BY_BROKER, CALLED, Call, Corrupt, FAILED, HELD, LANES, Lanes, Memory, Outcome, Piece,
    Place, REPLIED, REPLY, ReplyHeader, RequestHeader, STATE, Source, USED, base, is_later, next,
};
use crate::embedded::protocol::Link;

/// How often a caller tries to back out while somebody else changes the claim: far more often than the broker does.
const ATTEMPTS: u32 = 100;

impl<M: Memory> Lanes<M> {
    /// The gate's bits after [`publish`](Self::publish), for a caller who does not
    /// [`post`](crate::embedded::channel::doorbell::Doorbells::post) because its callee is watching the lane.
    pub fn gate_after_publishing(&self) -> u32 {
        // As the fence in `post`. Guarded by loom_the_gate_or_a_watched_caller.
        full_fence();
        self.gate()
    }

    /// Whether the callee has not taken the call yet. A caller who did not mark it, expecting the callee
    /// to watch the lane, must do so before it sleeps, and best soon (`Waiter::wait_or_tell`).
    pub fn is_waiting(&self, call: Call) -> bool {
        self.is_unclaimed(call.lane, call.number)
    }

    /// Publishes a call in a lane that nobody uses, best the lowest such. What must follow:
    /// [`post`](crate::embedded::channel::doorbell::Doorbells::post) at the callee, a look at the gate, waking, and, for
    /// [`CUT_FROM`](super::CUT_FROM) bytes or more, [`pour_request`](Self::pour_request).
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`] for more than [`LARGEST`](super::LARGEST) bytes or no such lane. [`Corrupt::LaneBusy`]:
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
        let before = self.over(lane).load(Ordering::Relaxed);
        if word.load(Ordering::Relaxed) & !STATE != before {
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
    #[cold]
    pub fn back_out(&self, call: Call) -> bool {
        let Call { lane, number } = call;
        let mut before = self.claim(lane).load(Ordering::Relaxed);
        // Failing, the callee has taken it, which ends this; or the broker has begun or ceased to hold it, which it does
        // once for a freeze: somebody who plays with the word shall not keep this thread busy.
        for _ in 0..ATTEMPTS {
            if !is_later(number, before) && before != number | HELD {
                return false;
            }
            match self.decide(lane, before, number | BACKED_OUT) {
                Ok(_) => {
                    self.release(call);
                    // Before this caller looks at the gate for its next call: a broker that shuts it meanwhile finds this
                    // one over, or that one finds it shut.
                    full_fence();
                    return true;
                }
                Err(now) => before = now,
            }
        }
        false
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

    /// Whether an [answer](Self::is_answered) is there with all of its bytes, so that nobody will write in the lane before its
    /// next call.
    pub fn is_answered_whole(&self, call: Call) -> bool {
        match self.poll_reply(call) {
            Ok(None) => false,
            Ok(Some(Outcome::Replied(header))) => {
                let Place { written, len, .. } = Place::reply(call.lane, call.number, header.shape.sent());
                // Acquire: pairs with the Release in `pour`.
                written
                    .is_none_or(|written| self.memory.word(written).load(Ordering::Acquire) as usize >= len)
            }
            Ok(Some(_)) | Err(_) => true,
        }
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
        self.over(call.lane).store(call.number, Ordering::Release);
    }
}
