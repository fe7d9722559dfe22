//! A mutex for the threads of one process, with priority inheritance for real-time waiters. One word holds
//! the owner, another whether a thread may sleep.
//! Not here: words shared between processes (`sync`).
//! Facts: `futex(2)`.
//!
//! The standard mutex checks for panics at each lock and unlock (poisoning), which is measurable in the
//! embedded driver's short calls. It also has no priority inheritance: an ordinary owner that loses its CPU
//! to load would delay a real-time waiter without bound.
//!
//! Real-time threads wait in the kernel on the owner's word (`FUTEX_LOCK_PI`): the owner runs at their
//! priority, and the lock goes to the most urgent. Other threads sleep on the second word and retry: a lock
//! handed to a thread that has yet to wake up delays the running threads, and a nice cannot be inherited.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::futex::{FOREVER, WAITERS};
use crate::interrupt::ThreadId;
use crate::sched::is_realtime;
use crate::sync::{
    AtomicU32, Ordering, fence_after_exchange, full_fence, lock_pi, sleep_on, spin_loop, unlock_pi, wake_one,
};

const FREE: u32 = 0;

const NOBODY: u32 = 0;
/// Value of `sleepers`: a thread may sleep until the lock is free.
const SOMEBODY: u32 = 1;

/// Attempts to take a held lock before sleeping; owners mostly unlock soon. More than one attempt adds
/// nothing to a loom model.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 100 };

/// A mutex around a value.
///
/// # Invariants
/// The value is only accessed through a [`Held`], and at most one exists at a time: it is made when `owner`
/// changes from [`FREE`] to the number of its thread or when the kernel hands the lock to that thread; its
/// drop unlocks.
pub struct Lock<T> {
    /// The owner's thread id, with [`WAITERS`] if a thread waits in the kernel.
    owner: AtomicU32,
    /// Whether unlocking must wake a sleeper.
    sleepers: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only one of the threads that share the lock accesses the value at a time (Invariants), so the value
// moves between them, which `T: Send` allows, and is never shared.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Guard of the locked mutex; dropping it unlocks, also during a panic.
pub struct Held<'l, T> {
    lock: &'l Lock<T>,
    /// Makes the guard neither `Send` nor `Sync`: the kernel accepts an unlock only from the owning thread.
    _value: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    /// Makes an unlocked mutex around a value.
    pub fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(FREE), sleepers: AtomicU32::new(NOBODY), value: UnsafeCell::new(value) }
    }

    /// Locks, waiting if necessary. Deadlocks if the thread already has the lock.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        self.lock_as(ThreadId::current().number().unsigned_abs(), is_realtime)
    }

    /// [`Self::lock`] for the thread `me`; `is_realtime` tells whether that is a real-time thread.
    #[inline(always)]
    fn lock_as(&self, me: u32, is_realtime: fn() -> bool) -> Held<'_, T> {
        if !self.take(me) {
            self.wait_for_it(me, is_realtime);
        }
        Held { lock: self, _value: PhantomData }
    }

    #[inline(always)]
    fn take(&self, me: u32) -> bool {
        // Acquire: pairs with the Release in `drop`. Guarded by loom_one_at_a_time.
        self.owner.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait_for_it(&self, me: u32, is_realtime: fn() -> bool) {
        for _ in 0..LOOKS {
            let owner = self.owner.load(Ordering::Relaxed);
            if owner == FREE && self.take(me) {
                return;
            }
            if owner & WAITERS != 0 || self.sleepers.load(Ordering::Relaxed) != NOBODY {
                break;
            }
            spin_loop();
        }
        // Without kernel support, real-time threads sleep like others.
        if is_realtime() && lock_pi(&self.owner, me).is_ok() {
            return;
        }
        loop {
            // Set before each attempt: either the lock is free then, or the unlocking thread sees this.
            // Guarded by loom_who_sleeps_is_woken.
            self.sleepers.store(SOMEBODY, Ordering::Relaxed);
            full_fence();
            if self.take(me) {
                return;
            }
            // Errors are ignored: a signal leads to another attempt, like any wake-up.
            let _ = sleep_on(&self.sleepers, SOMEBODY, FOREVER);
        }
    }

    /// Unlocks in the kernel, which hands the lock to a waiter there.
    #[cold]
    fn hand_over(&self) {
        let handed = unlock_pi(&self.owner);
        assert!(
            handed.is_ok(),
            "the word of a lock holds the number of the thread that gives it back: {handed:?}"
        );
        full_fence();
    }

    /// Wakes one sleeper. The woken thread sets `sleepers` again before its next attempt, on behalf of other
    /// sleepers too.
    #[cold]
    fn wake(&self) {
        self.sleepers.store(NOBODY, Ordering::Relaxed);
        wake_one(&self.sleepers);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Held` (Invariants), and it stays borrowed as long as the reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Held<'_, T> {
    /// Unlocks while `act` runs.
    #[inline]
    pub fn unlocked<R>(&mut self, act: impl FnOnce() -> R) -> R {
        /// Locks again on drop, also during a panic.
        struct Retake<'l, T>(&'l Lock<T>);
        impl<T> Drop for Retake<'_, T> {
            #[inline]
            fn drop(&mut self) {
                // The original `Held`, borrowed until here, remains the guard.
                std::mem::forget(self.0.lock());
            }
        }
        self.lock.release();
        let _retake = Retake(self.lock);
        act()
    }
}

impl<T> Lock<T> {
    /// Unlocks. The only [`Held`] must not be used before the lock is taken again.
    #[inline]
    fn release(&self) {
        let Self { owner, sleepers, .. } = self;
        // Only this thread changes its number here; the kernel may add its flag at any moment.
        let number = owner.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`. Guarded by loom_one_at_a_time.
        if number & WAITERS == 0
            && owner.compare_exchange(number, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            fence_after_exchange();
        } else {
            self.hand_over();
        }
        if sleepers.load(Ordering::Relaxed) != NOBODY {
            self.wake();
        }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sched::{Policy, affinity, set_affinity, set_policy};

    #[test]
    fn one_at_a_time_has_it() {
        let counter = Lock::new(0);
        let count = || (0..20_000).for_each(|_| *counter.lock() += 1);
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(*counter.lock(), 80_000);
    }

    #[test]
    fn one_at_a_time_has_it_when_some_wait_in_the_kernel() {
        let counter = Lock::new(0);
        let count = |is_realtime: fn() -> bool| {
            let me = ThreadId::current().number().unsigned_abs();
            (0..20_000).for_each(|_| *counter.lock_as(me, is_realtime) += 1);
        };
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(|| count(|| true))));
            (0..2).for_each(|_| drop(scope.spawn(|| count(|| false))));
        });
        assert_eq!(*counter.lock(), 80_000);
    }

    #[test]
    fn who_sleeps_for_it_gets_it() {
        let lock = Lock::new(0);
        thread::scope(|scope| {
            let mut held = lock.lock();
            (0..3).for_each(|_| drop(scope.spawn(|| *lock.lock() += 1)));
            thread::sleep(Duration::from_millis(20));
            *held += 10;
        });
        assert_eq!(*lock.lock(), 13);
    }

    #[test]
    fn others_have_it_while_it_is_given_back() {
        let lock = Lock::new(0);
        let mut held = lock.lock();
        held.unlocked(|| *lock.lock() += 1);
        *held += 1;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            held.unlocked(|| {
                *lock.lock() += 1;
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err() && *held == 3);
        thread::scope(|scope| {
            let other = scope.spawn(|| *lock.lock());
            thread::sleep(Duration::from_millis(5));
            assert!(!other.is_finished(), "it was taken again");
            drop(held);
            assert_eq!(other.join().expect("no panic"), 3);
        });
    }

    #[test]
    fn a_panic_gives_it_back() {
        let lock = Lock::new(0);
        let panicked = thread::scope(|scope| {
            let panics = || {
                let _held = lock.lock();
                panic!("on purpose");
            };
            scope.spawn(panics).join().is_err()
        });
        assert!(panicked && *lock.lock() == 0);
    }

    /// Spins until `flag` is set, at most `limit_ms`; returns whether it was set.
    fn until(flag: &AtomicBool, limit_ms: u64) -> bool {
        let begun = Instant::now();
        while !flag.load(Ordering::Acquire) {
            if begun.elapsed() > Duration::from_millis(limit_ms) {
                return false;
            }
        }
        true
    }

    /// Unbounded priority inversion: the owner has lost its CPU to a thread that is less urgent than the
    /// waiter.
    #[test]
    fn whoever_has_it_runs_at_the_priority_of_a_real_time_thread_that_waits() {
        let may = thread::spawn(|| set_policy(0, Policy::Fifo(3))).join().expect("no panic");
        needs::need!(may.map_err(|error| needs::Need::Realtime.lacks(error)));
        let cpu = affinity().expect("affinity")[0];
        let become_one = |policy| {
            set_policy(0, policy).expect("it may");
            set_affinity(&[cpu]).expect("ours");
        };
        let (lock, flags) = (Lock::new(()), [const { AtomicBool::new(false) }; 4]);
        let (lock, [has_it, urgent_waits, hog_runs, has_got_it]) = (&lock, &flags);
        thread::scope(|scope| {
            scope.spawn(move || {
                become_one(Policy::Other);
                let _held = lock.lock();
                has_it.store(true, Ordering::Release);
                assert!(until(hog_runs, 10_000), "the hog takes the CPU from here");
            });
            assert!(until(has_it, 10_000));
            scope.spawn(move || {
                become_one(Policy::Fifo(2));
                urgent_waits.store(true, Ordering::Release);
                while !hog_runs.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
                drop(lock.lock());
                has_got_it.store(true, Ordering::Release);
            });
            assert!(until(urgent_waits, 10_000));
            let hog = scope.spawn(move || {
                become_one(Policy::Fifo(1));
                hog_runs.store(true, Ordering::Release);
                // Shorter than the time for which the kernel lets real-time threads starve others.
                until(has_got_it, 400)
            });
            assert!(hog.join().expect("no panic"), "the lock did not come while the hog had the CPU");
        });
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use super::*;
    use crate::sync::Watched;

    type Counter = (Lock<u32>, Watched);

    fn count((lock, watched): &Counter, me: u32, is_realtime: fn() -> bool) {
        let mut held = lock.lock_as(me, is_realtime);
        watched.write(|| *held += 1);
    }

    fn model(other: fn() -> bool) {
        loom::model(move || {
            let counter = Arc::new((Lock::new(0), Watched::default()));
            let others = Arc::clone(&counter);
            let thread = loom::thread::spawn(move || count(&others, 2, other));
            count(&counter, 1, || false);
            thread.join().expect("no panic");
            assert_eq!(*counter.0.lock_as(1, || false), 2);
        });
    }

    /// Guards both orderings: an owner sees what the previous one did, and never overlaps it. Guards the
    /// fences, too: a sleeper that nobody wakes does not end.
    #[test]
    fn loom_one_at_a_time() {
        model(|| false);
    }

    #[test]
    fn loom_one_at_a_time_with_a_real_time_thread() {
        model(|| true);
    }

    /// Guards the fence after a kernel hand-over.
    #[test]
    fn loom_who_sleeps_is_woken_by_a_hand_over() {
        loom::model(|| {
            let counter = Arc::new((Lock::new(0), Watched::default()));
            let held = counter.0.lock_as(1, || false);
            // Simulates a third thread that the kernel finds gone.
            counter.0.owner.fetch_or(WAITERS, Ordering::Relaxed);
            let other = Arc::clone(&counter);
            let thread = loom::thread::spawn(move || count(&other, 2, || false));
            drop(held);
            thread.join().expect("no panic");
        });
    }
}
