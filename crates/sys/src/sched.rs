//! Room: asking how the calling thread is scheduled.
//! Not here: changing it.
//! Facts: `sched_getscheduler(2)`, `sched_getaffinity(2)`, `sched_yield(2)`.

/// CPUs that the calling thread may run on; at least 1.
#[must_use]
pub fn usable_cpus() -> u32 {
    // SAFETY: a cpu_set_t is an array of integers, for which all-zero bytes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is live and of the size given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result < 0 {
        // EINVAL: more CPUs than the set holds, so certainly more than one.
        return std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    }
    // SAFETY: CPU_COUNT reads `set` only.
    let count = unsafe { libc::CPU_COUNT(&set) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Whether the calling thread has a real-time policy (FIFO, RR or DEADLINE).
#[must_use]
pub fn is_realtime() -> bool {
    // SAFETY: takes an integer; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    const RESET_ON_FORK: libc::c_int = 0x4000_0000;
    const DEADLINE: libc::c_int = 6;
    matches!(policy & !RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR | DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_thread_has_cpus_and_no_real_time_policy() {
        assert!(usable_cpus() >= 1);
        assert!(!is_realtime());
    }
}
