//! Hands the CPU to a peer that shares it, instead of sleeping, where that is likely to pay.
//! Not here: waiting (`super`), where the peer is (`client`).
//! Facts: `sched_yield(2)`; `yield_task_fair`, Linux 6.18: a thread that yields goes behind all runnable
//! threads.
//!
//! Two threads on one CPU that wait for each other need not sleep: an idle one lets the other run, and finds
//! its answer when it gets the CPU back. That is one system call instead of two, a sleep and a wake-up. It
//! keeps pairs that wait for each other at 0.75 to 1.2 of the floor's rate (`embedded_speed`, limit 0.55); like those that
//! sleep, they would have 0.5 to 0.7. It fails in two ways:
//! - The peer cannot run either. Then the system call was in vain; such hand-overs become rare, like spins in
//!   vain.
//! - Another thread has much to do on this CPU, and keeps it for a whole time slice: a woken sleeper would
//!   run before that thread, a thread that yielded runs after it. So after a slow hand-over none is tried for
//!   a hundred times as long, whatever its result: at most one part in fifty is lost that way.

use std::time::{Duration, Instant};

use sys::clock::coarse_ns;

use super::LONGEST_SKIP;

/// Slow hand-over: longer than a crowd of pairs takes that hand over to each other, shorter than a time
/// slice.
const LONG: Duration = Duration::from_micros(500);

/// Longest time slice: a thread that took more was stopped.
const SLICE: Duration = Duration::from_millis(100);

/// Pause after a slow hand-over, as a multiple of its length.
const RARE: u32 = 100;

/// A thread's record of its hand-overs.
#[derive(Debug, Default)]
pub(super) struct HandOver {
    /// Waits to skip after the next hand-over in vain, or 0.
    skip: u32,
    /// Waits still to skip.
    skipping: u32,
    /// Earliest time of the next hand-over, on the coarse clock; 0: any time.
    not_before_ns: u64,
    /// Coarse clock at the last hand-over.
    seen_ns: u64,
    /// Whether the coarse clock ticked during the last hand-over: the next one is measured exactly.
    is_suspect: bool,
}

impl HandOver {
    /// Whether the next wait is to begin with a hand-over; counts the waits that skip it.
    pub(super) fn is_next(&mut self) -> bool {
        if self.skipping > 0 {
            self.skipping -= 1;
            return false;
        }
        self.not_before_ns == 0 || self.may_again()
    }

    fn may_again(&mut self) -> bool {
        let may = coarse_ns() >= self.not_before_ns;
        if may {
            self.not_before_ns = 0;
        }
        may
    }

    /// Hands over by `offer`; returns whether the awaited event came.
    pub(super) fn carry_out(&mut self, offer: impl FnOnce(), ready: impl FnOnce() -> bool) -> bool {
        let begun = self.is_suspect.then(Instant::now);
        offer();
        // A time slice ends at a tick of the coarse clock. That clock is read each time, the exact one once
        // per tick.
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

    fn suspect(&mut self, now_ns: u64, begun: Option<Instant>) {
        self.seen_ns = now_ns;
        self.is_suspect = begun.is_none();
        let Some(took) = begun.map(|begun| begun.elapsed()) else { return };
        if took >= LONG {
            self.not_before_ns = now_ns + (took.min(SLICE) * RARE).as_nanos() as u64;
        }
    }

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
        assert!(hand_over.skip == 0 && hand_over.is_next());
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
        assert!(!hand_over.is_next());
        let stopped = Instant::now();
        while !hand_over.is_next() {
            std::thread::sleep(LOST);
        }
        // The coarse clock is late by at most one tick.
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
