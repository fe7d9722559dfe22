//! Room: noticing that the user, or the system, asks this process to stop.
//! Not here: stopping (`lab::run`).
//! Facts: `sigaction(2)`, `signal-safety(7)`.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::Relaxed);
}

/// From now on SIGINT and SIGTERM only leave a note, and make a blocking system call return
/// `EINTR`. The second of them ends the process as if nobody had caught it.
///
/// # Errors
/// None in normal work.
pub fn catch() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a sigaction is integers and pointers, for which all-zero bytes are a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: `action` is live; the handler does one atomic store, which is safe in a handler.
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
    }
}
