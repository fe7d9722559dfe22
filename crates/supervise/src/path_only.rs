//! Descriptors that were opened with `O_PATH`: of a device, of `binder-control`. They can be looked at and opened, and not used.
//!
//! The kernel takes no such descriptor from a supervisor, so each one is of a file of its own that can be neither read nor written,
//! and that nobody has open here.
//! Not here: the answers to what is asked of them (`paths`, `answer`).
//! Facts: `open(2)`; `seccomp_notify_addfd` takes its file by `fget`, which knows no `O_PATH`.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use embedded::device_path::Found;
use sys::file_key::FileKey;
use sys::last_close::LastClose;

/// The files, and what each stands for.
#[derive(Debug, Default)]
pub(crate) struct PathOnly(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    by_key: HashMap<FileKey, File>,
    /// Tells of those that no program has open any more. Made for the first one.
    ends: Option<LastClose>,
}

#[derive(Debug)]
struct File {
    stands_for: Found,
    /// Number of its watch. A user may have too many: then the file stays known.
    watch: Option<i32>,
}

impl PathOnly {
    /// Those that a program has open.
    fn lock(&self) -> MutexGuard<'_, Files> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always there are none.
        if !files.by_key.is_empty()
            && let Some(ends) = &files.ends
        {
            let ended = ends.ended();
            files.by_key.retain(|_, file| file.watch.is_none_or(|watch| !ended.contains(&watch)));
        }
        files
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_key.is_empty()
    }

    /// A descriptor of a new file that stands for a path.
    pub(crate) fn open(&self, found: &Found) -> io::Result<OwnedFd> {
        let opened = sys::descriptor::path_only()?;
        let key = FileKey::of(opened.as_fd())?;
        let mut files = self.lock();
        if files.ends.is_none() {
            files.ends = LastClose::new().ok();
        }
        let watch = files.ends.as_ref().and_then(|ends| ends.watch(opened.as_fd()).ok());
        files.by_key.insert(key, File { stands_for: found.clone(), watch });
        Ok(opened)
    }

    /// The path that an open file stands for.
    pub(crate) fn find(&self, fd: BorrowedFd<'_>) -> Option<Found> {
        let files = self.lock();
        if files.by_key.is_empty() {
            return None;
        }
        files.by_key.get(&FileKey::of(fd).ok()?).map(|file| file.stands_for.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_known_as_long_as_it_is_open() {
        let files = PathOnly::default();
        assert!(files.is_empty());
        let device = Found::Device { path: "/dev/binder".to_owned(), name: "binder".to_owned() };
        let opened =
            [&device, &Found::Control, &device].map(|found| (files.open(found).expect("a file"), found));
        for (file, found) in &opened {
            assert_eq!(files.find(file.as_fd()).as_ref(), Some(*found));
        }
        assert_eq!(files.find(std::fs::File::open("/").expect("a folder").as_fd()), None);
        let copy = opened[0].0.try_clone().expect("open");
        drop(opened);
        assert_eq!(files.find(copy.as_fd()), Some(device));
        drop(copy);
        // A child of another test that has not begun its program yet has a copy.
        assert!(sys::patience::until(Duration::from_secs(20), || files.is_empty()));
    }
}
