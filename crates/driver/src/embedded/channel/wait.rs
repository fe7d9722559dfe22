//! Room: how a thread waits: it spins when that is likely to pay, or hands its CPU over, and sleeps on its bell.
//! Not here: what it waits for (a closure of its own), the bell (`doorbell`), when spinning ([`spinning`]) and when
//! handing over ([`hand_over`]) pay.
//!
//! Spinning costs nothing while CPUs are free, and ruins everything when the one waited for needs this
//! CPU. So a thread never spins at a real-time policy, with one usable CPU, or when the peer was
//! last seen on this CPU, to which it rather hands that over; and spins in vain become rare. How long one lasts at most,
//! the budget, is a setting; where waking a thread takes longer than that, up to four times as long.

mod hand_over;
mod spinning;

use std::hint::cold_path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::futex::{FOREVER, Waited};
use sys::sync::spin_loop;

use super::Memory;
use super::doorbell::Bell;
use super::lookout::Lookout;
use crate::embedded::settings::Waiting;
use hand_over::HandOver;
use spinning::Spinning;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// What was waited for is there.
    Ready,
    /// A signal came (`EINTR`).
    Interrupted,
    /// The deadline passed, or nothing came until it was time to look again ([`LOOK_AGAIN`]).
    TimedOut,
}

/// A sleeper looks again after this long at most, and half of it at least, should its waker have been killed in between;
/// one whom a lookout covers, after twice as long at most.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sleeps in half that time from which on a lookout costs less than their timers do: a thread of its own that wakes once.
const OFTEN: u32 = 20_000;

/// Most waits that sleep at once after spins in vain, and that are without a hand-over after such in vain.
const LONGEST_SKIP: u32 = 1024;

/// Looks before the clock is read for the first time: what a round trip between two CPUs takes.
const FIRST_LOOKS: u32 = 64;
/// Looks between two readings after that.
const LOOKS: u32 = 32;

/// What a wait begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Sleep,
    Spin,
    HandOver,
}

/// In place of the rounds that there were when a sleep began: a spin came before it ([`Spun`]). They are compared after
/// each sleep anyway, so whoever sleeps at once pays nothing for what whoever span has to do then.
const AFTER_SPIN: u64 = u64::MAX;

/// A spin without success, before a sleep.
#[derive(Clone, Copy, Debug, Default)]
struct Spun {
    /// When it began, and how long it lasted, if it ran out.
    in_vain: Option<(Instant, Duration)>,
    /// The rounds that there were then.
    rounds: u32,
}

/// How one thread waits, and what it has learnt.
#[derive(Debug)]
pub struct Waiter {
    waiting: Waiting,
    realtime: bool,
    cpus: u32,
    spinning: Spinning,
    spun: Spun,
    hand_over: HandOver,
    /// Whether the peer of the last wait was on this CPU.
    shares_cpu: bool,
    /// When a sleep without a deadline ends.
    look_again_ns: u64,
    /// Sleeps since that was chosen.
    sleeps: u32,
    /// They were many.
    sleeps_often: bool,
    /// Whoever may look again in its place.
    lookout: Option<Arc<Lookout>>,
}

impl Waiter {
    /// For the calling thread: how to wait, the longest spin of one wait where wake-ups do not take longer than that,
    /// on how many usable CPUs (`sys::sched::usable_cpus`).
    #[must_use]
    pub fn new(waiting: Waiting, budget: Duration, cpus: u32) -> Self {
        Self {
            waiting,
            realtime: false,
            cpus,
            spinning: Spinning::new(waiting, budget),
            spun: Spun::default(),
            hand_over: HandOver::default(),
            shares_cpu: false,
            look_again_ns: 0,
            sleeps: 0,
            sleeps_often: false,
            lookout: None,
        }
    }

    /// Tells it who may look again in its place.
    pub fn rely_on(&mut self, lookout: Arc<Lookout>) {
        self.lookout = Some(lookout);
    }

    /// Whether it slept so often lately that a lookout is worth its while; not said twice.
    pub fn wants_lookout(&mut self) -> bool {
        std::mem::take(&mut self.sleeps_often)
    }

    fn rounds(&self) -> u32 {
        self.lookout.as_deref().map_or(0, Lookout::rounds)
    }

    /// Tells it that the thread got or lost a real-time policy.
    pub fn set_realtime(&mut self, realtime: bool) {
        self.realtime = realtime;
    }

    /// Whether it ever begins with anything but a sleep, so that it matters to it how the thread is scheduled, and where its peer is.
    #[must_use]
    pub fn ever_stays_awake(&self) -> bool {
        self.waiting != Waiting::Sleep
    }

    /// Tells it that the thread may run on more or fewer CPUs than before.
    pub fn set_cpus(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// Waits until `ready`, which was false just now, or somebody rang, which whoever waits has to look
    /// into anyway. `peer` is the CPU on which whoever is waited for was last seen.
    ///
    /// `ready` must look at everything for which somebody rings `bell`, with loads that do not wait.
    pub fn wait<M: Memory>(
        &mut self,
        bell: Bell<'_, M>,
        peer: Option<u32>,
        deadline: Option<Instant>,
        ready: impl FnMut() -> bool,
    ) -> Woken {
        self.wait_or_tell(bell, peer, deadline, ready, || false, || {})
    }

    /// [`wait`](Self::wait), and calls `tell` once if that takes longer than a short spin or a hand-over: for a caller
    /// who expects its callee to look at its lane, and otherwise has to mark it and wake somebody. `meanwhile`
    /// does a little of something useful between two looks of a spin; `false` if there is nothing to do.
    pub fn wait_or_tell<M: Memory>(
        &mut self,
        bell: Bell<'_, M>,
        peer: Option<u32>,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> bool,
        mut meanwhile: impl FnMut() -> bool,
        tell: impl FnOnce(),
    ) -> Woken {
        let first = self.first(peer, deadline);
        let is_there = match first {
            First::Sleep => false,
            First::Spin => self.look(&mut ready, &mut meanwhile),
            First::HandOver => self.hand_over.carry_out(std::thread::yield_now, &mut ready),
        };
        if is_there {
            return Woken::Ready;
        }
        tell();
        let rounds = match first {
            First::Spin if self.spin(peer, deadline, &mut ready, &mut meanwhile) => return Woken::Ready,
            First::Spin => AFTER_SPIN,
            First::Sleep | First::HandOver => u64::from(self.rounds()),
        };
        let slot = bell.number();
        let lookout = self.lookout.as_deref().filter(|it| deadline.is_none() && it.expects(slot));
        bell.announce_sleep();
        if ready() {
            cold_path();
            bell.awake();
            if let Some(lookout) = lookout {
                lookout.woke(slot);
            }
            return Woken::Ready;
        }
        let slept = match lookout.filter(|it| it.covers(slot)) {
            Some(lookout) => {
                let slept = bell.sleep(FOREVER);
                lookout.woke(slot);
                slept
            }
            None => {
                let Some(until_ns) = self.sleep_until(deadline) else {
                    bell.awake();
                    return Woken::TimedOut;
                };
                bell.sleep(until_ns)
            }
        };
        bell.awake();
        if let Ok(Waited::Woken) = slept
            && rounds == u64::from(self.rounds())
        {
            return Woken::Ready;
        }
        cold_path();
        match slept {
            Ok(Waited::Woken) if rounds == AFTER_SPIN && self.spun.rounds == self.rounds() => {
                self.learn_from_sleep();
                Woken::Ready
            }
            _ if ready() => Woken::Ready,
            // Longer than anything takes that goes well: whoever waits looks what is wrong.
            Ok(_) => Woken::TimedOut,
            Err(_) => Woken::Interrupted,
        }
    }

    /// What the next wait begins with; counts those that sleep at once because others were in vain.
    fn first(&mut self, peer: Option<u32>, deadline: Option<Instant>) -> First {
        if self.waiting == Waiting::Sleep || self.realtime {
            return First::Sleep;
        }
        self.shares_cpu = shares_cpu(peer);
        if self.shares_cpu {
            // Whoever has a deadline may not be made to wait for others.
            return if deadline.is_none() && self.hand_over.is_next() {
                First::HandOver
            } else {
                First::Sleep
            };
        }
        if self.cpus >= 2 && self.spinning.is_next() {
            return First::Spin;
        }
        self.spinning.skipped();
        First::Sleep
    }

    /// Whether the next wait is likely to begin with a spin or a hand-over, and so to find what is there without
    /// being told. A hint for the peer.
    #[must_use]
    pub fn will_look(&self) -> bool {
        self.ever_stays_awake()
            && !self.realtime
            && match self.shares_cpu {
                true => self.hand_over.is_likely(),
                false => self.cpus >= 2 && self.spinning.is_next(),
            }
    }

    /// The beginning of a spin, without a clock.
    fn look(&mut self, ready: &mut impl FnMut() -> bool, meanwhile: &mut impl FnMut() -> bool) -> bool {
        for _ in 0..FIRST_LOOKS {
            if !meanwhile() {
                spin_loop();
            }
            if ready() {
                self.spinning.succeeded_at_once();
                return true;
            }
        }
        false
    }

    #[inline(never)] // who sleeps at once should not have it in its way
    fn spin(
        &mut self,
        peer: Option<u32>,
        deadline: Option<Instant>,
        ready: &mut impl FnMut() -> bool,
        meanwhile: &mut impl FnMut() -> bool,
    ) -> bool {
        let begun = Instant::now();
        let longest = self.spinning.longest();
        loop {
            for _ in 0..LOOKS {
                if !meanwhile() {
                    spin_loop();
                }
                if ready() {
                    self.spinning.succeeded(begun.elapsed());
                    return true;
                }
            }
            let spun = begun.elapsed();
            if spun >= longest || deadline.is_some_and(|deadline| begun + spun >= deadline) {
                self.spinning.failed(longest);
                self.spun = Spun { in_vain: Some((begun, spun)), rounds: self.rounds() };
                return false;
            }
            if shares_cpu(peer) {
                self.spun = Spun { in_vain: None, rounds: self.rounds() };
                return false;
            }
        }
    }

    /// Who was waited for woke this thread from the sleep behind a spin.
    #[cold]
    fn learn_from_sleep(&mut self) {
        if let Some((begun, spun)) = self.spun.in_vain {
            self.spinning.slept(spun, begun.elapsed());
        }
    }

    /// Until when to sleep at most, on the monotonic clock; `None` if the deadline has passed. One that
    /// many sleeps share costs the kernel, and this, less than one of each sleep's own.
    fn sleep_until(&mut self, deadline: Option<Instant>) -> Option<u64> {
        let longest = LOOK_AGAIN.as_nanos() as u64;
        let Some(deadline) = deadline else {
            let now = sys::clock::coarse_ns();
            self.sleeps = self.sleeps.saturating_add(1);
            if self.look_again_ns < now + longest / 2 {
                (self.look_again_ns, self.sleeps) = (now + longest, 0);
            }
            self.sleeps_often |= self.sleeps == OFTEN;
            return Some(self.look_again_ns);
        };
        let left = deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        (left > 0).then(|| sys::clock::monotonic_ns() + left.min(longest))
    }
}

fn shares_cpu(peer: Option<u32>) -> bool {
    peer.is_some_and(|peer| peer == sys::sched::current_cpu())
}

#[cfg(all(test, not(loom)))]
mod tests;
