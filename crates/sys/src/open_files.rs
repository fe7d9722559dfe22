//! Room: how many descriptors this process may have.
//! Facts: `getrlimit(2)`, `RLIMIT_NOFILE`.

use std::io;

fn limits() -> io::Result<libc::rlimit> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` is live and the call stores into it.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut now) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(now)
}

/// The soft limit: one more than the highest number that a new descriptor may have.
///
/// # Errors
/// None in normal work.
pub fn allowed() -> io::Result<u64> {
    Ok(limits()?.rlim_cur)
}

/// Raises the soft limit to `most`, or to the hard limit if that is lower; one that is higher stays. Gives
/// what it is now.
///
/// # Errors
/// None in normal work.
pub fn allow(most: u64) -> io::Result<u64> {
    let now = limits()?;
    let wanted = most.min(now.rlim_max);
    if wanted <= now.rlim_cur { Ok(now.rlim_cur) } else { set(libc::rlimit { rlim_cur: wanted, ..now }) }
}

/// Sets the soft limit to `most`, or to the hard limit if that is lower, though it is lower than before.
/// Gives what it is now.
///
/// # Errors
/// None in normal work.
pub fn allow_only(most: u64) -> io::Result<u64> {
    let now = limits()?;
    set(libc::rlimit { rlim_cur: most.min(now.rlim_max), ..now })
}

fn set(wanted: libc::rlimit) -> io::Result<u64> {
    // SAFETY: `wanted` is live and only read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(wanted.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_up_to_the_hard_limit_and_lowered_on_demand_alone() {
        let before = limits().expect("limits");
        assert_eq!(allow(u64::MAX).expect("raised"), before.rlim_max);
        assert_eq!(allow(64).expect("nothing to raise"), before.rlim_max);
        assert_eq!(allowed().expect("limits"), before.rlim_max);
        assert_eq!(allow_only(before.rlim_cur).expect("back"), before.rlim_cur);
        assert_eq!(allowed().expect("limits"), before.rlim_cur);
    }
}
