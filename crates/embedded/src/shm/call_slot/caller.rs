//! The caller's operations on call slots.
//! Not here: the states of a call slot (`super`), the callee's operations (`callee`).

use sys::sync::{Ordering, full_fence};

use super::header::{self, REQUEST_FIXED};
use super::{
    BACKED_OUT, BY_BROKER, CALL_SLOTS, CALLED, Call, CallSlots, Corrupt, FAILED, HELD, Memory, Outcome,
    PayloadRange, REPLY, ReplyHeader, RequestHeader, STATE, Source, USED, base, is_later, next,
};
use crate::rpc::protocol::Link;

/// Most attempts to back out while the claim changes concurrently: far more than the broker's changes.
const ATTEMPTS: u32 = 100;

impl<M: Memory> CallSlots<M> {
    /// Publishes a call in an unused call slot, preferably the lowest. The caller must then
    /// [`post`](crate::shm::doorbell::Doorbells::post) at the callee, check the gate and wake a thread.
    ///
    /// # Errors
    /// [`Corrupt::SlotSize`] for more than [`LARGEST`](super::LARGEST) bytes or an invalid call slot.
    /// [`Corrupt::SlotBusy`]: another process changed the call slot.
    pub fn publish(
        &self,
        call_slot: u32,
        header: &RequestHeader,
        data: &(impl Source + ?Sized),
    ) -> Result<Call, Corrupt> {
        if call_slot >= CALL_SLOTS {
            return Err(Corrupt::SlotSize);
        }
        let shape = data.shape()?;
        let word = self.request_word(call_slot);
        let before = self.over(call_slot).load(Ordering::Relaxed);
        if word.load(Ordering::Relaxed) & !STATE != before {
            return Err(Corrupt::SlotBusy);
        }
        let used = self.memory.word(USED);
        if used.load(Ordering::Relaxed) <= call_slot {
            used.store(call_slot + 1, Ordering::Relaxed);
        }
        self.memory.put_words(base(call_slot) + 4, header.encode(shape));
        let mut len = REQUEST_FIXED;
        if let Some(lineage) = header.lineage.as_deref() {
            len = self.put_links(call_slot, lineage.links());
        }
        let number = next(before);
        self.put(PayloadRange::request(call_slot, len, shape.sent()), data);
        // Release: a callee that sees the call sees header and data. Guarded by loom_a_call_arrives_whole.
        word.store(number | CALLED, Ordering::Release);
        Ok(Call { call_slot, number })
    }

    /// Writes a call's lineage after its header; returns the length of both in bytes.
    fn put_links(&self, call_slot: u32, links: &[Link]) -> usize {
        let len = header::len_with(links.len());
        self.memory
            .copy_in(base(call_slot) + REQUEST_FIXED, &header::encode_links(links)[..len - REQUEST_FIXED]);
        len
    }

    /// Takes back a call that the callee has not taken; returns whether it did. If not, the call is being
    /// served and its reply will come.
    pub fn back_out(&self, call: Call) -> bool {
        let Call { call_slot, number } = call;
        let mut before = self.claim(call_slot).load(Ordering::Relaxed);
        // On failure the callee has taken the call, which ends this, or the broker has begun or ceased to
        // hold it, once per freeze. Bounded, so that a hostile peer cannot keep this thread busy.
        for _ in 0..ATTEMPTS {
            if !is_later(number, before) && before != number | HELD {
                return false;
            }
            match self.decide(call_slot, before, number | BACKED_OUT) {
                Ok(_) => {
                    self.release(call);
                    // Comes before this caller checks the gate for its next call: if the broker shuts the
                    // gate meanwhile, either it finds this call over, or the next call finds the gate shut.
                    full_fence();
                    return true;
                }
                Err(now) => before = now,
            }
        }
        false
    }

    /// Whether [`poll_reply`](Self::poll_reply) will return an outcome: one load.
    pub fn is_answered(&self, call: Call) -> bool {
        let word = self.reply_word(call.call_slot).load(Ordering::Acquire);
        word & !STATE == call.number && word & STATE != 0
    }

    /// The outcome of the call; `None` if it has none yet.
    ///
    /// # Errors
    /// [`Corrupt::SlotSize`]: the reply is larger than a call slot holds.
    pub fn poll_reply(&self, call: Call) -> Result<Option<Outcome>, Corrupt> {
        // Acquire: pairs with the Release in `answer`.
        let word = self.reply_word(call.call_slot).load(Ordering::Acquire);
        if word & !STATE != call.number || word & STATE == 0 {
            return Ok(None);
        }
        if word & STATE == BY_BROKER {
            return Ok(Some(Outcome::RepliedByBroker));
        }
        let words = self.memory.words(base(call.call_slot) + REPLY + 4);
        if word & STATE == FAILED {
            return Ok(Some(Outcome::Failed(ReplyHeader::decode_failure(&words).code as i32)));
        }
        Ok(Some(Outcome::Replied(ReplyHeader::decode(&words)?)))
    }

    /// Frees the call slot: the caller is done with the call and has read its reply.
    pub fn release(&self, call: Call) {
        // Release: a broker that sees the slot idle may rely on the reply having been read.
        self.over(call.call_slot).store(call.number, Ordering::Release);
    }
}
