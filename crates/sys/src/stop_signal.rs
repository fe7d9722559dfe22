//! Room: noticing that the user, or the system, asks this process to stop.
//! Not here: stopping (`lab::run`).
//! Facts: `sigaction(2)`, `signal-safety(7)`.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// When the first one came, in ms on the monotonic clock; 0: none did.
static FIRST_AT: AtomicI64 = AtomicI64::new(0);

/// Within so many ms a further signal is the same request: `timeout(1)` signals the process and
/// then its group, and so do terminals below wrappers.
const SAME_REQUEST_MS: i64 = 2000;

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::Relaxed);
    if asks_again(&FIRST_AT, now_ms()) {
        // SAFETY: signal takes integers, and is allowed in a handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: raise takes an integer, and is allowed in a handler; it takes effect at its end.
        unsafe { libc::raise(signal) };
    }
}

/// Whether a signal that comes now is a request of its own, after the first.
fn asks_again(first_at: &AtomicI64, now: i64) -> bool {
    // One step, as the next signal may come to another thread in between.
    let first = first_at.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    first.is_err_and(|first| now - first >= SAME_REQUEST_MS)
}

/// The monotonic clock in ms, at least 1; allowed in a signal handler.
fn now_ms() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a live timespec that clock_gettime stores into.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).max(1)
}

/// From now on SIGINT and SIGTERM only leave a note, and make a blocking system call return
/// `EINTR`. One that comes seconds after the first ends the process as if nobody had caught it.
///
/// # Errors
/// None in normal work.
pub fn catch() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a sigaction is integers and pointers, for which all-zero bytes are a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: `action` is live; the handler calls only what a handler may.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The name of the signal that asked to stop, if one did.
#[inline]
#[must_use]
pub fn received() -> Option<&'static str> {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => None,
        libc::SIGINT => Some("SIGINT"),
        _ => Some("SIGTERM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_leaves_a_note() {
        catch().expect("handlers");
        assert_eq!(received(), None);
        // SAFETY: raise takes an integer; the handler above is in place.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(received(), Some("SIGTERM"));
        // `timeout(1)` sends two at once, and one of them must leave time to write the results.
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(received(), Some("SIGTERM"));
    }

    #[test]
    fn what_comes_within_two_seconds_is_the_same_request() {
        let first_at = AtomicI64::new(0);
        let asked = [10_999, 10_999, 12_001, 12_998, 12_999, 60_000].map(|now| asks_again(&first_at, now));
        assert_eq!(asked, [false, false, false, false, true, true]);
    }
}
