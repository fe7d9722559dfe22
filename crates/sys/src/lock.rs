//! Room: a lock around a value that threads of one process share, as small as they come: one word, and one for whoever
//! has it.
//! Not here: words that processes share (`sync`).
//! Facts: `futex(2)`.
//!
//! Why not the standard library's: that one asks at each end whether the thread panics, and hands the answer on to
//! whoever gets the lock from whoever has it. Nobody here asks for it, and the embedded driver's calls consist of
//! so little else that it shows.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::futex::FOREVER;
use crate::sync::{AtomicU32, Ordering, sleep_on, spin_loop, wake_one};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Somebody sleeps until it is free.
const AWAITED: u32 = 2;

/// Looks at a lock that somebody has before sleeping: who has it most often gives it back soon.
const LOOKS: u32 = 100;

/// # Invariants
/// The value is only touched through a [`Held`], of which there is one at a time: it is made when the word left
/// [`FREE`], and its drop puts that back.
pub struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: of all threads that share it one at a time gets at the value (Invariants), so the value moves between them,
// which `T: Send` allows, and none shares it with another.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The lock, held until this is dropped. A panic meanwhile gives it back like anything else.
pub struct Held<'l, T> {
    lock: &'l Lock<T>,
    /// As the value's own: neither sent nor shared.
    _value: PhantomData<*mut T>,
}

impl<T> Lock<T> {
    /// Around a value.
    pub fn new(value: T) -> Self {
        Self { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Gets the lock, waiting for it if need be. A thread that has it already waits for ever.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        // Acquire: pairs with the Release in `drop`. Guarded by loom_one_at_a_time.
        if self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait_for_it();
        }
        Held { lock: self, _value: PhantomData }
    }

    #[cold]
    fn wait_for_it(&self) {
        for _ in 0..LOOKS {
            match self.word.load(Ordering::Relaxed) {
                FREE => break,
                HELD => spin_loop(),
                _ => break,
            }
        }
        // Whoever comes this way leaves it as awaited, as others may sleep. Acquire: as in `lock`.
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            // A signal is a reason to look again, like any other.
            let _ = sleep_on(&self.word, AWAITED, FOREVER);
        }
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
        // Release: pairs with the Acquire in `lock` and `wait_for_it`. Guarded by loom_one_at_a_time.
        if self.lock.word.swap(FREE, Ordering::Release) == AWAITED {
            std::hint::cold_path();
            wake_one(&self.lock.word);
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
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        let counter = Lock::new(0);
        let count = || (0..20_000).for_each(|_| *counter.lock() += 1);
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
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
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use super::*;
    use crate::sync::Watched;

    /// Guards both orderings: what one did under the lock is seen by the next, who never comes too soon.
    #[test]
    fn loom_one_at_a_time() {
        loom::model(|| {
            let lock = Arc::new((Lock::new(0), Watched::default()));
            let count = |(lock, watched): &(Lock<u32>, Watched)| {
                let mut held = lock.lock();
                watched.write(|| *held += 1);
            };
            let other = Arc::clone(&lock);
            let thread = loom::thread::spawn(move || count(&other));
            count(&lock);
            thread.join().expect("no panic");
            assert_eq!(*lock.0.lock(), 2);
        });
    }
}
