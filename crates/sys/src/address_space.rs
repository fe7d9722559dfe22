//! Room: how much address space this process, and those that it starts, may have.
//! Facts: `RLIMIT_AS` in `getrlimit(2)`; what a shell sets with `ulimit -v`.

use std::io;

/// The limit in bytes; `None` if there is none.
///
/// # Errors
/// None in normal work.
pub fn limit() -> io::Result<Option<u64>> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `found` is a live rlimit that getrlimit stores into.
    if unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut found) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_more_than_what_this_process_has() {
        let limit = limit().expect("asked for oneself");
        assert!(limit.is_none_or(|limit| limit > 1 << 20), "{limit:?}");
    }
}
