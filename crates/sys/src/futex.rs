//! Room: sleeping on a word of shared memory until another process wakes the sleeper.
//! Not here: the memory (`shared_memory`), the protocol on it (`lab`).
//! Facts: `futex(2)`, without `FUTEX_PRIVATE_FLAG` so that it works between processes.

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

/// How [`wait_for`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken, or the word held another value, or for no reason.
    Woken,
    /// The time is over.
    TimedOut,
}

/// [`wait`] for at most this long, on the monotonic clock.
///
/// # Errors
/// `EINTR`: a signal came.
pub fn wait_for(word: &AtomicU32, seen: u32, timeout: Duration) -> io::Result<Waited> {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    };
    let timeout = &raw const timeout;
    // SAFETY: `word` is a live, aligned u32 and `timeout` a live timespec; the kernel only reads both.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, timeout) };
    if result == 0 {
        return Ok(Waited::Woken);
    }
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
        let time = Duration::from_millis(20);
        assert_eq!(wait_for(&word, 0, time).expect("no signal"), Waited::TimedOut);
        assert!(begin.elapsed() >= time);
        assert_eq!(wait_for(&word, 1, Duration::MAX).expect("another value"), Waited::Woken);
    }
}
