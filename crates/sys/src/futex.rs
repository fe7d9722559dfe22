//! Futexes: waiting on a word of shared memory, waking waiters, and locks with priority inheritance.
//! Not here: the memory (`shared_memory`), the protocol on it (`bench`).
//! Facts: `futex(2)`, without `FUTEX_PRIVATE_FLAG` so that it works between processes, but for locks with an owner.

use std::io;
use std::sync::atomic::AtomicU32;

/// `FUTEX_WAIT_BITSET`: sleeps while `word` holds `seen`. Returns at once when it holds another value; may
/// return for no reason, so the caller looks at the word again.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn wait(word: &AtomicU32, seen: u32) -> io::Result<()> {
    wait_until(word, seen, FOREVER).map(drop)
}

/// How [`wait_until`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken, or the word held another value, or for no reason.
    Woken,
    /// The time is over.
    TimedOut,
}

/// For [`wait_until`]: without an end, and so without a timer.
pub const FOREVER: u64 = u64::MAX;

/// [`wait`], but no longer than until this time on the monotonic clock. A time of its own for each wait
/// costs more than one that many share: the kernel need not ask the clock.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn wait_until(word: &AtomicU32, seen: u32, until_ns: u64) -> io::Result<Waited> {
    let until = crate::clock::timespec(until_ns);
    let (until, unused) = (&raw const until, std::ptr::null::<u32>());
    let until = if until_ns == FOREVER { std::ptr::null() } else { until };
    let (op, any) = (libc::FUTEX_WAIT_BITSET, libc::FUTEX_BITSET_MATCH_ANY);
    // SAFETY: `word` is a live, aligned u32 and `until` a live timespec or null; the kernel only reads both.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, seen, until, unused, any) };
    if result == 0 {
        return Ok(Waited::Woken);
    }
    std::hint::cold_path();
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Waited::Woken),
        Some(libc::ETIMEDOUT) => Ok(Waited::TimedOut),
        _ => Err(error),
    }
}

/// `FUTEX_WAKE`: wakes at most one sleeper on `word`.
pub fn wake_one(word: &AtomicU32) {
    // SAFETY: `word` is a live, aligned u32; waking touches no memory and fails only for a bad address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// `FUTEX_WAKE`: wakes all sleepers on `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: as in `wake_one`, with the largest count.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
}

/// The bit that the kernel sets in a word that [`lock_pi`] waits for (`FUTEX_WAITERS`).
pub const WAITERS: u32 = 1 << 31;

/// `FUTEX_LOCK_PI` (private to the process): gets a lock whose word holds the number of the thread that has it, 0 for
/// nobody. Until then the kernel has that thread run at the caller's priority, if that is a real-time one and higher.
///
/// # Errors
/// `EDEADLK`: the caller has it. `ESRCH`, `EAGAIN`: no such thread, or it ends. `ENOSYS`: a kernel without such locks.
pub fn lock_pi(word: &AtomicU32) -> io::Result<()> {
    owned(word, libc::FUTEX_LOCK_PI)
}

/// `FUTEX_UNLOCK_PI`: hands a lock to the most urgent thread in [`lock_pi`], and takes the caller's own priority back.
///
/// # Errors
/// `EPERM`: the word does not hold the caller's number.
pub fn unlock_pi(word: &AtomicU32) -> io::Result<()> {
    owned(word, libc::FUTEX_UNLOCK_PI)
}

fn owned(word: &AtomicU32, op: libc::c_int) -> io::Result<()> {
    let (op, forever) = (op | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::timespec>());
    // SAFETY: `word` is a live, aligned u32, which the kernel changes as an atomic; there is no timeout.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, 0, forever) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[test]
    fn sleepers_are_woken_and_a_changed_word_is_not_slept_on() {
        wait(&AtomicU32::new(0), 1).expect("another value: no sleep");
        for (wake, count) in [(wake_one as fn(&AtomicU32), 1), (wake_all, 3)] {
            let word = Arc::new(AtomicU32::new(0));
            let sleep = || {
                let word = Arc::clone(&word);
                std::thread::spawn(move || {
                    while word.load(Ordering::Acquire) == 0 {
                        wait(&word, 0).expect("no signal");
                    }
                })
            };
            let sleepers: Vec<_> = (0..count).map(|_| sleep()).collect();
            std::thread::sleep(Duration::from_millis(20));
            word.store(1, Ordering::Release);
            wake(&word);
            sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("woken"));
        }
    }

    #[test]
    fn a_sleep_ends_with_its_time() {
        let word = AtomicU32::new(0);
        let begin = std::time::Instant::now();
        let time = Duration::from_millis(20);
        let until = crate::clock::monotonic_ns() + time.as_nanos() as u64;
        assert_eq!(wait_until(&word, 0, until).expect("no signal"), Waited::TimedOut);
        assert!(begin.elapsed() >= time);
        assert_eq!(wait_until(&word, 1, u64::MAX).expect("another value"), Waited::Woken);
    }
}
