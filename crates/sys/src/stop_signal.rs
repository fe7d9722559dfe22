//! Catching SIGINT and SIGTERM, and SIGHUP where a terminal's end is one, as a request to stop.
//! Not here: stopping (`bench::run`).
//! Facts: `sigaction(2)`, `signal-safety(7)`.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

use crate::errno::check;

static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Time of the first signal in ms on the monotonic clock; 0 before it.
static FIRST_AT: AtomicI64 = AtomicI64::new(0);

/// Time in ms within which a further signal counts as the same request: `timeout(1)` signals the process and
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

/// Whether a signal now is a second request.
fn asks_again(first_at: &AtomicI64, now: i64) -> bool {
    // One atomic step, as the next signal may arrive on another thread.
    let first = first_at.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    first.is_err_and(|first| now - first >= SAME_REQUEST_MS)
}

/// The monotonic clock in ms, at least 1; allowed in a signal handler.
fn now_ms() -> i64 {
    (crate::clock::monotonic_ns() / 1_000_000).max(1) as i64
}

/// Installs handlers for SIGINT and SIGTERM that record the request and make blocking system calls return `EINTR`. A
/// further signal seconds later ends the process with the default action.
///
/// # Errors
/// None in normal work.
pub fn catch() -> io::Result<()> {
    catch_one(libc::SIGINT)?;
    catch_one(libc::SIGTERM)
}

/// The same for SIGHUP, the end of a terminal, unless this process was started with it ignored, as `nohup` does.
///
/// # Errors
/// None in normal work.
pub fn catch_hangup() -> io::Result<()> {
    // SAFETY: a sigaction is integers and pointers, for which all-zero bytes are a value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `before` is live; without a new action the call only writes it.
    check(unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut before) })?;
    if before.sa_sigaction == libc::SIG_IGN { Ok(()) } else { catch_one(libc::SIGHUP) }
}

fn catch_one(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a sigaction is integers and pointers, for which all-zero bytes are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: `action` is live; the handler calls only what a handler may.
    check(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
}

/// Gives SIGINT its default action if this process was started with it ignored, as a shell's background jobs are.
pub fn heed() {
    // SAFETY: signal takes integers; the default action needs nothing of this process.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

/// The name of the signal that requested the stop, if any.
#[inline]
#[must_use]
pub fn received() -> Option<&'static str> {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => None,
        libc::SIGINT => Some("SIGINT"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => Some("SIGTERM"),
    }
}

/// The time since the first signal that requested the stop, if there was one.
#[must_use]
pub fn since() -> Option<Duration> {
    match FIRST_AT.load(Ordering::Relaxed) {
        0 => None,
        first => Some(Duration::from_millis(u64::try_from(now_ms() - first).unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_leaves_a_note() {
        catch().expect("handlers");
        assert_eq!((received(), since()), (None, None));
        // SAFETY: raise takes an integer; the handler above is in place.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(received(), Some("SIGTERM"));
        assert!(since().is_some());
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
