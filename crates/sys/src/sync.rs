//! Atomics, fences and futex waits for code on shared memory. With `--cfg loom` they are loom's, so that loom runs the
//! code that ships.
//! Not here: where the words lie (`sealed_memory`).

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, Ordering};

use std::io;

use crate::futex::Waited;

/// The CPU's pause hint for spin loops; in loom, a yield to other threads.
#[inline]
pub fn spin_loop() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Equivalent to `fence(SeqCst)`. On x86-64 `mfence` takes twice as long as the locked instruction used
/// here; a round trip has four fences.
#[inline]
pub fn full_fence() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(not(any(loom, target_arch = "x86_64")))]
    std::sync::atomic::fence(Ordering::SeqCst);
    // SAFETY: changes nothing but flags, which are taken as changed: the word on the stack's top, which
    // is mapped and this thread's own, is written back as it was. Neither the CPU (Intel SDM, volume 3,
    // 9.2.3: no load or store passes a locked instruction) nor the compiler, for which this block may
    // read and write any memory, moves an access across it.
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0");
    }
}

/// Equivalent to `word.fetch_or(bits, Release)` and then [`full_fence`]; on x86-64 one locked instruction is both.
#[inline]
pub fn set_bits_and_fence(word: &AtomicU32, bits: u32) {
    #[cfg(any(loom, not(target_arch = "x86_64")))]
    {
        word.fetch_or(bits, Ordering::Release);
        full_fence();
    }
    // SAFETY: the word is live and aligned, and the instruction accesses it as an atomic does. For the fence
    // see `full_fence`: this is also a locked instruction in a block that may access any memory.
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    unsafe {
        std::arch::asm!("lock or dword ptr [{word}], {bits:e}", word = in(reg) word.as_ptr(), bits = in(reg) bits);
    }
}

/// Sleeps while `word` holds `seen`, until [`wake_one`] or until `until_ns` on the monotonic clock. Spurious
/// returns are possible.
///
/// In loom the sleeper continues only when the word changes: a model with a lost wake-up does not end.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn sleep_on(word: &AtomicU32, seen: u32, until_ns: u64) -> io::Result<Waited> {
    #[cfg(loom)]
    while word.load(Ordering::Relaxed) == seen {
        loom::thread::yield_now();
    }
    #[cfg(not(loom))]
    return crate::futex::wait_until(word, seen, until_ns);
    #[cfg(loom)]
    {
        let _ = until_ns;
        Ok(Waited::Woken)
    }
}

/// Wakes at most one sleeper on `word`.
pub fn wake_one(word: &AtomicU32) {
    #[cfg(loom)]
    let _ = word;
    #[cfg(not(loom))]
    crate::futex::wake_one(word);
}

/// A [`full_fence`] after a successful compare-exchange, which on x86-64 is a full fence already.
#[inline]
pub fn fence_after_exchange() {
    #[cfg(any(loom, not(target_arch = "x86_64")))]
    full_fence();
    // SAFETY: no instruction at all. The compiler, for which this block may read and write any memory, moves no access
    // across it, and the CPU none across the locked instruction before it (`full_fence`).
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    unsafe {
        std::arch::asm!("");
    }
}

/// [`crate::futex::lock_pi`] by the thread of this number.
///
/// In loom it takes the lock when it is free and sets the waiters bit.
///
/// # Errors
/// The same errors.
pub fn lock_pi(word: &AtomicU32, me: u32) -> io::Result<()> {
    #[cfg(not(loom))]
    {
        let _ = me;
        crate::futex::lock_pi(word)
    }
    #[cfg(loom)]
    loop {
        match word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Ok(()),
            Err(owner) if owner & crate::futex::WAITERS == 0 => {
                let marked = owner | crate::futex::WAITERS;
                let _ = word.compare_exchange(owner, marked, Ordering::Relaxed, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        loom::thread::yield_now();
    }
}

/// See [`crate::futex::unlock_pi`].
///
/// # Errors
/// The same errors.
pub fn unlock_pi(word: &AtomicU32) -> io::Result<()> {
    #[cfg(not(loom))]
    return crate::futex::unlock_pi(word);
    #[cfg(loom)]
    {
        word.store(0, Ordering::Release);
        Ok(())
    }
}

/// Reports accesses to memory outside loom's view, so that a data race fails the model.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct Watched(loom::cell::UnsafeCell<()>);

// SAFETY: there is nothing inside; the cell only counts the accesses, in loom's own threads, of which
// one runs at a time.
#[cfg(loom)]
unsafe impl Sync for Watched {}

#[cfg(loom)]
impl Watched {
    /// Reads.
    pub fn read<T>(&self, action: impl FnOnce() -> T) -> T {
        self.0.with(|_| action())
    }

    /// Writes.
    pub fn write<T>(&self, action: impl FnOnce() -> T) -> T {
        self.0.with_mut(|_| action())
    }
}
