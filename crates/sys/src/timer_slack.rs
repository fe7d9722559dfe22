//! Room: how late the kernel may wake a thread from a timed sleep, so as to do several wake-ups in one.
//! Not here: sleeping (`clock_sleep`).
//! Facts: `PR_SET_TIMERSLACK` in `prctl(2)`: 50 us where nobody said otherwise; real-time threads have none
//! whatever is set; threads and processes inherit their creator's.

use std::io;

/// Sets the calling thread's slack in ns; 0 is the thread's default, so 1 is the least.
///
/// # Errors
/// `EINVAL`: a kernel without it.
pub fn set_ns(slack: u32) -> io::Result<()> {
    // SAFETY: prctl with PR_SET_TIMERSLACK takes integers only.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(slack)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The calling thread's slack in ns.
#[must_use]
pub fn ns() -> u32 {
    // SAFETY: prctl with PR_GET_TIMERSLACK takes integers only.
    let result = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    u32::try_from(result).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_slack_is_its_own() {
        let before = ns();
        let inside = std::thread::spawn(|| {
            set_ns(1234).expect("any number");
            ns()
        });
        assert_eq!(inside.join().expect("no panic"), 1234);
        assert_eq!(ns(), before);
    }
}
