//! Room: timers with a descriptor (`timerfd_create(2)`).
//! Not here: sleeping (`clock_sleep`).
//! Facts: arming takes the timer to the CPU of the thread that arms it, where its interrupt comes (`kernel/time/hrtimer.c`);
//! one that nobody waits for expires all the same.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A timer of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct TimerFd {
    descriptor: OwnedFd,
}

impl TimerFd {
    /// Makes one that is not armed, closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`; `ENOSYS` in a kernel without them.
    pub fn new() -> io::Result<Self> {
        // SAFETY: timerfd_create takes two integers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it is a new descriptor that nobody else owns.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Has it expire once, when the clock reads this, in ns; at once if it has. 0 disarms it.
    ///
    /// # Errors
    /// None in normal work.
    pub fn arm(&self, moment_ns: u64) -> io::Result<()> {
        const SECOND: u64 = 1_000_000_000;
        let value = libc::timespec {
            // At most 1.8 * 10^10, which fits the 64 bits of every target.
            tv_sec: (moment_ns / SECOND) as _,
            // Below 10^9, which fits the type of every target.
            tv_nsec: (moment_ns % SECOND) as _,
        };
        let once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let wanted = libc::itimerspec { it_interval: once, it_value: value };
        let fd = self.descriptor.as_raw_fd();
        // SAFETY: `wanted` is live and only read; no old setting is asked for.
        let result = unsafe {
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const wanted, std::ptr::null_mut())
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn it_expires_once_and_not_before_its_moment() {
        let timer = TimerFd::new().expect("a timer");
        let moment = monotonic_ns() + 2_000_000;
        timer.arm(moment).expect("armed");
        let mut count = [0; 8];
        File::from(timer.descriptor).read_exact(&mut count).expect("it expires");
        assert!(monotonic_ns() >= moment);
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
