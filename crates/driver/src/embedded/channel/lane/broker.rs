//! Room: what the broker does in a channel: it reads the words, writes the gate, and holds the next calls of a frozen
//! callee.
//! Not here: the lanes' states (`super`), when a channel is shut (`broker::core`).
//!
//! A gate alone freezes nobody. Its fence leaves two cases: the broker sees a call, or the call's caller sees the gate.
//! But a callee that spins finds calls by itself, and could take one of the second kind before its caller backs out.
//! So the broker itself decides of the next call in each idle lane, with the word that the callee would take it by:
//! either it gets there first, and nobody takes that call, or the callee did, and the lane is not idle. Neither of the
//! two pays for it in any call. (A callee that looks at the gate could not tell a call that the broker has seen, and
//! waits for, from one that it has not.)

use sys::sync::{Ordering, full_fence};

use super::{BACKED_OUT, FROZEN, GATE, HELD, LANES, Lanes, Memory, STATE, is_later, next, previous};

impl<M: Memory> Lanes<M> {
    /// Whether no lane has a call: none waits, is served, or has a reply that was not read. Calls that are held or
    /// were backed out are none.
    pub fn is_idle(&self) -> bool {
        (0..LANES).all(|lane| self.is_free(lane, false))
    }

    /// [`is_idle`](Self::is_idle) for good: if so, the callee takes no call before [`open`](Self::open), also none that
    /// is published already and whose caller will [back out](Self::back_out). After [`shut`](Self::shut), as often as
    /// one likes; some lanes may be held although others are not idle.
    pub fn hold(&self) -> bool {
        (0..LANES).all(|lane| self.is_free(lane, true))
    }

    /// Whether this lane has no call; `hold`: and gets none that is taken.
    fn is_free(&self, lane: u32, hold: bool) -> bool {
        // The request's word first: should its call be over, and another one begin meanwhile, that one finds the gate shut.
        // Acquire: what the caller did before is seen, in its order.
        let last = self.request_word(lane).load(Ordering::Acquire) & !STATE;
        let over = self.over(lane).load(Ordering::Acquire);
        let coming = next(over);
        let mut claim = self.claim(lane).load(Ordering::Relaxed);
        if last == over && is_later(coming, claim) {
            if !hold {
                return true;
            }
            // Guarded by loom_a_call_is_held_or_seen.
            match self.decide(lane, claim, coming | HELD) {
                Ok(_) => return true,
                Err(now) => claim = now,
            }
        }
        // A call whose caller has seen the gate, or is bound to. Its next one begins with a look at it.
        (last == over || last == coming) && (claim == coming | HELD || claim == coming | BACKED_OUT)
    }

    /// Shuts the gate for a reason ([`FROZEN`], [`CLOSED`](super::CLOSED)).
    pub fn shut(&self, bits: u32) {
        self.memory.word(GATE).fetch_or(bits, Ordering::Relaxed);
        // Pairs with the fence in `Doorbells::post`, between publishing and the look at the gate: either
        // the caller finds it shut, or `is_idle` finds the call. Guarded by loom_the_gate_or_the_caller.
        full_fence();
    }

    /// Takes a reason away. After a freeze, what was held may be taken: the callee's mark for this channel must be
    /// [posted](crate::embedded::channel::doorbell::Doorbells::post) then, since the mark of such a call may be gone.
    pub fn open(&self, bits: u32) {
        if bits & FROZEN != 0 {
            (0..LANES).for_each(|lane| self.let_go(lane));
        }
        // Release: whoever finds it open finds nothing held. Guarded by loom_a_thaw_loses_no_quiet_call.
        self.memory.word(GATE).fetch_and(!bits, Ordering::Release);
    }

    fn let_go(&self, lane: u32) {
        let held = self.claim(lane).load(Ordering::Relaxed);
        if held & STATE == HELD {
            // The only step back that a claim makes: nobody has decided of that number. Failing, its caller just did.
            let _ = self.decide(lane, held, previous(held) | BACKED_OUT);
        }
    }
}
