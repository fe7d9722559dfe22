//! Room: sleeping until a moment of the clock that measures.
//! Not here: reading it (`clock`), how late a sleeper may be woken (`timer_slack`).
//! Facts: `clock_nanosleep(2)`: with `TIMER_ABSTIME` a call that a signal ended is simply made again, and
//! nothing adds up; the error is the result, not in `errno`.

/// Sleeps until `CLOCK_MONOTONIC` has reached this, in ns; returns at once if it has. Goes on sleeping after
/// a signal that was handled.
pub fn until(deadline_ns: u64) {
    const SECOND: u64 = 1_000_000_000;
    let deadline = libc::timespec {
        // At most 1.8 * 10^10, which fits the 64 bits of every target.
        tv_sec: (deadline_ns / SECOND) as _,
        // Below 10^9, which fits the type of every target.
        tv_nsec: (deadline_ns % SECOND) as _,
    };
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::clock::monotonic_ns;
    use crate::interrupt::{Interrupter, ThreadId};

    #[test]
    fn it_wakes_at_the_moment_and_never_before() {
        for wait in [0, 1, 1_000, 3_000_000, 20_000_000] {
            let deadline = monotonic_ns() + wait;
            until(deadline);
            assert!(monotonic_ns() >= deadline, "{wait} ns");
        }
        // What has passed is not waited for: the test would not end.
        until(0);
    }

    #[test]
    fn signals_do_not_shorten_it() {
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
            until(deadline);
            let end = monotonic_ns();
            awake.store(true, Ordering::Relaxed);
            assert!(end >= deadline, "{} ns early", deadline - end);
        });
    }
}
