//! Word of files without a name that nobody has open any more.
//! Not here: what they stand for.
//! Facts: `inotify(7)`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::errno::{check, new_descriptor};

/// Size of `struct inotify_event`; no name follows it in an event of a watched file itself.
const EVENT: usize = size_of::<libc::inotify_event>();

/// Watches for the end of files. Readable when one has ended.
#[derive(Debug)]
pub struct LastClose(File);

impl AsFd for LastClose {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl LastClose {
    /// No file is watched.
    ///
    /// # Errors
    /// `EMFILE`: the user has too many of these, or the process too many files.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes an integer.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        // SAFETY: the result of inotify_init1.
        unsafe { new_descriptor(fd) }.map(|fd| Self(fd.into()))
    }

    /// Watches a file without a name. Returns the watch's number, which is never used again.
    ///
    /// # Errors
    /// `ENOSPC`: the user has too many watches.
    pub fn watch(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        let path = crate::path::terminated(format!("/proc/self/fd/{}", file.as_raw_fd()).as_ref())?;
        // SAFETY: a path and integers.
        let watch =
            unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), libc::IN_DELETE_SELF) };
        check(watch).map(|()| watch)
    }

    /// Numbers of the watches whose files ended since the last look.
    pub fn ended(&self) -> Vec<i32> {
        let mut ended = Vec::new();
        let mut events = [0; 64 * EVENT];
        // Without one it would wait.
        while let Ok(count) = (&self.0).read(&mut events) {
            let numbers = events[..count].chunks_exact(EVENT).filter_map(|event| event.first_chunk());
            ended.extend(numbers.map(|number| i32::from_ne_bytes(*number)));
        }
        ended.dedup();
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_ends_with_its_last_descriptor() {
        let ends = LastClose::new().expect("made");
        let (one, other) = [(); 2].map(|()| crate::descriptor::path_only().expect("made")).into();
        let watches =
            [ends.watch(one.as_fd()).expect("watched"), ends.watch(other.as_fd()).expect("watched")];
        let copy = one.try_clone().expect("open");
        // A child of another test that has not begun its program yet has copies.
        let ends_soon =
            |watch: i32| crate::patience::until(Duration::from_secs(20), || ends.ended() == [watch]);
        drop(one);
        assert_eq!(ends.ended(), []);
        drop(copy);
        assert!(ends_soon(watches[0]));
        drop(other);
        assert!(ends_soon(watches[1]));
    }
}
