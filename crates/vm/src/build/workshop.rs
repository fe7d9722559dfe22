//! Folders of the builds: sources, copies of sources, objects, logs; and their locks.
//! Not here: what is built there, the kernels that are kept (`kernel::cache`).
//!
//! `objects/KEY` is the output folder of make for one source, architecture, driver and compiler. While make works there,
//! `objects/KEY.unfinished` exists; where a build finds it, the last one was killed, and half-written objects may look
//! finished, so the folder is removed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kernel::Cache;

use super::error::BuildError;

/// The folders of one user.
#[derive(Debug)]
pub(super) struct Workshop {
    root: PathBuf,
}

/// An output folder of make, locked until dropped.
#[derive(Debug)]
pub(super) struct Objects {
    folder: PathBuf,
    mark: PathBuf,
    _lock: File,
}

impl Workshop {
    /// Those beside the cache of kernels.
    pub(super) fn beside(cache: &Cache) -> Self {
        Self { root: cache.root().with_file_name("build") }
    }

    /// The folder of all.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder by its kind: `sources`, `copies`, `objects`, `logs` or `debian`.
    ///
    /// # Errors
    /// [`BuildError::Vm`]: it cannot be made.
    pub(super) fn folder(&self, kind: &str) -> Result<PathBuf, BuildError> {
        let folder = self.root.join(kind);
        std::fs::create_dir_all(&folder).map_err(BuildError::host(format!("making {}", folder.display())))?;
        Ok(folder)
    }

    /// Locks an output folder, after other builds there, and removes what a killed build left.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] while it waits; [`BuildError::Vm`].
    pub(super) fn objects(&self, key: &str, progress: &mut dyn FnMut(&str)) -> Result<Objects, BuildError> {
        let all = self.folder("objects")?;
        let lock = locked(&all.join(format!("{key}.lock")), progress)?;
        let (folder, mark) = (all.join(key), all.join(format!("{key}.unfinished")));
        if mark.exists() {
            progress("removing the objects of a build that was killed");
            // Compilers that outlived it write below their own folder, whatever its name: not into the new one.
            let old = all.join(format!("{key}.old"));
            removed(&old)?;
            match std::fs::rename(&folder, &old) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(BuildError::host(format!("removing {}", folder.display()))(error));
                }
                _ => {}
            }
            // What such a compiler keeps from being removed goes with the next build.
            let _ = std::fs::remove_dir_all(&old);
            removed(&self.root.join("debian").join(key))?;
        }
        Ok(Objects { folder, mark, _lock: lock })
    }

    /// Begins a new output folder with the objects of another one, for a build in which make sees the same paths. Without
    /// such objects, or while a build works on them, the folder stays as it is.
    ///
    /// # Errors
    /// [`BuildError::Vm`].
    pub(super) fn seed(&self, objects: &Objects, key: &str) -> Result<(), BuildError> {
        let all = self.folder("objects")?;
        let from = all.join(key);
        let is_sound = from.exists() && !all.join(format!("{key}.unfinished")).exists();
        if objects.folder.exists() || !is_sound {
            return Ok(());
        }
        let doing = || BuildError::host(format!("copying {}", from.display()));
        let lock = File::create(all.join(format!("{key}.lock"))).map_err(doing())?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        room(&self.root, size(&from))?;
        objects.begin()?;
        // With the times of change, by which make decides what to compile.
        let mut copy = Command::new("cp");
        copy.args(["-a", "--reflink=auto", "-T"]).arg(&from).arg(&objects.folder);
        let copied = copy.stdin(Stdio::null()).stdout(Stdio::null()).output().map_err(doing())?;
        if !copied.status.success() {
            let said = String::from_utf8_lossy(&copied.stderr).trim().to_owned();
            return Err(doing()(std::io::Error::other(said)));
        }
        objects.finish()
    }

    /// Removes sources, copies and objects, but not what a build is using; returns the bytes.
    ///
    /// # Errors
    /// [`BuildError::Vm`].
    pub(super) fn clean(&self) -> Result<u64, BuildError> {
        let objects = self.folder("objects")?;
        let doing = || BuildError::host(format!("reading {}", objects.display()));
        let mut locks = Vec::new();
        for entry in std::fs::read_dir(&objects).map_err(doing())? {
            let path = entry.map_err(doing())?.path();
            if path.extension().is_some_and(|ending| ending == "lock") {
                let lock = File::create(&path).map_err(doing())?;
                if lock.try_lock().is_err() {
                    let busy = std::io::Error::other("a build is at work there");
                    return Err(BuildError::host(format!("removing {}", self.root.display()))(busy));
                }
                locks.push(lock);
            }
        }
        let bytes = size(&self.root);
        removed(&self.root)?;
        Ok(bytes)
    }
}

impl Objects {
    /// The output folder, which may not exist yet.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder, and marks it as unfinished.
    ///
    /// # Errors
    /// [`BuildError::Vm`].
    pub(super) fn begin(&self) -> Result<(), BuildError> {
        let doing = || BuildError::host(format!("making {}", self.folder.display()));
        std::fs::create_dir_all(&self.folder).map_err(doing())?;
        File::create(&self.mark).map(drop).map_err(doing())
    }

    /// Marks the folder as sound: every program that wrote there has ended by itself.
    ///
    /// # Errors
    /// [`BuildError::Vm`].
    pub(super) fn finish(&self) -> Result<(), BuildError> {
        std::fs::remove_file(&self.mark)
            .map_err(BuildError::host(format!("removing {}", self.mark.display())))
    }
}

/// Takes a lock, waiting for its holder to end.
fn locked(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    let doing = || BuildError::host(format!("locking {}", path.display()));
    let lock = File::create(path).map_err(doing())?;
    if lock.try_lock().is_err() {
        progress("waiting for another build to end");
        while let Err(error) = lock.try_lock() {
            if let std::fs::TryLockError::Error(error) = error {
                return Err(doing()(error));
            }
            if let Some(signal) = sys::stop_signal::received() {
                return Err(BuildError::Stopped(signal));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    Ok(lock)
}

/// Mount points below a folder, the innermost first, from the text of `/proc/self/mountinfo`.
fn mounted_below(folder: &Path, mounts: &str) -> Vec<PathBuf> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let places = places.map(|place| PathBuf::from(place.replace("\\040", " ")));
    let mut below: Vec<PathBuf> = places.filter(|place| place.starts_with(folder)).collect();
    below.reverse();
    below
}

/// Removes a folder that may not exist, with what is mounted in it: a killed mmdebstrap leaves `/proc` and `/sys` of its tree.
///
/// # Errors
/// [`BuildError::Vm`].
pub(super) fn removed(folder: &Path) -> Result<(), BuildError> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for place in mounted_below(folder, &mounts) {
        // The removal says what stays.
        let _ = Command::new("umount").arg("-l").arg(place).stdin(Stdio::null()).output();
    }
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::host(format!("removing {}", folder.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Bytes of all files below a folder.
pub(super) fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Checks that a file system has room.
///
/// # Errors
/// [`BuildError::Space`]; [`BuildError::Vm`]: it cannot be asked.
pub(super) fn room(folder: &Path, needed: u64) -> Result<(), BuildError> {
    let free = sys::disk::free_bytes(folder)
        .map_err(BuildError::host(format!("asking for the free space of {}", folder.display())))?;
    if free < needed { Err(BuildError::Space { folder: folder.to_path_buf(), needed, free }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn what_a_killed_build_left_goes_and_a_finished_one_stays() {
        let root = Fixture::new("workshop", &[]);
        let shop = Workshop { root: root.path().to_path_buf() };
        let objects = || shop.objects("key", &mut |_| {}).expect("free");
        let first = objects();
        first.begin().expect("made");
        std::fs::write(first.folder().join("a.o"), "whole").expect("written");
        first.finish().expect("sound");
        drop(first);
        let second = objects();
        assert!(second.folder().join("a.o").exists());
        second.begin().expect("made");
        drop(second);
        assert!(!objects().folder().exists(), "it did not finish");
    }

    #[test]
    fn a_new_folder_begins_with_anothers_objects() {
        let root = Fixture::new("workshop-seed", &[]);
        let shop = Workshop { root: root.path().to_path_buf() };
        let objects = |key: &str| shop.objects(key, &mut |_| {}).expect("free");
        let first = objects("plain");
        first.begin().expect("made");
        std::fs::write(first.folder().join("a.o"), "whole").expect("written");
        let made = first.folder().join("a.o").metadata().and_then(|found| found.modified()).expect("a time");
        let copy = objects("copy");
        shop.seed(&copy, "plain").expect("nothing to do");
        assert!(!copy.folder().exists(), "the other one is not finished");
        first.finish().expect("sound");
        shop.seed(&copy, "plain").expect("nothing to do");
        assert!(!copy.folder().exists(), "the other one is in use");
        drop(first);
        let seeded = copy.folder().join("a.o");
        // A child that another test is starting keeps the lock's descriptor until it runs its program.
        let copied = sys::patience::until(std::time::Duration::from_secs(30), || {
            shop.seed(&copy, "plain").expect("copied");
            seeded.exists()
        });
        assert!(copied, "nobody uses the other one");
        assert_eq!(seeded.metadata().and_then(|found| found.modified()).expect("a time"), made);
        std::fs::write(&seeded, "changed").expect("written");
        shop.seed(&copy, "plain").expect("nothing to do");
        assert_eq!(std::fs::read_to_string(&seeded).expect("text"), "changed", "it has its own by now");
        drop(copy);
        assert!(objects("copy").folder().exists(), "it is sound");
    }

    #[test]
    fn a_second_build_waits_and_nothing_is_removed_below_a_build() {
        let root = Fixture::new("workshop-lock", &[]);
        let shop = Workshop { root: root.path().to_path_buf() };
        let first = shop.objects("key", &mut |_| {}).expect("free");
        assert!(shop.clean().expect_err("busy").to_string().contains("a build is at work"));
        let said = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let mut said = Vec::new();
                shop.objects("key", &mut |text| said.push(text.to_owned())).expect("free at last");
                said
            });
            std::thread::sleep(std::time::Duration::from_millis(150));
            drop(first);
            second.join().expect("no panic")
        });
        assert_eq!(said, ["waiting for another build to end"]);
        assert!(shop.clean().is_ok() && !root.path().exists());
    }

    #[test]
    fn mounts_of_a_trees_remains_are_found_from_within() {
        let text = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /b/d\\040x/tree/proc rw - proc proc rw\n\
                    31 30 0:6 / /b/d\\040x/tree/proc/fs rw - x x rw\n32 22 0:7 / /b/d\\040xyz rw - x x rw\n";
        let found = mounted_below(Path::new("/b/d x"), text);
        assert_eq!(found, [Path::new("/b/d x/tree/proc/fs"), Path::new("/b/d x/tree/proc")]);
    }

    #[test]
    fn a_file_system_without_room_is_told_before_the_build() {
        let error = room(Path::new("/proc"), 1).expect_err("nobody can write there");
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().starts_with("too little room in /proc: 0.0 GB free"), "{error}");
        room(&std::env::temp_dir(), 0).expect("nothing is needed");
    }
}
