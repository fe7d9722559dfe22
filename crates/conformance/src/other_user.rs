//! Acting as another user.
//! Not here: what a driver does then (`manager`, `identity`).
//! Facts: `setresuid(2)`: a thread with `CAP_SETUID` takes any uid that its user namespace maps; others give
//! `EINVAL`.

use std::io;

use sys::{errno, identity};

use crate::prelude::*;

/// An unprivileged uid.
pub(super) const NOBODY: u32 = 65534;

/// Starts a thread whose effective uid is [`NOBODY`]. Skips the rest of a test where this process may not take that
/// uid.
pub(super) fn thread(kit: &Kit) -> Result<Worker, Stop> {
    skip_unless(kit.is_root(), "needs root, to act as another user")?;
    let worker = Worker::new()?;
    taken(worker.run(|| identity::set_effective_uid(NOBODY))?)?;
    Ok(worker)
}

/// Skips the rest of a test if the kernel refused the uid for lack of rights or in this user namespace.
fn taken(result: io::Result<()>) -> Verdict {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(errno::EINVAL | errno::EPERM)) => {
            Err(Stop::Skip(format!(
                "needs to act as another user, and cannot take uid {NOBODY} here: {}; run it as root outside of user \
                 namespaces",
                errno::describe(&error)
            )))
        }
        result => done("changing a thread's effective uid", result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_that_cannot_be_taken_skips_and_any_other_error_fails() {
        assert_eq!(taken(Ok(())), Ok(()));
        let refused = |number| taken(Err(io::Error::from_raw_os_error(number)));
        for number in [errno::EINVAL, errno::EPERM] {
            assert!(matches!(refused(number), Err(Stop::Skip(why)) if why.contains("uid 65534")));
        }
        assert!(matches!(refused(errno::EAGAIN), Err(Stop::Fail(_))));
    }
}
