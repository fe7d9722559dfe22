//! Spins for a peer on another CPU, instead of sleeping: whether that is likely to pay, and for how long.
//! Not here: checks, clocks and sleeps (`super`), peers on this CPU (`hand_over`).
//!
//! After a spin in vain the next 1, 2, 4 .. 1024 waits sleep at once; after each success, half as many.

use std::time::Duration;

use super::LONGEST_SKIP;
use crate::settings::Waiting;

/// Budget divided by the shortest spin of an adaptive wait.
const SHORTEST: u32 = 16;

/// A thread's record of its spins.
#[derive(Debug)]
pub(super) struct Spinning {
    waiting: Waiting,
    budget: Duration,
    /// Smoothed length of successful spins.
    usual: Duration,
    /// Waits to skip after the next spin in vain, or 0.
    skip: u32,
    /// Waits still to skip, which sleep at once.
    skipping: u32,
}

impl Spinning {
    pub(super) fn new(waiting: Waiting, budget: Duration) -> Self {
        Self { waiting, budget, usual: budget, skip: 0, skipping: 0 }
    }

    /// Whether the next wait is to begin with a spin.
    pub(super) fn is_next(&self) -> bool {
        self.skipping == 0
    }

    /// Records a wait that began without a spin.
    pub(super) fn skipped(&mut self) {
        self.skipping = self.skipping.saturating_sub(1);
    }

    /// Length of the next spin.
    pub(super) fn longest(&self) -> Duration {
        match self.waiting {
            Waiting::Sleep => Duration::ZERO,
            Waiting::Spin => self.budget,
            Waiting::Adaptive => self.budget.min((self.usual * 4).max(self.budget / SHORTEST)),
        }
    }

    /// Records a spin that succeeded before the clock was read.
    pub(super) fn succeeded_at_once(&mut self) {
        self.skip /= 2;
        self.usual = self.usual * 7 / 8;
    }

    /// Records a spin that succeeded after `spun`.
    pub(super) fn succeeded(&mut self, spun: Duration) {
        self.skip /= 2;
        self.usual = (self.usual * 7 + spun) / 8;
    }

    /// Records a spin of `longest` in vain.
    pub(super) fn failed(&mut self, longest: Duration) {
        self.usual = self.budget;
        if longest < self.budget {
            // The peer may have become only a little slower: the next spin is a whole one.
            return;
        }
        self.skip = (self.skip * 2).clamp(1, LONGEST_SKIP);
        self.skipping = self.skip;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(1);

    /// Whether a wait begins with a spin.
    fn begins(spinning: &mut Spinning) -> bool {
        let is_next = spinning.is_next();
        if !is_next {
            spinning.skipped();
        }
        is_next
    }

    #[test]
    fn adaptive_spins_follow_what_pays() {
        let mut spinning = Spinning::new(Waiting::Adaptive, BUDGET);
        assert_eq!(spinning.longest(), BUDGET);
        (0..100).for_each(|_| spinning.succeeded(BUDGET / 100));
        assert_eq!(spinning.longest(), BUDGET / SHORTEST);
        spinning.failed(BUDGET / SHORTEST);
        assert_eq!(spinning.longest(), BUDGET, "a short one in vain: next a whole one,");
        assert!(begins(&mut spinning), "at once");
        spinning.failed(BUDGET);
        assert!(!begins(&mut spinning), "a whole one in vain: then a sleep");
    }

    #[test]
    fn those_in_vain_become_rare_and_success_brings_them_back() {
        for waiting in [Waiting::Spin, Waiting::Adaptive] {
            let mut spinning = Spinning::new(waiting, BUDGET);
            for skipped in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, LONGEST_SKIP, LONGEST_SKIP] {
                assert!(begins(&mut spinning));
                spinning.failed(BUDGET);
                assert_eq!((0..skipped).filter(|_| begins(&mut spinning)).count(), 0);
            }
            (0..5).for_each(|_| spinning.succeeded(BUDGET));
            (0..6).for_each(|_| spinning.succeeded_at_once());
            assert_eq!(spinning.skip, 0);
        }
    }
}
