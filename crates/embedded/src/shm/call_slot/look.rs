//! The broker's look at the calls under way, for its state files, and at those that failed.
//! Not here: whether a process is busy (`gate`).

use sys::sync::Ordering;

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

    /// The caller's thread, by its slot, of each call that failed and whose caller has not noticed: the callee failed
    /// it or, if that is gone, did not answer it.
    pub fn failed(&self, callee_is_gone: bool) -> impl Iterator<Item = u32> {
        let used = self.memory.word(USED).load(Ordering::Acquire).min(CALL_SLOTS);
        (0..used).filter_map(move |call_slot| {
            let has_failed = match self.unread_answer(call_slot)? {
                0 => callee_is_gone,
                answer => answer == FAILED,
            };
            has_failed.then(|| self.header(call_slot))?.map(|header| header.thread.slot)
        })
    }

    /// Whether a reply waits for its caller.
    pub fn has_reply(&self) -> bool {
        (0..CALL_SLOTS).any(|call_slot| self.unread_answer(call_slot) == Some(REPLIED))
    }

    /// The state of the reply to a call that is not over, 0 for no answer yet.
    fn unread_answer(&self, call_slot: u32) -> Option<u32> {
        let number = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        let reply = self.reply_word(call_slot).load(Ordering::Acquire);
        let is_over = number == self.over(call_slot).load(Ordering::Relaxed);
        (!is_over).then_some(if reply & !STATE == number { reply & STATE } else { 0 })
    }

    fn header(&self, call_slot: u32) -> Option<RequestHeader> {
        let mut header = RequestHeader::default();
        header.decode(|index| self.memory.words::<1>(base(call_slot) + 4 + index * 4)[0]).ok()?;
        Some(header)
    }

    fn look(&self, call_slot: u32) -> Option<UnderWay> {
        let number = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        let claim = self.claim(call_slot).load(Ordering::Relaxed);
        if self.unread_answer(call_slot) != Some(0) || claim == number | BACKED_OUT {
            return None;
        }
        let header = self.header(call_slot)?;
        let server = self.memory.word(base(call_slot) + SERVER).load(Ordering::Relaxed);
        let is_served = claim == number | TAKEN && server & !THREAD == above(number);
        let server = if is_served { (server & THREAD).checked_sub(1) } else { None };
        // The header of another call, if one began meanwhile.
        let now = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        (now == number).then_some(UnderWay { call_slot, number, header, server })
    }
}

/// The low bits of a call's number, in their place in the word about its server.
fn above(number: u32) -> u32 {
    (number / (STATE + 1)) << NUMBER_AT
}
