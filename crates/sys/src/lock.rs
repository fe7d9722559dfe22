//! Room: a lock around a value that threads of one process share: a word for whoever has it, and one for those who sleep.
//! Not here: words that processes share (`sync`).
//! Facts: `futex(2)`.
//!
//! Why not the standard library's: that one asks at each end whether the thread panics, and hands the answer on to
//! whoever gets the lock from whoever has it. Nobody here asks for it, and the embedded driver's calls consist of
//! so little else that it shows. And it lends no priority: an ordinary thread that has the lock and loses its CPU to load
//! would keep a real-time one waiting for as long as load likes.
//!
//! Real-time threads wait for the word of whoever has it, in the kernel, which has that thread run at their priority
//! meanwhile and hands the lock to the most urgent. All others sleep on a word of their own, and try again: a lock
//! that is handed to a thread which has yet to wake up is of no use to those who run, and there is no nice to be lent.

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
/// Somebody may sleep until the lock is free.
const SOMEBODY: u32 = 1;

/// Looks at a lock that somebody has before sleeping: who has it most often gives it back soon. In a model
/// one is all that looking can add.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 100 };

/// # Invariants
/// The value is only touched through a [`Held`], of which there is one at a time: it is made when `owner` left
/// [`FREE`] for the number of its thread, or the kernel handed the lock on to that thread, and its drop gives that up.
pub struct Lock<T> {
    /// The number of the thread that has it, with [`WAITERS`] if the kernel has somebody to hand it to.
    owner: AtomicU32,
    /// Whether whoever gives it back has to wake a sleeper.
    sleepers: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: of all threads that share it one at a time gets at the value (Invariants), so the value moves between them,
// which `T: Send` allows, and none shares it with another.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The lock, held until this is dropped. A panic meanwhile gives it back like anything else.
pub struct Held<'l, T> {
    lock: &'l Lock<T>,
    /// As the value's own: neither sent nor shared. The kernel takes the lock back from the thread that got it only.
    _value: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    /// Around a value.
    pub fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(FREE), sleepers: AtomicU32::new(NOBODY), value: UnsafeCell::new(value) }
    }

    /// Gets the lock, waiting for it if need be. A thread that has it already waits for ever.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        self.lock_as(ThreadId::current().number().unsigned_abs(), is_realtime)
    }

    /// The same for the thread of this number, which may be a real-time one.
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
        // Where the kernel has no such locks, real-time threads sleep like others.
        if is_realtime() && lock_pi(&self.owner, me).is_ok() {
            return;
        }
        loop {
            // Before each look: either the lock is free then, or whoever gives it back sees this. Guarded by
            // loom_who_sleeps_is_woken.
            self.sleepers.store(SOMEBODY, Ordering::Relaxed);
            full_fence();
            if self.take(me) {
                return;
            }
            // A signal is a reason to look again, like any other.
            let _ = sleep_on(&self.sleepers, SOMEBODY, FOREVER);
        }
    }

    /// The kernel has somebody who waits for this thread to give it back.
    #[cold]
    fn hand_over(&self) {
        let handed = unlock_pi(&self.owner);
        assert!(
            handed.is_ok(),
            "the word of a lock holds the number of the thread that gives it back: {handed:?}"
        );
        full_fence();
    }

    /// Wakes a sleeper, which says once more that it may sleep before it looks, for itself and others.
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
        // SAFETY: this is the one `Held` (Invariants), and it stays borrowed as long as the reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and it is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let Lock { owner, sleepers, .. } = self.lock;
        // The number is this thread's own, which nobody changes; the kernel may add its mark, at any moment.
        let number = owner.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`. Guarded by loom_one_at_a_time.
        if number & WAITERS == 0
            && owner.compare_exchange(number, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            fence_after_exchange();
        } else {
            self.lock.hand_over();
        }
        if sleepers.load(Ordering::Relaxed) != NOBODY {
            self.lock.wake();
        }
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

    /// Spins until then, at most for so many ms; whether it came to that.
    fn until(flag: &AtomicBool, limit_ms: u64) -> bool {
        let begun = Instant::now();
        while !flag.load(Ordering::Acquire) {
            if begun.elapsed() > Duration::from_millis(limit_ms) {
                return false;
            }
        }
        true
    }

    /// Unbounded priority inversion: the lock's holder has lost its CPU to somebody less urgent than the thread that
    /// waits for the lock.
    #[test]
    fn whoever_has_it_runs_at_the_priority_of_a_real_time_thread_that_waits() {
        let may = thread::spawn(|| set_policy(0, Policy::Fifo(3)).is_ok()).join().expect("no panic");
        if !may {
            return println!("SKIP: this needs CAP_SYS_NICE or RLIMIT_RTPRIO");
        }
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
                // Less than the kernel lets real-time threads keep others from a CPU.
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

    /// Guards both orderings: what one did under the lock is seen by the next, who never comes too soon. A sleeper that
    /// nobody wakes does not end, so it guards the fences, too.
    #[test]
    fn loom_one_at_a_time() {
        model(|| false);
    }

    #[test]
    fn loom_one_at_a_time_with_a_real_time_thread() {
        model(|| true);
    }

    /// Guards the fence of a lock that is handed over in the kernel.
    #[test]
    fn loom_who_sleeps_is_woken_by_a_hand_over() {
        loom::model(|| {
            let counter = Arc::new((Lock::new(0), Watched::default()));
            let held = counter.0.lock_as(1, || false);
            // As if a third had come, whom the kernel will find gone.
            counter.0.owner.fetch_or(WAITERS, Ordering::Relaxed);
            let other = Arc::clone(&counter);
            let thread = loom::thread::spawn(move || count(&other, 2, || false));
            drop(held);
            thread.join().expect("no panic");
        });
    }
}
