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

/// Sets the soft limit to `most`, or to the hard limit if that is lower. Gives what it is now.
///
/// # Errors
/// None in normal work.
pub fn allow(most: u64) -> io::Result<u64> {
    let mut wanted = limits()?;
    wanted.rlim_cur = most.min(wanted.rlim_max);
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
    fn never_more_than_the_hard_limit() {
        let before = limits().expect("limits");
        let got = allow(u64::MAX).expect("raised");
        assert_eq!(got, before.rlim_max);
        assert_eq!(limits().expect("limits").rlim_cur, got);
        assert_eq!(allow(before.rlim_cur).expect("back"), before.rlim_cur);
        assert_eq!(allowed().expect("limits"), before.rlim_cur);
    }
}
