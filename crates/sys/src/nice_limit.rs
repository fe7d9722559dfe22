//! Room: how urgent the threads of this process may make themselves without privilege.
//! Not here: their nice (`sched`).
//! Facts: `RLIMIT_NICE` in `getrlimit(2)`: the limit L allows a nice of 20 - L and above.

use std::io;

/// Sets the limit (0 to 40) of this process, and of processes that it starts.
///
/// # Errors
/// `EPERM`: above the hard limit, without `CAP_SYS_RESOURCE`.
pub fn set(limit: u32) -> io::Result<()> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `found` is live and of the type that the call fills in.
    if unsafe { libc::getrlimit(libc::RLIMIT_NICE, &raw mut found) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let wanted = libc::rlimit {
        rlim_cur: limit.into(),
        // Only ever raised, so that the unprivileged can come back.
        rlim_max: found.rlim_max.max(limit.into()),
    };
    // SAFETY: `wanted` is live and of the type that the call reads.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NICE, &raw const wanted) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_urgency_at_all_is_always_allowed() {
        set(0).expect("less than before, or as much");
        // More is for those who may.
        let more = set(40);
        assert!(more.is_ok() || more.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM)));
    }
}
