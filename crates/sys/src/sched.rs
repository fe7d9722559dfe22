//! Room: how the calling thread is scheduled: on which CPUs, by which policy.
//! Not here: changing the policy.
//! Facts: `sched_getscheduler(2)`, `sched_getaffinity(2)`, `CPU_SET(3)`.

use std::io;

const SET_SIZE: usize = size_of::<libc::cpu_set_t>();

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a cpu_set_t is an array of integers, for which all-zero bytes are a value.
    unsafe { std::mem::zeroed() }
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// `EINVAL`: the kernel has more CPUs than the C library's set holds (1024).
pub fn affinity() -> io::Result<Vec<u32>> {
    let mut set = empty_set();
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, SET_SIZE, &raw mut set) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: CPU_ISSET reads `set` only, and every number is below the set's size in bits.
    let is_set = |cpu: &u32| unsafe { libc::CPU_ISSET(*cpu as usize, &set) };
    Ok((0..SET_SIZE as u32 * 8).filter(is_set).collect())
}

/// Lets the calling thread, and threads and processes that it starts from now on, run on these CPUs
/// only.
///
/// # Errors
/// `EINVAL`: none of them may be used, or a number is beyond the C library's set.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mut set = empty_set();
    for &cpu in cpus {
        if cpu as usize >= SET_SIZE * 8 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: stores into `set`, and the number is below the set's size in bits.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, SET_SIZE, &raw const set) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How many CPUs the calling thread may run on; at least 1.
#[must_use]
pub fn usable_cpus() -> u32 {
    match affinity() {
        Ok(cpus) => (cpus.len() as u32).max(1),
        Err(_) => std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
    }
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
    fn a_thread_goes_where_it_is_told() {
        let all = affinity().expect("affinity");
        let last = *all.last().expect("a CPU");
        set_affinity(&[last]).expect("one of ours");
        assert_eq!(affinity().expect("affinity"), [last]);
        set_affinity(&all).expect("all of ours");
        assert_eq!(usable_cpus() as usize, all.len());
        assert!(set_affinity(&[]).is_err());
        assert!(set_affinity(&[1 << 20]).is_err());
    }

    #[test]
    fn a_plain_thread_has_cpus_and_no_real_time_policy() {
        assert!(usable_cpus() >= 1);
        assert!(!is_realtime());
    }
}
