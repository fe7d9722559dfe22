//! Waits for an event: spins or hands the CPU over where that is likely to pay, then sleeps on the thread's
//! bell.
//! Not here: the condition (a closure), the bell (`doorbell`), when spinning ([`spinning`]) and handing over
//! ([`hand_over`]) pay.
//!
//! Spinning costs nothing while CPUs are free, but delays the peer when it needs this CPU. So a thread never
//! spins at a real-time policy or with one usable CPU. If the peer was last seen on this CPU, the thread
//! hands the CPU over instead. Spins in vain become rare. The budget, a setting, is the longest spin.

mod hand_over;
mod spinning;

use std::time::{Duration, Instant};

use sys::futex::Waited;
use sys::sync::spin_loop;

use super::Memory;
use super::doorbell::Bell;
use crate::settings::Waiting;
use hand_over::HandOver;
use spinning::Spinning;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The condition holds.
    Ready,
    /// A signal arrived (`EINTR`).
    Interrupted,
    /// The deadline passed, or it is time for a check ([`Waiter::begin_check`]).
    TimedOut,
}

/// Longest time that a thread waits without a check, in case the waker was killed before it woke the sleeper, or the
/// broker is gone; the shortest is half of it. It counts across waits: a thread that signals take out of each of them
/// checks as often as one that sleeps undisturbed.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Waits between two readings of the clock by a thread that never sleeps.
const WAITS: u32 = 1024;

/// Most waits that sleep at once after spins in vain, and most without a hand-over after hand-overs in vain.
const LONGEST_SKIP: u32 = 1024;

/// Checks before the first reading of the clock: as many as fit a round trip between two CPUs.
const FIRST_LOOKS: u32 = 64;
/// Checks between two later readings.
const LOOKS: u32 = 32;

/// First step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Sleep,
    Spin,
    HandOver,
}

/// A thread's waiting strategy, with what it has learnt from earlier waits.
#[derive(Debug)]
pub struct Waiter {
    waiting: Waiting,
    realtime: bool,
    cpus: u32,
    spinning: Spinning,
    hand_over: HandOver,
    /// Latest time of the next check, on the monotonic clock; 0 before the first wait.
    look_again_ns: u64,
    /// Waits since the clock was read.
    waits: u32,
}

impl Waiter {
    /// Makes the calling thread's waiter. `budget`: the longest spin where wake-ups do not take longer.
    /// `cpus`: number of CPUs on which a peer may run.
    #[must_use]
    pub fn new(waiting: Waiting, budget: Duration, cpus: u32) -> Self {
        Self {
            waiting,
            realtime: false,
            cpus,
            spinning: Spinning::new(waiting, budget),
            hand_over: HandOver::default(),
            look_again_ns: 0,
            waits: 0,
        }
    }

    /// Notes that the thread got or lost a real-time policy.
    pub fn set_realtime(&mut self, realtime: bool) {
        self.realtime = realtime;
    }

    /// Whether a wait may begin with anything but a sleep. Only then does the thread's scheduling matter.
    #[must_use]
    pub fn ever_stays_awake(&self) -> bool {
        self.waiting != Waiting::Sleep
    }

    /// Waits until `ready`, which was false just now, or until the bell is rung; the caller checks for the
    /// reason itself. `peer`: the CPU on which the awaited thread was last seen.
    ///
    /// `ready` must check everything for which `bell` is rung, with loads that do not wait.
    pub fn wait<M: Memory>(
        &mut self,
        bell: Bell<'_, M>,
        peer: Option<u32>,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> bool,
    ) -> Woken {
        self.waits += 1;
        if self.waits >= WAITS && self.must_check() {
            return Woken::TimedOut;
        }
        let is_there = match self.first(peer, deadline) {
            First::Sleep => false,
            First::Spin => self.look(&mut ready) || self.spin(peer, deadline, &mut ready),
            First::HandOver => self.hand_over.carry_out(std::thread::yield_now, &mut ready),
        };
        if is_there {
            return Woken::Ready;
        }
        bell.announce_sleep();
        if ready() {
            bell.awake();
            return Woken::Ready;
        }
        let Some(until_ns) = self.sleep_until(deadline) else {
            bell.awake();
            return Woken::TimedOut;
        };
        let slept = bell.sleep(until_ns);
        bell.awake();
        match slept {
            Ok(Waited::Woken) => Woken::Ready,
            _ if ready() => Woken::Ready,
            // Longer than any undisturbed wait: the thread checks what is wrong.
            Ok(_) => Woken::TimedOut,
            Err(_) => Woken::Interrupted,
        }
    }

    /// Chooses the first step of the next wait. Counts the waits that sleep at once because spins were in
    /// vain.
    fn first(&mut self, peer: Option<u32>, deadline: Option<Instant>) -> First {
        if !self.ever_stays_awake() || self.realtime {
            return First::Sleep;
        }
        if shares_cpu(peer) {
            // A thread with a deadline must not give its CPU to others.
            let hands_over = deadline.is_none() && self.hand_over.is_next();
            return if hands_over { First::HandOver } else { First::Sleep };
        }
        if self.cpus >= 2 && self.spinning.is_next() {
            return First::Spin;
        }
        self.spinning.skipped();
        First::Sleep
    }

    /// Spins for a fixed number of checks, without a clock.
    fn look(&mut self, ready: &mut impl FnMut() -> bool) -> bool {
        for _ in 0..FIRST_LOOKS {
            spin_loop();
            if ready() {
                self.spinning.succeeded_at_once();
                return true;
            }
        }
        false
    }

    fn spin(
        &mut self,
        peer: Option<u32>,
        deadline: Option<Instant>,
        ready: &mut impl FnMut() -> bool,
    ) -> bool {
        let begun = Instant::now();
        let longest = self.spinning.longest();
        loop {
            for _ in 0..LOOKS {
                spin_loop();
                if ready() {
                    self.spinning.succeeded(begun.elapsed());
                    return true;
                }
            }
            let spun = begun.elapsed();
            if spun >= longest || deadline.is_some_and(|deadline| begun + spun >= deadline) {
                self.spinning.failed(longest);
                return false;
            }
            if shares_cpu(peer) {
                return false;
            }
        }
    }

    /// End of the next sleep on the monotonic clock; `None` if the deadline has passed or a check is due. One time that
    /// many sleeps share is cheaper than a new one for each sleep.
    fn sleep_until(&mut self, deadline: Option<Instant>) -> Option<u64> {
        if self.must_check() {
            return None;
        }
        let Some(deadline) = deadline else { return Some(self.look_again_ns) };
        let left = deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        (left > 0).then(|| (sys::clock::monotonic_ns() + left).min(self.look_again_ns))
    }

    /// Whether it is time for a check.
    fn must_check(&mut self) -> bool {
        self.waits = 0;
        let (now, longest) = (sys::clock::coarse_ns(), LOOK_AGAIN.as_nanos() as u64);
        if self.look_again_ns == 0 {
            self.look_again_ns = now + longest;
        }
        self.look_again_ns < now + longest / 2
    }

    /// Whether it is time for a check, which the caller makes then: the next one is due after [`LOOK_AGAIN`].
    pub fn begin_check(&mut self) -> bool {
        let is_due = self.must_check();
        if is_due {
            self.look_again_ns = sys::clock::coarse_ns() + LOOK_AGAIN.as_nanos() as u64;
        }
        is_due
    }
}

fn shares_cpu(peer: Option<u32>) -> bool {
    peer.is_some_and(|peer| peer == sys::sched::current_cpu())
}

#[cfg(all(test, not(loom)))]
mod tests;
