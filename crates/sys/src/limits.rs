//! Resource limits of this process, which processes that it starts inherit.
//! Not here: taking a priority (`sched`).
//! Facts: `getrlimit(2)`. `RLIMIT_NICE` L allows nice 20 - L and above. `RLIMIT_RTPRIO` is the highest
//! real-time priority without privilege, 0 for none. `RLIMIT_RTTIME` is the CPU time in us that a real-time
//! thread may use without a blocking system call: at the soft limit the process gets `SIGXCPU` (which ends
//! it) and again each second, at the hard limit `SIGKILL`.

use std::io;

use crate::errno::check;

/// The C libraries disagree about the type of a resource's number.
#[cfg(target_env = "musl")]
type Resource = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

/// A soft and a hard limit. The C library's type is as wide as the machine's words.
#[derive(Clone, Copy)]
struct Limit {
    soft: u64,
    hard: u64,
}

fn get(resource: Resource) -> io::Result<Limit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit that getrlimit stores into.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    #[allow(clippy::unnecessary_cast, reason = "the type is narrower elsewhere")]
    let wide = |limit: libc::rlim_t| if limit == libc::RLIM_INFINITY { UNLIMITED } else { limit as u64 };
    Ok(Limit { soft: wide(limit.rlim_cur), hard: wide(limit.rlim_max) })
}

fn set(resource: Resource, limit: Limit) -> io::Result<()> {
    let own = |limit: u64| libc::rlim_t::try_from(limit).unwrap_or(libc::RLIM_INFINITY);
    let limit = libc::rlimit { rlim_cur: own(limit.soft), rlim_max: own(limit.hard) };
    // SAFETY: `limit` is a live rlimit that setrlimit reads.
    check(unsafe { libc::setrlimit(resource, &raw const limit) })
}

/// "No limit", however wide the C library's type is.
const UNLIMITED: u64 = u64::MAX;

fn finite(limit: u64) -> Option<u64> {
    (limit != UNLIMITED).then_some(limit)
}

/// The soft limit of address space (`ulimit -v`) in bytes; `None` if unlimited.
///
/// # Errors
/// None in normal work.
pub fn address_space() -> io::Result<Option<u64>> {
    Ok(finite(get(libc::RLIMIT_AS)?.soft))
}

/// The soft limit of open files: one more than the highest number that a new descriptor may have.
///
/// # Errors
/// None in normal work.
pub fn open_files() -> io::Result<u64> {
    Ok(get(libc::RLIMIT_NOFILE)?.soft)
}

/// Raises the soft limit of open files to `most` or the hard limit, whichever is lower; never lowers it.
/// Returns the limit now in force.
///
/// # Errors
/// None in normal work.
pub fn raise_open_files(most: u64) -> io::Result<u64> {
    let now = get(libc::RLIMIT_NOFILE)?;
    let wanted = most.min(now.hard);
    if wanted <= now.soft { Ok(now.soft) } else { set_open_files(wanted) }
}

/// Sets the soft limit of open files to `most` or the hard limit, whichever is lower. Returns the limit now
/// in force.
///
/// # Errors
/// None in normal work.
pub fn set_open_files(most: u64) -> io::Result<u64> {
    let now = get(libc::RLIMIT_NOFILE)?;
    let wanted = most.min(now.hard);
    set(libc::RLIMIT_NOFILE, Limit { soft: wanted, ..now })?;
    Ok(wanted)
}

/// `RLIMIT_NICE`: 20 minus the most urgent nice that threads may take without privilege; 0 to 40.
pub(crate) fn nice() -> i32 {
    // Asking for a limit that exists cannot fail.
    get(libc::RLIMIT_NICE).map_or(0, |limit| i32::try_from(limit.soft).unwrap_or(40).min(40))
}

/// Sets `RLIMIT_NICE` (0 to 40): how urgent threads may make themselves without privilege.
///
/// # Errors
/// `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn set_nice(limit: u32) -> io::Result<()> {
    // The hard limit is only ever raised, so that the unprivileged can come back.
    let hard = get(libc::RLIMIT_NICE)?.hard.max(limit.into());
    set(libc::RLIMIT_NICE, Limit { soft: limit.into(), hard })
}

/// The highest real-time priority, 0 (none) to 99, that threads may take without `CAP_SYS_NICE`.
#[must_use]
pub fn realtime_priority() -> u32 {
    // Asking for a limit that exists cannot fail.
    get(libc::RLIMIT_RTPRIO).map_or(0, |limit| u32::try_from(limit.soft).unwrap_or(99).min(99))
}

/// Sets the highest real-time priority, soft and hard: without `CAP_SYS_RESOURCE` this cannot be undone.
///
/// # Errors
/// `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn set_realtime_priority(most: u32) -> io::Result<()> {
    set(libc::RLIMIT_RTPRIO, Limit { soft: most.into(), hard: most.into() })
}

/// Sets the CPU time in us after which a real-time thread that never blocks costs the process `SIGXCPU`
/// (`soft`) and `SIGKILL` (`hard`).
///
/// # Errors
/// `EINVAL`: `soft` above `hard`. `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn set_realtime_us(soft: u64, hard: u64) -> io::Result<()> {
    set(libc::RLIMIT_RTTIME, Limit { soft, hard })
}

/// The soft and hard limits of [`set_realtime_us`] in us; `None` if unlimited.
#[must_use]
pub fn realtime_us() -> (Option<u64>, Option<u64>) {
    get(libc::RLIMIT_RTTIME).map_or((None, None), |limit| (finite(limit.soft), finite(limit.hard)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::{EINVAL, EPERM};

    #[test]
    fn limits_are_in_the_kernels_range() {
        assert!(realtime_priority() <= 99);
        let bytes = address_space().expect("own limit");
        assert!(bytes.is_none_or(|bytes| bytes > 1 << 20), "{bytes:?}");
    }

    #[test]
    fn open_files_are_raised_up_to_the_hard_limit_and_lowered_on_demand_alone() {
        let before = get(libc::RLIMIT_NOFILE).expect("limits");
        assert_eq!(raise_open_files(u64::MAX).expect("raised"), before.hard);
        assert_eq!(raise_open_files(64).expect("nothing to raise"), before.hard);
        assert_eq!(open_files().expect("limits"), before.hard);
        assert_eq!(set_open_files(before.soft).expect("back"), before.soft);
        assert_eq!(open_files().expect("limits"), before.soft);
    }

    #[test]
    fn no_urgency_at_all_is_always_allowed() {
        set_nice(0).expect("no more than before");
        let more = set_nice(40);
        assert!(more.is_ok() || more.is_err_and(|error| error.raw_os_error() == Some(EPERM)));
    }

    /// Generous, since it stays for all tests of this process.
    #[test]
    fn a_time_limit_is_found_as_it_was_set() {
        let (soft, hard) = (10_000_000, 20_000_000);
        set_realtime_us(soft, hard).expect("lower than before, or the same");
        assert_eq!(realtime_us(), (Some(soft), Some(hard)));
        let error = set_realtime_us(hard, soft).expect_err("soft above hard");
        assert_eq!(error.raw_os_error(), Some(EINVAL));
    }
}
