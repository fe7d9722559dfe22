//! Room: a process that may open no more descriptors, for as long as a value lives.
//! Not here: who runs out of them, and what that must look like (`lab::conformance`).
//! Facts: `RLIMIT_NOFILE` in `getrlimit(2)`: one more than the highest number of a new descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// While it lives, this process can open no descriptor above those that it has: `EMFILE`.
///
/// Numbers below the highest open one that are free stay free to use; [`NoMoreDescriptors::new`]
/// sets the limit at the lowest free number, so there are none.
#[derive(Debug)]
pub struct NoMoreDescriptors {
    before: libc::rlimit,
}

impl NoMoreDescriptors {
    /// Takes the right to open descriptors away, from every thread of the process.
    ///
    /// # Errors
    /// `EMFILE`: no more can be opened already.
    pub fn new() -> io::Result<Self> {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` is a live structure of the kind that the call fills.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // A new descriptor has the lowest free number; closed again, it tells where the limit goes.
        let lowest_free = File::open("/dev/null")?.as_raw_fd();
        set(&libc::rlimit { rlim_cur: lowest_free as libc::rlim_t, ..before })?;
        Ok(Self { before })
    }
}

impl Drop for NoMoreDescriptors {
    fn drop(&mut self) {
        // Up to the hard limit, which was not touched: it cannot fail.
        let _ = set(&self.before);
    }
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: the structure is live and the call only reads it.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn nothing_opens_until_it_is_dropped() {
        // In a process of its own: the limit would meet every other test of this one.
        const CHILD: &str = "BINDERPERF_TEST_NO_MORE_DESCRIPTORS";
        if std::env::var_os(CHILD).is_none() {
            let name = "descriptor_limit::tests::nothing_opens_until_it_is_dropped";
            let test = std::env::current_exe().expect("own executable");
            let status = Command::new(test).args([name, "--exact"]).env(CHILD, "1").status();
            assert!(status.expect("start").success());
            return;
        }
        let limit = NoMoreDescriptors::new().expect("limit");
        let refused = File::open("/dev/null").expect_err("no number is left");
        assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
        drop(limit);
        File::open("/dev/null").expect("as before");
    }
}
