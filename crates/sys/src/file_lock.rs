//! Waiting for the lock of an open file (`flock(2)`), but not for ever.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use crate::errno::ETIMEDOUT;

/// First interval at which a held lock is asked for again, and the longest: each is twice the one before.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Takes the exclusive lock of an open file; waits for at most `limit` while others hold it.
///
/// # Errors
/// `ETIMEDOUT`: they still do. `ENOLCK`.
pub fn lock_within(file: &File, limit: Duration) -> io::Result<()> {
    let (until, mut interval) = (Instant::now() + limit, INTERVALS.0);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from_raw_os_error(ETIMEDOUT));
        }
        std::thread::sleep(interval.min(left));
        interval = (2 * interval).min(INTERVALS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_folder::PrivateFolder;

    #[test]
    fn a_lock_that_is_kept_is_waited_for_until_the_limit() {
        let folder = PrivateFolder::new("test").expect("a folder");
        // A file in it: the folder itself is locked as long as it is in use.
        let open = || File::create(folder.path().join("lock")).expect("there");
        let (held, wanted) = (open(), open());
        held.lock().expect("free");
        let error = lock_within(&wanted, Duration::from_millis(30)).expect_err("held");
        assert_eq!(error.raw_os_error(), Some(ETIMEDOUT));
        let waiter = std::thread::spawn(move || lock_within(&wanted, Duration::from_secs(600)));
        drop(held);
        waiter.join().expect("no panic").expect("free again");
    }
}
