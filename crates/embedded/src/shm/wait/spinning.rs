//! Spins for a peer on another CPU, instead of sleeping: whether that is likely to pay, and for how long.
//! Not here: checks, clocks and sleeps (`super`), peers on this CPU (`hand_over`).
//!
//! After a spin in vain the next 1, 2, 4 .. 1024 waits sleep at once; after each success, half as many.
//!
//! Two sides can spin for each other only if they look at the same time. Where a wake-up takes longer than a
//! spin, they rarely do: each spin ends just before the other side, which had to be woken, answers. Both
//! would sleep for thousands of calls until they meet by luck. So a wait with a spin in vain is measured to
//! its end. If slow wake-ups were the cause, the wait took as long as two of them, the other side's and this
//! thread's own; a spin a little longer than half of it then sees the answer come, and both sides are awake.
//! Whole spins last that long from then on, up to four times the budget.
//!
//! Other causes do no harm:
//! - The other side works for long, or needs this CPU. Then the longer spin is in vain, too, and half the
//!   wait around it is no longer than the spin itself, which no wake-up explains. The next spin is an
//!   ordinary one again, and nothing is learnt after the next 1, 2, 4 .. 64 ordinary spins in vain.
//! - Only the longer spins succeed, as may happen in a crowd. Their results do not make skipped spins more
//!   frequent, so spins in vain are as rare as without longer ones.

use std::time::Duration;

use super::LONGEST_SKIP;
use crate::settings::Waiting;

/// Budget divided by the shortest spin of an adaptive wait.
const SHORTEST: u32 = 16;

/// Slowest wake-up for which a spin may last, and the longest spin, in budgets.
const LONGEST: u32 = 4;

/// Most ordinary spins in vain after which no longer one is tried.
const LONGEST_DOUBT: u32 = 64;

/// A thread's record of its spins.
#[derive(Debug)]
pub(super) struct Spinning {
    waiting: Waiting,
    budget: Duration,
    /// Length of a whole spin: the budget, or longer where wake-ups are slow.
    whole: Duration,
    /// Smoothed length of successful spins.
    usual: Duration,
    /// Waits to skip after the next spin in vain, or 0.
    skip: u32,
    /// Waits still to skip, which sleep at once.
    skipping: u32,
    /// Ordinary spins in vain to ignore after the next longer one in vain, or 0.
    doubt: u32,
    /// Spins still to ignore.
    doubting: u32,
    /// Length of a whole spin when the last one was in vain.
    tried: Duration,
}

impl Spinning {
    pub(super) fn new(waiting: Waiting, budget: Duration) -> Self {
        Self {
            waiting,
            budget,
            whole: budget,
            usual: budget,
            skip: 0,
            skipping: 0,
            doubt: 0,
            doubting: 0,
            tried: budget,
        }
    }

    /// Whether the next wait is to begin with a spin.
    #[inline]
    pub(super) fn is_next(&self) -> bool {
        self.skipping == 0
    }

    /// Records a wait that began without a spin.
    #[inline]
    pub(super) fn skipped(&mut self) {
        self.skipping = self.skipping.saturating_sub(1);
    }

    /// Length of the next spin.
    pub(super) fn longest(&self) -> Duration {
        match self.waiting {
            Waiting::Sleep => Duration::ZERO,
            Waiting::Spin => self.whole,
            Waiting::Adaptive => self.whole.min((self.usual * 4).max(self.budget / SHORTEST)),
        }
    }

    /// Records a spin that succeeded before the clock was read.
    pub(super) fn succeeded_at_once(&mut self) {
        self.skip /= 2;
        self.usual = self.usual * 7 / 8;
    }

    /// Records a spin that succeeded after `spun`.
    pub(super) fn succeeded(&mut self, spun: Duration) {
        // Beyond the budget an ordinary spin would have been in vain: only longer ones are trusted again.
        match spun <= self.budget {
            true => self.skip /= 2,
            false => self.doubt = 0,
        }
        self.usual = (self.usual * 7 + spun) / 8;
    }

    /// Records a spin of `longest` in vain.
    pub(super) fn failed(&mut self, longest: Duration) {
        self.usual = self.budget;
        if longest < self.budget {
            // The peer may have become only a little slower: the next spin is a whole one.
            return;
        }
        self.tried = self.whole;
        if self.tried > self.budget {
            self.doubt = (self.doubt * 2).clamp(1, LONGEST_DOUBT);
            self.doubting = self.doubt;
        }
        self.whole = self.budget;
        self.skip = (self.skip * 2).clamp(1, LONGEST_SKIP);
        self.skipping = self.skip;
    }

    /// Records that the event came during the sleep after a spin of `spun` in vain, `took` after the spin
    /// began.
    pub(super) fn slept(&mut self, spun: Duration, took: Duration) {
        let wake_up = took / 2;
        let is_one =
            spun >= self.budget && wake_up > spun.max(self.tried) && wake_up <= self.budget * LONGEST;
        if is_one && self.doubting > 0 && self.tried == self.budget {
            self.doubting -= 1;
        } else if is_one {
            self.whole = (wake_up * 5 / 4).min(self.budget * LONGEST);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
