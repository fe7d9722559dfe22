//! Room: which real-time priorities the threads of this process may have, and for how long they may run.
//! Not here: taking such a priority (`sched`).
//! Facts: `getrlimit(2)`: `RLIMIT_RTPRIO` is the highest priority without privilege, 0 for none;
//! `RLIMIT_RTTIME` is CPU time in us that a real-time thread may use without a blocking system call: at the
//! soft limit the process gets `SIGXCPU` (which ends it) and again each second, at the hard one `SIGKILL`.

use std::io;

fn limit_of(resource: Resource) -> io::Result<libc::rlimit> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `found` is live and of the type that the call fills in.
    let result = unsafe { libc::getrlimit(resource, &raw mut found) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
}

fn set_limit(resource: Resource, wanted: &libc::rlimit) -> io::Result<()> {
    // SAFETY: `wanted` is live and of the type that the call reads.
    let result = unsafe { libc::setrlimit(resource, wanted) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The C libraries disagree about the type of a resource's number.
#[cfg(target_env = "musl")]
type Resource = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

/// The highest real-time priority, 0 (none) to 99, that threads of this process may take by
/// `RLIMIT_RTPRIO`. With `CAP_SYS_NICE` the limit does not count.
#[must_use]
pub fn most_priority() -> u32 {
    // Asking for a limit that exists cannot fail.
    limit_of(libc::RLIMIT_RTPRIO).map_or(0, |limit| u32::try_from(limit.rlim_cur).unwrap_or(99).min(99))
}

/// Sets the highest real-time priority of threads of this process, and of processes that it starts. The
/// hard limit becomes the same, so this cannot be taken back without `CAP_SYS_RESOURCE`.
///
/// # Errors
/// `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn allow_priority(most: u32) -> io::Result<()> {
    set_limit(libc::RLIMIT_RTPRIO, &libc::rlimit { rlim_cur: most.into(), rlim_max: most.into() })
}

/// Has the kernel send `SIGXCPU` to this process when a real-time thread of it has run for `soft` us of CPU
/// time without blocking, and `SIGKILL` after `hard`. Inherited by processes that it starts.
///
/// # Errors
/// `EINVAL`: `soft` above `hard`. `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn limit_realtime_us(soft: u64, hard: u64) -> io::Result<()> {
    set_limit(libc::RLIMIT_RTTIME, &libc::rlimit { rlim_cur: soft, rlim_max: hard })
}

/// What [`limit_realtime_us`] set: soft and hard in us; `None` for a limit that is not there.
#[must_use]
pub fn realtime_us() -> (Option<u64>, Option<u64>) {
    let finite = |limit: libc::rlim_t| (limit != libc::RLIM_INFINITY).then_some(limit);
    limit_of(libc::RLIMIT_RTTIME)
        .map_or((None, None), |limit| (finite(limit.rlim_cur), finite(limit.rlim_max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_in_the_kernels_range() {
        assert!(most_priority() <= 99);
    }

    /// Generous, since it stays for all tests of this process.
    #[test]
    fn a_time_limit_is_found_as_it_was_set() {
        let (soft, hard) = (10_000_000, 20_000_000);
        limit_realtime_us(soft, hard).expect("lower than before, or the same");
        assert_eq!(realtime_us(), (Some(soft), Some(hard)));
        let error = limit_realtime_us(hard, soft).expect_err("soft above hard");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
