//! Room: what lets threads that sleep often sleep without an end of their own: one that looks after all.
//! Not here: the thread that does it (`process::lookout`), sleeping itself (`wait`).
//!
//! A sleeper looks again after a while, should its waker have died before it woke it. The kernel keeps a timer for
//! each such sleep: 75 ns of a hop that takes 1 us. While a lookout is on, sleepers leave that out, and it goes round
//! once in that while and wakes those that have slept since the last round: nobody who is in the middle of
//! something. It leaves when there were few sleeps since the last round, so that an idle process has none.
//!
//! It trusts words of this process only. A sleeper counts itself, says in the shared word that it sleeps, passes a full
//! fence and then asks whether a lookout is on. One that leaves says that it is off, passes a full fence and wakes
//! all who have counted themselves, again in each round until there is none. So nobody sleeps on behind its back,
//! whatever peers write.

use sys::sync::{AtomicU32, Ordering, full_fence};

use super::Memory;
use super::doorbell::{Doorbells, SLOTS};

/// Slots with a count.
const LOOKED_AFTER: u32 = if cfg!(loom) { 1 } else { SLOTS };

/// With fewer sleeps and wake-ups between two rounds, timers cost less than a thread.
const FEW: u64 = 1000;

/// One process's.
#[derive(Debug)]
pub struct Lookout {
    on: AtomicU32,
    /// Rounds that were begun.
    rounds: AtomicU32,
    /// For each slot: how often its thread fell asleep and woke, relying on it. Odd: it sleeps.
    sleeps: Box<[AtomicU32]>,
}

impl Default for Lookout {
    fn default() -> Self {
        // Not derived: loom's words have no default.
        Self {
            on: AtomicU32::new(0),
            rounds: AtomicU32::new(0),
            sleeps: (0..LOOKED_AFTER).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Lookout {
    /// It is on from here on, for one round at least.
    pub fn begin(&self) {
        self.on.store(1, Ordering::Relaxed);
    }

    #[inline]
    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }

    /// For the thread of this slot, before it announces its sleep: whether it may be looked after. If so,
    /// [`covers`](Self::covers) must follow, or [`woke`](Self::woke).
    #[inline]
    pub fn expects(&self, slot: u32) -> bool {
        let is_on = self.is_on();
        if is_on {
            self.count(slot);
        }
        is_on
    }

    /// For such a thread, having announced its sleep: whether it may sleep without an end. If so, [`woke`](Self::woke)
    /// must follow.
    #[inline]
    pub fn covers(&self, slot: u32) -> bool {
        // Behind the fence of `announce_sleep`. Guarded by loom_nobody_sleeps_behind_a_lookouts_back.
        let is_on = self.is_on();
        if !is_on {
            self.count(slot);
        }
        is_on
    }

    /// That sleep is over, or none came of it.
    #[inline]
    pub fn woke(&self, slot: u32) {
        self.count(slot);
    }

    /// Only a slot's own thread counts there.
    #[inline]
    fn count(&self, slot: u32) {
        if let Some(sleeps) = self.sleeps.get(slot as usize) {
            sleeps.store(sleeps.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// How often it went round: a sleeper whom it woke finds another number than before it announced its sleep.
    #[inline]
    pub fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Wakes everybody who has slept since the last round, of which `seen` holds the counts. If there were few sleeps
    /// since, it leaves, and wakes all. Whether it has to come back.
    pub fn go_round<M: Memory>(&self, bells: &Doorbells<M>, seen: &mut Seen) -> bool {
        let (mut moves, mut asleep) = (0, false);
        self.begin_round();
        for ((slot, sleeps), seen) in (0..).zip(&self.sleeps).zip(&mut seen.0) {
            let (now, before) = (sleeps.load(Ordering::Relaxed), std::mem::take(seen));
            *seen = now;
            moves += u64::from(now.wrapping_sub(before));
            if now == before && now % 2 == 1 {
                asleep = true;
                // One that is only about to sleep is found by the next round.
                bells.slot(slot).inspect(super::doorbell::Bell::wake);
            }
        }
        if self.is_on() && moves >= FEW {
            return true;
        }
        self.leave(bells) || asleep
    }

    /// Says that it is off and wakes all. Whether there was anybody.
    pub fn leave<M: Memory>(&self, bells: &Doorbells<M>) -> bool {
        self.on.store(0, Ordering::Relaxed);
        // Pairs with the fence in `announce_sleep`; see the room.
        full_fence();
        self.begin_round();
        let mut anybody = false;
        for (slot, sleeps) in (0..).zip(&self.sleeps) {
            if sleeps.load(Ordering::Relaxed) % 2 == 1 {
                anybody = true;
                if let Some(bell) = bells.slot(slot) {
                    // Whatever the word says: its waker may have written it, and died.
                    let _ = bell.needs_wake();
                    bell.wake();
                }
            }
        }
        anybody
    }

    fn begin_round(&self) {
        self.rounds.store(self.rounds().wrapping_add(1), Ordering::Relaxed);
    }
}

/// What a lookout saw on its last round.
#[derive(Debug)]
pub struct Seen(Box<[u32]>);

impl Default for Seen {
    fn default() -> Self {
        Self(vec![0; LOOKED_AFTER as usize].into())
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use sys::futex::FOREVER;

    use super::*;
    use crate::embedded::channel::doorbell::models::bells;

    /// Guards the fences of `leave` and `announce_sleep`. Under loom only whoever is woken goes on.
    #[test]
    fn loom_nobody_sleeps_behind_a_lookouts_back() {
        loom::model(|| {
            let (bells, lookout) = (bells(), Arc::new(Lookout::default()));
            lookout.begin();
            let (its_bells, it) = (Arc::clone(&bells), Arc::clone(&lookout));
            let leaving = loom::thread::spawn(move || it.leave(&its_bells));
            let bell = bells.slot(0).expect("inside");
            if lookout.expects(0) {
                bell.announce_sleep();
                if lookout.covers(0) {
                    bell.sleep(FOREVER).expect("no signal");
                    lookout.woke(0);
                }
            }
            leaving.join().expect("no panic");
            assert!(!lookout.expects(0) && !lookout.leave(&bells), "nobody is left");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread::{Scope, ScopedJoinHandle};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::embedded::channel::doorbell::SIZE;
    use crate::embedded::channel::heap::HeapMemory;
    use crate::embedded::channel::wait::{LOOK_AGAIN, Waiter, Woken};
    use crate::embedded::settings::Waiting;

    fn sleeper(lookout: &Arc<Lookout>) -> Waiter {
        let mut waiter = Waiter::new(Waiting::Sleep, Duration::ZERO, 2);
        waiter.rely_on(Arc::clone(lookout));
        waiter
    }

    /// No slot is used, as far as they say: a peer may write that.
    fn bells() -> Doorbells<HeapMemory> {
        Doorbells::new(HeapMemory::new(SIZE)).expect("room")
    }

    /// Sleeps in the first slot until it is not woken for work, as one whose waker was killed before it woke it.
    fn forgotten<'s>(
        scope: &'s Scope<'s, '_>,
        bells: &'s Doorbells<HeapMemory>,
        lookout: &'s Arc<Lookout>,
    ) -> ScopedJoinHandle<'s, Option<Woken>> {
        let bell = bells.slot(0).expect("inside");
        let sleep = move || sleeper(lookout).wait(bell, None, None, || false);
        let sleeping =
            scope.spawn(move || std::iter::repeat_with(sleep).find(|woken| *woken != Woken::Ready));
        while !bell.is_sleeping() {
            std::thread::yield_now();
        }
        // One that comes before it has fallen asleep wakes it; then it falls asleep again.
        assert!(bell.ring());
        std::thread::sleep(LOOK_AGAIN / 10);
        sleeping
    }

    /// So many sleeps of the second thread, as one that has much to do.
    fn be_busy(lookout: &Lookout) {
        for _ in 0..FEW {
            assert!(lookout.expects(1) && lookout.covers(1));
            lookout.woke(1);
        }
    }

    #[test]
    fn whoever_sleeps_on_is_woken_even_if_its_waker_died_and_nobody_else_is() {
        let (bells, lookout, mut seen) = (bells(), Arc::new(Lookout::default()), Seen::default());
        lookout.begin();
        std::thread::scope(|scope| {
            let sleeping = forgotten(scope, &bells, &lookout);
            std::thread::sleep(LOOK_AGAIN + LOOK_AGAIN / 4);
            assert!(!sleeping.is_finished(), "it has no end of its own");
            be_busy(&lookout);
            assert!(lookout.go_round(&bells, &mut seen), "others are busy");
            std::thread::sleep(LOOK_AGAIN / 20);
            assert!(!sleeping.is_finished(), "it may have fallen asleep just before");
            be_busy(&lookout);
            assert!(lookout.go_round(&bells, &mut seen));
            assert_eq!(sleeping.join().expect("no panic"), Some(Woken::TimedOut));
        });
    }

    #[test]
    fn one_with_little_to_do_leaves_and_sleeps_end_by_themselves_again() {
        let bells = bells();
        let bell = bells.slot(0).expect("inside");
        let lookout = Arc::new(Lookout::default());
        lookout.begin();
        let mut seen = Seen::default();
        be_busy(&lookout);
        assert!(lookout.go_round(&bells, &mut seen) && !lookout.go_round(&bells, &mut seen));
        assert!(!lookout.expects(1));
        let began = Instant::now();
        assert_eq!(sleeper(&lookout).wait(bell, None, None, || false), Woken::TimedOut);
        assert!(began.elapsed() >= LOOK_AGAIN / 2);
    }

    #[test]
    fn one_that_leaves_wakes_all_and_comes_back_until_it_has() {
        let (bells, lookout, mut seen) = (bells(), Arc::new(Lookout::default()), Seen::default());
        lookout.begin();
        std::thread::scope(|scope| {
            let sleeping = forgotten(scope, &bells, &lookout);
            let mut rounds = 0;
            while lookout.go_round(&bells, &mut seen) {
                rounds += 1;
                assert!(rounds < 1000, "it never ends");
                std::thread::sleep(LOOK_AGAIN / 100);
            }
            assert!(rounds > 0, "it left with somebody asleep");
            assert_eq!(sleeping.join().expect("no panic"), Some(Woken::TimedOut));
        });
    }

    #[test]
    fn only_whoever_sleeps_often_asks_for_one() {
        let bells = bells();
        let bell = bells.slot(0).expect("inside");
        let mut waiter = sleeper(&Arc::new(Lookout::default()));
        let mut looks = 0;
        let began = Instant::now();
        while !waiter.wants_lookout() {
            assert!(began.elapsed() < LOOK_AGAIN * 20, "{looks} looks");
            // Is rung as it is about to sleep, over and over; each counts as a sleep.
            waiter.wait(bell, None, None, || {
                looks += 1;
                bell.awake();
                false
            });
        }
        assert!(looks > 100 && !waiter.wants_lookout(), "{looks}: not at once, and not twice");
    }
}
