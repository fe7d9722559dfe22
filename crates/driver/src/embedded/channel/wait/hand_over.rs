//! Room: giving the CPU to a peer that shares it, in place of a sleep: whether that is likely to pay.
//! Not here: waiting (`super`), where the peer is (`process`).
//! Facts: `sched_yield(2)`; `yield_task_fair`, Linux 6.18: who yields goes behind all who can run.
//!
//! Two threads on one CPU that wait for each other need not sleep: whoever has nothing to do lets the other one run,
//! and finds its answer when it gets the CPU back. That is one system call in place of two, a sleep and a wake-up. It
//! goes wrong in two ways:
//! - The peer cannot run either. Then it was a system call in vain, and such become rare, as spins in vain do.
//! - Somebody else has much to do on this CPU, and keeps it for a whole slice of time: a sleeper who is woken would
//!   come before him, who has yielded comes after. So a hand-over that took long is not repeated before a hundred
//!   times as long has passed, whatever came of it: at most one part in fifty is lost that way.

use std::time::{Duration, Instant};

use sys::clock::coarse_ns;

use super::LONGEST_SKIP;

/// Longer than a crowd of pairs takes that hand over to each other, shorter than a slice of time.
const LONG: Duration = Duration::from_micros(500);

/// No slice is longer: a thread that took more was stopped.
const SLICE: Duration = Duration::from_millis(100);

/// How often a hand-over may take that long, as a part of all time.
const RARE: u32 = 100;

/// What one thread has learnt of its hand-overs.
#[derive(Debug, Default)]
pub(super) struct HandOver {
    /// Waits without one after the next in vain, or 0.
    skip: u32,
    /// Waits that are still without one.
    skipping: u32,
    /// There is none until then, by the coarse clock; 0: there may be.
    not_before_ns: u64,
    /// The coarse clock at the last one.
    seen_ns: u64,
    /// Whether that had gone on, so that the next one is measured.
    is_suspect: bool,
}

impl HandOver {
    /// Whether the next wait is to begin with one; counts those that are not.
    #[inline]
    pub(super) fn is_next(&mut self) -> bool {
        if self.skipping > 0 {
            self.skipping -= 1;
            return false;
        }
        self.not_before_ns == 0 || self.may_again()
    }

    #[cold]
    fn may_again(&mut self) -> bool {
        let may = coarse_ns() >= self.not_before_ns;
        if may {
            self.not_before_ns = 0;
        }
        may
    }

    /// Whether that is likely. A hint.
    #[inline]
    pub(super) fn is_likely(&self) -> bool {
        self.skipping == 0 && self.not_before_ns == 0
    }

    /// Hands over by `offer`; whether what is waited for is there then.
    #[inline]
    pub(super) fn carry_out(&mut self, offer: impl FnOnce(), ready: impl FnOnce() -> bool) -> bool {
        let begun = self.is_suspect.then(Instant::now);
        offer();
        // A slice of time ends when that clock goes on. It is read once each time, the exact one once for each tick.
        let now_ns = coarse_ns();
        if now_ns != self.seen_ns || begun.is_some() {
            self.suspect(now_ns, begun);
        }
        let is_there = ready();
        match is_there {
            true => self.skip /= 2,
            false => self.fail(),
        }
        is_there
    }

    #[cold]
    fn suspect(&mut self, now_ns: u64, begun: Option<Instant>) {
        self.seen_ns = now_ns;
        self.is_suspect = begun.is_none();
        let Some(took) = begun.map(|begun| begun.elapsed()) else { return };
        if took >= LONG {
            self.not_before_ns = now_ns + (took.min(SLICE) * RARE).as_nanos() as u64;
        }
    }

    #[cold]
    fn fail(&mut self) {
        self.skip = (self.skip * 2).clamp(1, LONGEST_SKIP);
        self.skipping = self.skip;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn those_in_vain_become_rare_and_success_brings_them_back() {
        let mut hand_over = HandOver::default();
        let offered =
            (0..5000).filter(|_| hand_over.is_next() && !hand_over.carry_out(|| (), || false)).count();
        assert!((5..20).contains(&offered), "{offered} of 5000");
        assert_eq!(hand_over.skip, LONGEST_SKIP);
        hand_over.skipping = 0;
        for _ in 0..11 {
            assert!(hand_over.is_next() && hand_over.carry_out(|| (), || true));
        }
        assert!(hand_over.skip == 0 && hand_over.is_likely());
    }

    #[test]
    fn those_that_take_long_are_rare_though_they_succeed() {
        const LOST: Duration = Duration::from_millis(12);
        let mut hand_over = HandOver::default();
        let mut offered = 0;
        while hand_over.is_next() {
            assert!(hand_over.carry_out(|| std::thread::sleep(LOST), || true));
            offered += 1;
            assert!(offered < 10, "nothing was learnt");
        }
        assert_eq!(offered, 2, "the first is suspected, the second is measured");
        assert!(!hand_over.is_likely());
        let stopped = Instant::now();
        while !hand_over.is_next() {
            std::thread::sleep(LOST);
        }
        // By a clock that is behind by a tick at most.
        assert!(stopped.elapsed() >= LOST * (RARE - 10), "{:?}", stopped.elapsed());
    }

    #[test]
    fn of_short_ones_one_is_measured_for_each_tick() {
        let mut hand_over = HandOver::default();
        let began = Instant::now();
        let mut measured = 0;
        while began.elapsed() < Duration::from_millis(50) {
            hand_over.not_before_ns = 0;
            measured += u128::from(hand_over.is_suspect);
            assert!(hand_over.carry_out(|| (), || true));
        }
        // The kernel's clock ticks at most once a millisecond.
        assert!((1..=began.elapsed().as_millis() + 2).contains(&measured), "{measured} measured");
    }
}
