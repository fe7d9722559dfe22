//! Room: a clock tick to wait for, in the way in which a kernel's own waits are interrupted.
//! Facts: `timerfd_create(2)`, `signal(7)`: a read of it is restarted after a handler with
//! `SA_RESTART` and ends with `EINTR` after any other; sleeping is never restarted.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Ticks at a steady interval.
#[derive(Debug)]
pub struct Interval {
    timer: File,
}

impl Interval {
    /// Starts ticking; `every` must be longer than 0.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn start(every: Duration) -> io::Result<Self> {
        // SAFETY: takes integers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a non-negative result is a new descriptor that nobody else owns.
        let timer = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let time = libc::timespec {
            tv_sec: every.as_secs() as libc::time_t,
            tv_nsec: every.subsec_nanos() as libc::c_long,
        };
        let new = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: `new` is live for the kernel to read; the old value may be null.
        let set =
            unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const new, std::ptr::null_mut()) };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { timer }) }
    }

    /// Waits for the next tick, or returns at once if one was missed.
    ///
    /// # Errors
    /// `EINTR`: a signal came whose handler was installed without `SA_RESTART`.
    pub fn tick(&mut self) -> io::Result<()> {
        self.timer.read(&mut [0; 8]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_one_after_another() {
        let begun = std::time::Instant::now();
        let mut interval = Interval::start(Duration::from_millis(5)).expect("a timer");
        for _ in 0..3 {
            interval.tick().expect("no signal");
        }
        assert!(begun.elapsed() >= Duration::from_millis(15));
    }
}
