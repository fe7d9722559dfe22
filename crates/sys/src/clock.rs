//! Clocks, absolute sleeps and timers. All times are in ns.
//! Facts: `clock_gettime(2)`: the vDSO answers `CLOCK_MONOTONIC` without a system call, the kernel answers
//! `CLOCK_THREAD_CPUTIME_ID`. `clock_nanosleep(2)`: with `TIMER_ABSTIME` a call that a signal ended is made
//! again without drift; the error is the result, not `errno`. `PR_SET_TIMERSLACK` in `prctl(2)`: 50 us by
//! default, none for real-time threads, inherited. `timerfd_create(2)`: the timer's interrupt comes to the
//! CPU that armed it (`kernel/time/hrtimer.c`).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::errno::{check, new_descriptor};

/// Reads `CLOCK_MONOTONIC`.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Reads `CLOCK_BOOTTIME`, which also counts while the machine is suspended.
#[inline]
#[must_use]
pub fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Reads `CLOCK_MONOTONIC_COARSE`: a few milliseconds behind, and cheaper than the exact clock.
#[inline]
#[must_use]
pub fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// Time between two of the kernel's ticks: the resolution of `CLOCK_MONOTONIC_COARSE`.
#[must_use]
pub fn tick_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Reads `CLOCK_THREAD_CPUTIME_ID`: CPU time that the calling thread has used.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec for the kernel to store into. The call can fail only for an
    // unknown clock, and all of this file's exist in every kernel with a binder driver.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

const SECOND: u64 = 1_000_000_000;

#[inline]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    // Casts to inferred types: musl's `time_t` is about to change, and naming it is deprecated. Seconds are at most 1.8
    // * 10^10 and the rest is below 10^9: both fit the types of every target.
    libc::timespec { tv_sec: (ns / SECOND) as _, tv_nsec: (ns % SECOND) as _ }
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `deadline_ns`; returns at once if it has. A handled signal does
/// not shorten the sleep.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    loop {
        // SAFETY: `deadline` is live for the kernel to read, and an absolute sleep leaves no rest to store.
        let result = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const deadline,
                std::ptr::null_mut(),
            )
        };
        if result != libc::EINTR {
            // Other errors are for clocks or times that do not exist; these do.
            return;
        }
    }
}

/// Sets the calling thread's timer slack: how late the kernel may wake it from a timed sleep. 0 means the
/// thread's default, so 1 is the least.
///
/// # Errors
/// `EINVAL`: a kernel without it.
pub fn set_timer_slack_ns(slack: u32) -> io::Result<()> {
    // SAFETY: prctl with PR_SET_TIMERSLACK takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(slack)) })
}

/// A timer of `CLOCK_MONOTONIC` with a descriptor.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// Makes a timer that is not armed, closed on exec.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`; `ENOSYS` in a kernel without them.
    pub fn new() -> io::Result<Self> {
        // SAFETY: timerfd_create takes two integers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        // SAFETY: the result of timerfd_create.
        unsafe { new_descriptor(fd) }.map(Self)
    }

    /// Makes the timer expire once at `moment_ns`, at once if that has passed; 0 disarms it. It expires
    /// whether or not anybody waits for it.
    ///
    /// # Errors
    /// None in normal work.
    pub fn arm(&self, moment_ns: u64) -> io::Result<()> {
        let wanted = libc::itimerspec { it_interval: timespec(0), it_value: timespec(moment_ns) };
        // SAFETY: `wanted` is live and only read; no old setting is asked for.
        check(unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const wanted,
                std::ptr::null_mut(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::interrupt::{Interrupter, ThreadId};

    #[test]
    fn both_clocks_go_forward_and_sleep_uses_no_cpu() {
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (slept, used) = (monotonic_ns() - wall, thread_cpu_ns() - cpu);
        assert!(slept >= 50_000_000, "slept {slept} ns");
        assert!(used < slept, "used {used} ns of {slept}");
    }

    #[test]
    fn a_sleeper_wakes_at_the_moment_and_never_before() {
        for wait in [0, 1, 1_000, 3_000_000, 20_000_000] {
            let deadline = monotonic_ns() + wait;
            sleep_until(deadline);
            assert!(monotonic_ns() >= deadline, "{wait} ns");
        }
        // A past moment is not waited for: the test would not end.
        sleep_until(0);
    }

    #[test]
    fn signals_do_not_shorten_a_sleep() {
        let interrupter = Interrupter::install_without_restart().expect("handler");
        let awake = AtomicBool::new(false);
        let sleeper = ThreadId::current();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !awake.load(Ordering::Relaxed) {
                    let _ = interrupter.interrupt(sleeper);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            });
            let deadline = monotonic_ns() + 30_000_000;
            sleep_until(deadline);
            let end = monotonic_ns();
            awake.store(true, Ordering::Relaxed);
            assert!(end >= deadline, "{} ns early", deadline - end);
        });
    }

    #[test]
    fn a_threads_slack_is_its_own() {
        // SAFETY: prctl with PR_GET_TIMERSLACK takes integers only.
        let slack = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        let before = slack();
        let inside = std::thread::spawn(move || {
            set_timer_slack_ns(1234).expect("any number");
            slack()
        });
        assert_eq!(inside.join().expect("no panic"), 1234);
        assert_eq!(slack(), before);
    }

    #[test]
    fn a_timer_expires_once_and_not_before_its_moment() {
        let timer = TimerFd::new().expect("a timer");
        let moment = monotonic_ns() + 2_000_000;
        timer.arm(moment).expect("armed");
        let mut count = [0; 8];
        File::from(timer.0).read_exact(&mut count).expect("it expires");
        assert!(monotonic_ns() >= moment);
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
