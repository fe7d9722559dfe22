//! Room: reading the clocks that measure; nanoseconds, as the kernel counts them.
//! Not here: what is measured (`lab::measure`).
//! Facts: `clock_gettime(2)`; `CLOCK_MONOTONIC` is answered by the vDSO without a system call,
//! `CLOCK_THREAD_CPUTIME_ID` by the kernel.

/// Reads `CLOCK_MONOTONIC`.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Reads `CLOCK_MONOTONIC_COARSE`: a few milliseconds behind, and cheaper than the exact clock.
#[inline]
#[must_use]
pub fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
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
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_forward_and_sleep_uses_no_cpu() {
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (slept, used) = (monotonic_ns() - wall, thread_cpu_ns() - cpu);
        assert!(slept >= 50_000_000, "slept {slept} ns");
        assert!(used < slept, "used {used} ns of {slept}");
    }
}
