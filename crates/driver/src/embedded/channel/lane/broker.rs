//! Room: what the broker does in a channel: it reads the words and writes the gate.
//! Not here: the lanes' states (`super`), when a channel is shut (`broker::core`).

use sys::sync::{Ordering, full_fence};

use super::{GATE, LANES, Lanes, Memory, STATE};

impl<M: Memory> Lanes<M> {
    /// Whether no lane has a call: none waits, is served, or has a reply that was not read. After
    /// [`shut`](Self::shut) no other can begin, save one that will back out, or that a callee takes before it does.
    pub fn is_idle(&self) -> bool {
        // The request's word first: should its call be over, and another one begin meanwhile, that one finds the gate shut.
        // Acquire: what the caller did before is seen, in its order.
        let last = |lane| self.request_word(lane).load(Ordering::Acquire) & !STATE;
        (0..LANES).all(|lane| last(lane) == self.over(lane).load(Ordering::Acquire))
    }

    /// Shuts the gate for a reason ([`FROZEN`](super::FROZEN), [`CLOSED`](super::CLOSED)).
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
