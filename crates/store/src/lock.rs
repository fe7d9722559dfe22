//! A folder that a command writes, locked for as long as the command runs.
//! Not here: what is written there.
//! Facts: `flock(2)`: the lock ends with the process that holds it, however it ends; `proc_locks(5)`.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{StoreError, Tell};

/// The lock of a folder, released on drop.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held, not used")] Option<File>);

impl FolderLock {
    /// Makes the folder if it is missing, and locks it without waiting. On a file system without locks it says so and
    /// goes on.
    ///
    /// # Errors
    /// The folder cannot be made or opened. Another command writes there: the text names its pid.
    pub fn take(folder: &Path, tell: Tell) -> Result<Self, StoreError> {
        let cannot = |error: std::io::Error| StoreError::unwritten("write to", folder, error);
        fs::create_dir_all(folder).map_err(cannot)?;
        let file = File::open(folder).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(Some(file))),
            Err(TryLockError::WouldBlock) => {
                let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
                let pid = file.metadata().ok().and_then(|found| holder(&locks, found.dev(), found.ino()));
                let who = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
                let shown = folder.display();
                let why = format!(
                    "{who} is writing to {shown}, and two commands would mix their files: give another folder, or wait until it ends"
                );
                Err(StoreError::Unusable(why))
            }
            Err(TryLockError::Error(error)) => {
                let (shown, why) = (folder.display(), sys::errno::describe(&error));
                tell(&format!("{shown} cannot be locked against a second command: {why}"));
                Ok(Self(None))
            }
        }
    }

    /// [`Self::take`] for a folder that may not hold files of this kind from an earlier command: the results would mix.
    ///
    /// # Errors
    /// See [`Self::take`]. There is such a file: the text names it.
    pub fn take_without(
        folder: &Path,
        is_result: impl Fn(&str) -> bool,
        tell: Tell,
    ) -> Result<Self, StoreError> {
        let lock = Self::take(folder, tell)?;
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        match names.filter(|name| is_result(name)).min() {
            None => Ok(lock),
            Some(name) => {
                let shown = folder.display();
                let why = format!(
                    "{shown} holds {name} of an earlier command, and results would mix: give another folder"
                );
                Err(StoreError::Unusable(why))
            }
        }
    }

    /// [`Self::take`] for a folder that may not have been asked for.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn of(folder: Option<&Path>, tell: Tell) -> Result<Option<Self>, StoreError> {
        folder.map(|folder| Self::take(folder, tell)).transpose()
    }
}

/// The process that holds a write lock on a file, by the text of `/proc/locks`; `None` where this namespace does not see it.
fn holder(locks: &str, dev: u64, inode: u64) -> Option<u32> {
    // The kernel's `new_encode_dev` in reverse, as `stat(2)` gives it.
    let (major, minor) = ((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = words[..] else { return None };
        pid.parse().ok().filter(|pid| *pid > 0 && place == file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_of_this_file_who_does_not_wait() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  READ  12 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fe:00:78 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF\n\
                     4: -> FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF\n";
        assert_eq!(holder(locks, 0xfe00, 77), Some(14));
        assert_eq!(holder(locks, 0xfe00, 79), None);
        assert_eq!(holder("1: FLOCK  ADVISORY  WRITE 0 fe:00:77 0 EOF\n", 0xfe00, 77), None);
    }
}
