//! The broker's operations on call slots: reads the words, writes the gate, and holds the next calls of a
//! frozen callee.
//! Not here: the states of a call slot (`super`), when a channel is shut (`broker::core`).
//!
//! A gate alone freezes no callee. Its fence leaves two cases: the broker sees a call, or the call's caller
//! sees the gate. But a callee that looks at a marked channel finds all of its calls, and could take a call of
//! the second kind before its caller backs out. So the broker itself claims the next call in each idle call slot: either it
//! claims first, and nobody takes that call, or the callee did, and the call slot is not idle. This costs
//! neither caller nor callee anything per call. (A callee that checked the gate could not tell a call that
//! the broker has seen, and waits for, from one that it has not seen.)

use sys::sync::{Ordering, full_fence};

use super::{
    BACKED_OUT, CALL_SLOTS, CallSlots, FAILED, FROZEN, GATE, HELD, Memory, STATE, is_later, next, previous,
};

impl<M: Memory> CallSlots<M> {
    /// Whether no call slot has a call: none waits, is served, or has an unread reply. Held, backed out and failed
    /// calls do not count.
    pub fn is_idle(&self) -> bool {
        (0..CALL_SLOTS).all(|call_slot| self.is_free(call_slot, false))
    }

    /// [`is_idle`](Self::is_idle), made to last: if true, the callee takes no call before
    /// [`open`](Self::open), not even a published one, whose caller will [back out](Self::back_out). Call it
    /// after [`shut`](Self::shut), any number of times; it may hold some call slots although others are not
    /// idle.
    pub fn hold(&self) -> bool {
        (0..CALL_SLOTS).all(|call_slot| self.is_free(call_slot, true))
    }

    /// Whether no published call waits to be taken: of a caller that is gone, which ends no call any more.
    pub fn is_taken(&self) -> bool {
        (0..CALL_SLOTS).all(|call_slot| {
            let last = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
            !is_later(last, self.claim(call_slot).load(Ordering::Relaxed))
        })
    }

    /// Whether this call slot has no call and, with `hold`, will get none that is taken.
    fn is_free(&self, call_slot: u32, hold: bool) -> bool {
        // The request's word is read first: if its call ends and another one begins meanwhile, that one finds
        // the gate shut. Acquire: the caller's earlier stores are seen, in its order.
        let last = self.request_word(call_slot).load(Ordering::Acquire) & !STATE;
        let over = self.over(call_slot).load(Ordering::Acquire);
        // A failed call is over, too: its caller only has to read that, and checks the gate before its next call.
        let has_failed = last != over && self.reply_word(call_slot).load(Ordering::Acquire) == last | FAILED;
        let ended = if has_failed { last } else { over };
        let coming = next(ended);
        let mut claim = self.claim(call_slot).load(Ordering::Relaxed);
        if last == ended && is_later(coming, claim) {
            if !hold {
                return true;
            }
            // Guarded by loom_a_call_is_held_or_seen.
            match self.decide(call_slot, claim, coming | HELD) {
                Ok(_) => return true,
                Err(now) => claim = now,
            }
        }
        // Also free: a slot whose caller has seen the shut gate, or is bound to see it. That caller checks the
        // gate again before its next call.
        (last == ended || last == coming) && (claim == coming | HELD || claim == coming | BACKED_OUT)
    }

    /// Shuts the gate for a reason ([`FROZEN`], [`CLOSED`](super::CLOSED)).
    pub fn shut(&self, bits: u32) {
        self.memory.word(GATE).fetch_or(bits, Ordering::Relaxed);
        // Pairs with the fence in `Doorbells::post`, between publishing and checking the gate: either the
        // caller finds the gate shut, or `is_idle` finds the call. Guarded by loom_the_gate_or_the_caller.
        full_fence();
    }

    /// Removes a reason for a shut gate. After a freeze the held calls may be taken; the broker must then
    /// [post](crate::shm::doorbell::Doorbells::post) the channel at the callee, because such a call's mark
    /// may be gone.
    pub fn open(&self, bits: u32) {
        if bits & FROZEN != 0 {
            (0..CALL_SLOTS).for_each(|call_slot| self.let_go(call_slot));
        }
        self.memory.word(GATE).fetch_and(!bits, Ordering::Relaxed);
    }

    fn let_go(&self, call_slot: u32) {
        let held = self.claim(call_slot).load(Ordering::Relaxed);
        if held & STATE == HELD {
            // The only step back of a claim: this call number is undecided. On failure its caller has just
            // decided it.
            let _ = self.decide(call_slot, held, previous(held) | BACKED_OUT);
        }
    }
}
