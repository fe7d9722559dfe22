//! Room: spinning for a peer on another CPU, in place of a sleep: whether that is likely to pay, and for how long.
//! Not here: looking, clocks and sleeps (`super`), peers on this CPU (`hand_over`).
//!
//! A spin that ran out without success is remembered: the next 1, 2, 4 .. 1024 waits sleep at once, half as many after
//! each success.
//!
//! Two sides can only spin for each other if they look at the same time, and where waking a thread takes longer than
//! a spin they hardly ever do: each spin ends just before the other side, which had to be woken for it, answers. Both
//! would sleep for thousands of calls, until by luck they meet. So a wait in which a spin was in vain is measured to
//! its end. It was as long as two wake-ups, the other side's and this thread's own, if that is what was wrong; then a
//! spin a little longer than half of it sees the answer come, and both sides are awake. Whole spins last that long
//! from then on, up to four times the budget.
//!
//! If something else was wrong, that does no harm:
//! - The other side is at work for long, or needs this CPU. Then the longer spin is in vain, too, and half the wait around
//!   it is no longer than it was itself: no wake-up explains that, the next is an ordinary one again, and what comes
//!   behind the next 1, 2, 4 .. 64 of those in vain is not believed.
//! - Spins succeed, but only the longer ones, as they may in a crowd. That brings none back that became rare, so
//!   whatever comes of longer ones, spins in vain are no more frequent than without them.

use std::time::Duration;

use super::LONGEST_SKIP;
use crate::embedded::settings::Waiting;

/// Shortest spin of an adaptive wait, as a part of its budget.
const SHORTEST: u32 = 16;

/// Slowest wake-up, in budgets, for which a spin may last; and the longest spin.
const LONGEST: u32 = 4;

/// Most ordinary spins in vain after which none is tried that is longer.
const LONGEST_DOUBT: u32 = 64;

/// What one thread has learnt of its spins.
#[derive(Debug)]
pub(super) struct Spinning {
    waiting: Waiting,
    budget: Duration,
    /// How long a whole spin lasts: the budget, or longer where wake-ups are slow.
    whole: Duration,
    /// How long successful spins last, smoothed.
    usual: Duration,
    /// Waits that sleep at once after the next spin in vain, or 0.
    skip: u32,
    /// Waits that still sleep at once.
    skipping: u32,
    /// Ordinary spins in vain from which nothing is learnt after the next longer one in vain, or 0.
    doubt: u32,
    /// Those from which still nothing is learnt.
    doubting: u32,
    /// How long a whole one lasted when the last one was in vain.
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

    /// Whether the next wait is to begin with one, because those before were not in vain.
    #[inline]
    pub(super) fn is_next(&self) -> bool {
        self.skipping == 0
    }

    /// A wait began without one.
    #[inline]
    pub(super) fn skipped(&mut self) {
        self.skipping = self.skipping.saturating_sub(1);
    }

    /// How long to spin this time.
    pub(super) fn longest(&self) -> Duration {
        match self.waiting {
            Waiting::Sleep => Duration::ZERO,
            Waiting::Spin => self.whole,
            Waiting::Adaptive => self.whole.min((self.usual * 4).max(self.budget / SHORTEST)),
        }
    }

    /// A spin succeeded before a clock was read.
    pub(super) fn succeeded_at_once(&mut self) {
        self.skip /= 2;
        self.usual = self.usual * 7 / 8;
    }

    /// A spin succeeded after so long.
    pub(super) fn succeeded(&mut self, spun: Duration) {
        // An ordinary one would have been in vain, but a longer one pays.
        match spun <= self.budget {
            true => self.skip /= 2,
            false => self.doubt = 0,
        }
        self.usual = (self.usual * 7 + spun) / 8;
    }

    /// A spin of `longest` was in vain.
    pub(super) fn failed(&mut self, longest: Duration) {
        self.usual = self.budget;
        if longest < self.budget {
            // The peer may have become slower by a little only: the next spin is a whole one.
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

    /// The sleep behind a spin of `spun` in vain ended with what was waited for, `took` after that spin had begun.
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
