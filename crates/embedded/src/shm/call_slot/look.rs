//! The broker's look at calls: at those under way for its state files, at those that ended for a freeze.
//! Not here: whether a call slot is idle, and made to stay so (`gate`).

use sys::sync::Ordering;

use crate::rpc::protocol::ThreadKey;

use super::{
    BACKED_OUT, CALL_SLOTS, CallSlots, FAILED, Memory, REPLIED, RequestHeader, SERVER, STATE, TAKEN, Taken,
    USED, base,
};

/// Low bits of the word about the serving thread: its slot and 1. Bits of the call's number are above them.
const THREAD: u32 = (1 << NUMBER_AT) - 1;
const NUMBER_AT: u32 = 11;

/// A call under way. Only hints: the two processes write the words that it is read from, at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// The call's slot.
    pub call_slot: u32,
    /// Number of the call in its slot.
    pub number: u32,
    /// The header, without the lineage.
    pub header: RequestHeader,
    /// Slot of the thread that serves the call; `None` before one has it.
    pub server: Option<u32>,
}

impl<M: Memory> CallSlots<M> {
    /// Notes which thread of the callee serves a call, by the slot of its doorbell.
    pub fn note_server(&self, taken: Taken, thread: u32) {
        let word = above(taken.number) | (thread + 1) & THREAD;
        self.memory.word(base(taken.call_slot) + SERVER).store(word, Ordering::Relaxed);
    }

    /// The calls that wait, or are served and not answered.
    pub fn under_way(&self) -> impl Iterator<Item = UnderWay> + '_ {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(CALL_SLOTS);
        (0..used).filter_map(|call_slot| self.look(call_slot))
    }

    /// The caller's thread of each call that failed while its caller has not noticed: the callee failed it, or the
    /// callee is gone and did not answer it.
    pub fn failed(&self, callee_is_gone: bool) -> impl Iterator<Item = ThreadKey> {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(CALL_SLOTS);
        (0..used).filter_map(move |call_slot| {
            let (number, answer) = self.unread_answer(call_slot)?;
            let has_failed = answer == FAILED || answer == 0 && callee_is_gone;
            has_failed.then(|| self.header(call_slot, number))?.map(|header| header.thread)
        })
    }

    /// Whether a reply waits for its caller.
    pub fn has_reply(&self) -> bool {
        let replied = |call_slot| matches!(self.unread_answer(call_slot), Some((_, REPLIED)));
        (0..CALL_SLOTS).any(replied)
    }

    /// Number of a call that is not over, and the state of the reply to it: 0 for none yet.
    fn unread_answer(&self, call_slot: u32) -> Option<(u32, u32)> {
        let number = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        let reply = self.reply_word(call_slot).load(Ordering::Acquire);
        let is_over = number == self.over(call_slot).load(Ordering::Relaxed);
        (!is_over).then_some((number, if reply & !STATE == number { reply & STATE } else { 0 }))
    }

    /// The header of the call of this number, without the lineage; `None` if another one began meanwhile.
    fn header(&self, call_slot: u32, number: u32) -> Option<RequestHeader> {
        let mut header = RequestHeader::default();
        header.decode(|index| self.memory.words::<1>(base(call_slot) + 4 + index * 4)[0]).ok()?;
        let now = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        (now == number).then_some(header)
    }

    fn look(&self, call_slot: u32) -> Option<UnderWay> {
        let (number, 0) = self.unread_answer(call_slot)? else { return None };
        let claim = self.claim(call_slot).load(Ordering::Relaxed);
        if claim == number | BACKED_OUT {
            return None;
        }
        let server = self.memory.word(base(call_slot) + SERVER).load(Ordering::Relaxed);
        let is_served = claim == number | TAKEN && server & !THREAD == above(number);
        let server = if is_served { (server & THREAD).checked_sub(1) } else { None };
        Some(UnderWay { call_slot, number, header: self.header(call_slot, number)?, server })
    }
}

/// The low bits of a call's number, in their place in the word about its server.
fn above(number: u32) -> u32 {
    (number / (STATE + 1)) << NUMBER_AT
}
