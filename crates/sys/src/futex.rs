//! Room: sleeping on a word of shared memory until another process wakes the sleeper; locks whose owner the kernel knows.
//! Not here: the memory (`shared_memory`), the protocol on it (`lab`).
//! Facts: `futex(2)`, without `FUTEX_PRIVATE_FLAG` so that it works between processes, but for locks with an owner.

use std::io;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// `FUTEX_WAIT`: sleeps while `word` holds `seen`. Returns at once when it holds another value; may
/// return for no reason, so the caller looks at the word again.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn wait(word: &AtomicU32, seen: u32) -> io::Result<()> {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: `word` is a live, aligned u32 that the kernel only reads; the timeout may be null.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, forever) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EAGAIN) { Ok(()) } else { Err(error) }
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
    const SECOND: u64 = 1_000_000_000;
    let until = libc::timespec {
        // Inferred: musl's `time_t` is about to change, and naming it is deprecated.
        tv_sec: (until_ns / SECOND) as _,
        tv_nsec: (until_ns % SECOND) as libc::c_long,
    };
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

/// [`wait_until`] so much from now.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn wait_for(word: &AtomicU32, seen: u32, time: Duration) -> io::Result<Waited> {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    wait_until(word, seen, crate::clock::monotonic_ns().saturating_add(time))
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

/// What the kernel adds to the number in a word that [`lock_pi`] waits for (`FUTEX_WAITERS`).
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

    #[test]
    fn a_sleeper_is_woken_and_a_changed_word_is_not_slept_on() {
        let word = Arc::new(AtomicU32::new(0));
        wait(&word, 1).expect("another value: no sleep");
        let sleeper = {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0).expect("no signal");
                }
            })
        };
        std::thread::sleep(std::time::Duration::from_millis(20));
        word.store(1, Ordering::Release);
        wake_one(&word);
        sleeper.join().expect("woken");
    }

    #[test]
    fn all_sleepers_are_woken_at_once() {
        let word = Arc::new(AtomicU32::new(0));
        let sleep = || {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0).expect("no signal");
                }
            })
        };
        let sleepers = [sleep(), sleep(), sleep()];
        std::thread::sleep(Duration::from_millis(20));
        word.store(1, Ordering::Release);
        wake_all(&word);
        for sleeper in sleepers {
            sleeper.join().expect("woken");
        }
    }

    #[test]
    fn a_sleep_ends_with_its_time() {
        let word = AtomicU32::new(0);
        let begin = std::time::Instant::now();
        let time = std::time::Duration::from_millis(20);
        let until = crate::clock::monotonic_ns() + time.as_nanos() as u64;
        assert_eq!(wait_until(&word, 0, until).expect("no signal"), Waited::TimedOut);
        assert!(begin.elapsed() >= time);
        assert_eq!(wait_until(&word, 1, u64::MAX).expect("another value"), Waited::Woken);
    }
}
